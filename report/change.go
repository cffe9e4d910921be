package report

import (
	"bytes"
	"encoding/json"

	"github.com/roost-dev/roost/api"
)

// Maybe is a member of a merge patch: absent, null, or a value.
type Maybe[T any] struct {
	Given bool
	Value *T // nil = null
}

// IsZero makes omitzero leave out what was not given.
func (m Maybe[T]) IsZero() bool { return !m.Given }

// MarshalJSON writes the value, or null.
func (m Maybe[T]) MarshalJSON() ([]byte, error) { return json.Marshal(m.Value) }

// UnmarshalJSON is only called for members that are there.
func (m *Maybe[T]) UnmarshalJSON(data []byte) error {
	m.Given, m.Value = true, nil
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	return json.Unmarshal(data, &m.Value)
}

// Form is a value of the type that JSON holds, for the OpenAPI document.
func (m Maybe[T]) Form() any { return m.Value }

// TaskPatch changes a task: what is absent stays. null restores the task's own title, and removes all tags or the
// pin. The settings apply to later runs.
type TaskPatch struct {
	Title  Maybe[string]   `json:"title,omitzero"`
	Tags   Maybe[[]string] `json:"tags,omitzero"`
	Pinned Maybe[bool]     `json:"pinned,omitzero"`

	// Tags to add to and remove from those that the task has, where tags does not replace all of them.
	AddTags    []string `json:"add_tags,omitempty"`
	RemoveTags []string `json:"remove_tags,omitempty"`

	Settings
}

// Deleted is a task that was put into the trash, and how to restore it.
type Deleted struct {
	api.DeletedTask
	Restore  string   `json:"restore"`  // the request: POST /v1/trash/NAME/restore
	Subtasks []string `json:"subtasks"` // names in the trash of the subtasks that were deleted with it

	With []api.DeletedTask `json:"with,omitempty"` // the deleted subtasks
}

// NewPurge removes deleted tasks for good.
type NewPurge struct {
	Names []string `json:"names"` // whole names or ids in the trash
}

// Purged are the deleted tasks that were removed for good.
type Purged struct {
	Items []api.DeletedTask `json:"purged"`
}

// Restored is a task that was restored from the trash.
type Restored struct {
	ID     string `json:"id"`
	Source string `json:"source"`
	Path   string `json:"path"`
}

// InputPatch changes the text of queued input.
type InputPatch struct {
	Text string `json:"text"`
}
