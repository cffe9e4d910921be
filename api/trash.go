package api

// DeletedTask is a deleted task as lists show it.
type DeletedTask struct {
	Summary
	Name      string  `json:"name"`       // restores it
	DeletedAt *string `json:"deleted_at"` // RFC 3339; null when unknown
	Hidden    bool    `json:"hidden"`     // its folder is untouched in the storage of another tool
}

// QualifiedName names the deleted task so that it fits no other.
func (t DeletedTask) QualifiedName() string {
	if t.Hidden {
		return t.Name
	}
	return OwnSource + ":" + t.Name
}
