package api

// Access is the owner of a task, and who else may reach it. The zero value has no owner: with accounts, only
// administrators reach such a task.
type Access struct {
	Owner  string  `json:"owner,omitempty"` // the id of an account
	Shares []Share `json:"shares,omitempty"`
}

// Share lets a person or a team reach a task of someone else.
type Share struct {
	With  string `json:"with"`  // the id of an account
	Right string `json:"right"` // ShareRead or ShareAct
}

// What a share allows.
const (
	ShareRead = "read" // everything that shows the task
	ShareAct  = "act"  // everything of ShareRead, and everything that works on the task
)

// IsZero reports whether a task has neither an owner nor shares.
func (a Access) IsZero() bool { return a.Owner == "" && len(a.Shares) == 0 }

// The kinds of accounts.
const (
	Person = "person"
	Team   = "team"
)

// Account is a person or a team.
type Account struct {
	ID        string   `json:"id"`
	Kind      string   `json:"kind"` // Person or Team
	Name      string   `json:"name"`
	CreatedAt string   `json:"created_at"`
	Members   []string `json:"members,omitempty"` // of a team: the ids of people
}

// NewAccount makes an account.
type NewAccount struct {
	Kind string `json:"kind"` // Person or Team
	Name string `json:"name"`
}

// Token is what is known of a token. Only its holder knows its secret.
type Token struct {
	ID         string   `json:"id"`
	Account    string   `json:"account"`
	Name       string   `json:"name"`
	Scopes     []string `json:"scopes"`
	CreatedAt  string   `json:"created_at"`
	ExpiresAt  *string  `json:"expires_at"`
	LastUsedAt *string  `json:"last_used_at"`
	RevokedAt  *string  `json:"revoked_at"`
}

// NewToken makes a token.
type NewToken struct {
	Scopes []string `json:"scopes"`
	Life   string   `json:"life,omitempty"` // how long it works, such as 720h; "" = until it is revoked
}

// IssuedToken is a new token with its secret, which is shown once.
type IssuedToken struct {
	Token
	Secret string `json:"secret"`
}

// Me is the caller.
type Me struct {
	Account  string   `json:"account"` // "" = the operator of the server
	Name     string   `json:"name"`
	Teams    []string `json:"teams"`
	Scopes   []string `json:"scopes"`
	Operator bool     `json:"operator"` // the person who runs the server
}

// AuditEntry is one thing that someone did or tried.
type AuditEntry struct {
	ID      int64  `json:"id"`
	At      string `json:"at"`      // by the clock of the database
	Account string `json:"account"` // "" = the operator of the server
	Token   string `json:"token"`
	Act     string `json:"act"` // the method and the route
	Task    string `json:"task"`
	Address string `json:"address"`
	Request string `json:"request_id"`
	Status  *int   `json:"status"` // of the answer; null = not known: the act is under way, or the server was killed
}
