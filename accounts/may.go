package accounts

import (
	"context"
	"net/http"
	"slices"

	"github.com/roost-dev/roost/api"
)

// Scope is a right that a token grants.
type Scope string

// The scopes of tokens. Own is not a token's scope: it marks acts that only the owner of a task may do, with the scope Act.
const (
	Read    Scope = "read"    // everything that shows tasks
	Act     Scope = "act"     // start and continue tasks, send words, cancel, rewind, change, delete
	Approve Scope = "approve" // answer approvals, and choose what runs without asking
	Admin   Scope = "admin"   // accounts, settings, the server itself, and tasks without an owner

	Own Scope = "own"
)

// Scopes are the scopes that a token may have.
var Scopes = []Scope{Read, Act, Approve, Admin}

// Caller is the account and token that send a request.
type Caller struct {
	Account  string // the id of a person or a team
	Name     string
	Token    string   // the id of the token
	Teams    []string // of a person
	Scopes   []Scope
	Operator bool // the person who runs the server, by its socket or its own token: may do everything, and owns nothing
}

// Can reports whether a caller has a scope.
func (c Caller) Can(need Scope) bool {
	if need == Own {
		need = Act
	}
	return c.Operator || slices.Contains(c.Scopes, need)
}

// Is reports whether an account is the caller or one of the caller's teams.
func (c Caller) Is(account string) bool {
	return account != "" && (account == c.Account || slices.Contains(c.Teams, account))
}

// May decides whether a caller may perform an act on a task that needs a scope. If seen is false, the task does not
// exist for the caller; why states why the caller may not perform the act on a seen task, "" = the caller may. No
// other function decides about tasks.
func May(c Caller, need Scope, a api.Access) (seen bool, why string) {
	right := ""
	switch {
	case c.Operator, c.Is(a.Owner), a.Owner == "" && c.Can(Admin):
		right = "own"
	default:
		for _, s := range a.Shares {
			known := s.Right == api.ShareRead || s.Right == api.ShareAct
			if known && c.Is(s.With) && right != api.ShareAct {
				right = s.Right
			}
		}
	}
	switch {
	case right == "":
		return false, ""
	case !c.Can(need):
		return true, "the token lacks the scope " + string(need)
	case need == Own && right != "own":
		return true, "only its owner may do that"
	case need != Read && right == api.ShareRead:
		return true, "it is shared with you to read"
	}
	return true, ""
}

// Sight returns May in the form that the store calls for each task that a request finds. It refuses with problems.
func (c Caller) Sight(need Scope) func(api.Access) (seen bool, refused error) {
	return func(a api.Access) (bool, error) {
		seen, why := May(c, need, a)
		if why == "" {
			return seen, nil
		}
		return true, api.NewProblem(http.StatusForbidden, "not_allowed", "You may not do that to the task", why,
			"roost team share TASK NAME act  # by its owner")
	}
}

// Denied returns the problem of a caller whose token lacks a scope; nil when the token has it.
func (c Caller) Denied(need Scope) *api.Problem {
	if c.Can(need) {
		return nil
	}
	return api.NewProblem(http.StatusForbidden, "scope_missing", "The token does not allow that", "it lacks the scope "+string(need),
		"roost team token NAME TOKEN --scope "+string(need)+"  # by an administrator")
}

type callerKey struct{}

// With returns the context for a request of a caller.
func With(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// Of returns the caller of a context; ok is false where there are no accounts.
func Of(ctx context.Context) (c Caller, ok bool) {
	c, ok = ctx.Value(callerKey{}).(Caller)
	return c, ok
}

// Person returns the account that a context acts for: the owner of what the request makes. "" without accounts, and
// for the operator.
func Person(ctx context.Context) string {
	c, _ := Of(ctx)
	return c.Account
}
