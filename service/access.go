package service

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/roost-dev/roost/accounts"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/actions"
)

// As returns a context for the calls of a person, a team or the operator, for acts that need a scope. The calls find
// the tasks that this caller may use with the scope, and the caller owns what they make. A context without a caller
// is that of the only user, who owns every task.
func As(ctx context.Context, c accounts.Caller, need accounts.Scope) context.Context {
	ctx = accounts.With(ctx, c)
	if need == accounts.Admin || c.Operator {
		return ctx // what is done to the whole store is done to all tasks
	}
	return store.Seeing(ctx, c.Sight(need))
}

// ordered returns a request with the caller of a context as its person.
func ordered(ctx context.Context, r engine.Request) engine.Request {
	r.Person = accounts.Person(ctx)
	if c, ok := accounts.Of(ctx); ok {
		r.NoApprovals = !c.Can(accounts.Approve)
	}
	return r
}

// mayLoosen refuses settings that choose what runs without asking, or where a key is sent, from a caller who lacks the
// scope for it. A list of rules replaces the one that is there, so one that denies may loosen, too.
func mayLoosen(ctx context.Context, n api.Settings, trust bool) error {
	rules := [][]string{n.Allow, n.Deny, n.AllowTools, n.AskTools, n.DenyTools}
	asks := n.Limits != nil && (n.Limits.AskAfterRequests != nil || n.Limits.AskAfterCost != nil)
	given := slices.ContainsFunc(rules, func(l []string) bool { return l != nil })
	return may(ctx, accounts.Approve, trust || asks || given || n.Approve != "" || n.BaseURL != "")
}

// mayName refuses a folder that a request names to a caller who may start no task: only who may start tasks may read what the
// server may read.
func mayName(ctx context.Context, dir string) error { return may(ctx, accounts.Act, dir != "") }

// may refuses a caller who lacks a scope that the call needs.
func may(ctx context.Context, scope accounts.Scope, needed bool) error {
	if c, ok := accounts.Of(ctx); ok && needed && !c.Can(scope) {
		return c.Denied(scope)
	}
	return nil
}

// Administers reports whether the caller of a context may see and change the server itself, such as its devices.
func (s *Service) Administers(ctx context.Context) bool { return may(ctx, accounts.Admin, true) == nil }

// Refusal returns why the caller of a context may not act on a task; "" = the caller may.
func (s *Service) Refusal(ctx context.Context, a api.Access) (why string) {
	if c, ok := accounts.Of(ctx); ok {
		_, why = accounts.May(c, accounts.Act, a)
	}
	return why
}

// SetAccess shares a task and its subtasks, or gives them to another owner. Undo can take that back.
func (s *Service) SetAccess(ctx context.Context, c Call, id string, a api.Access) (api.Summary, error) {
	var w wrongs
	seen := map[string]bool{}
	for _, share := range a.Shares {
		if share.Right != api.ShareRead && share.Right != api.ShareAct {
			w.add("/shares", "want the right read or act")
		}
		if share.With == "" || share.With == a.Owner || seen[share.With] {
			w.add("/shares", "want each account once, and not the owner")
		}
		seen[share.With] = true
	}
	if len(a.Shares) > maxShares {
		w.add("/shares", "want at most %d shares", maxShares)
	}
	if err := w.err(); err != nil {
		return api.Summary{}, err
	}
	ctx = c.acting(ctx)
	ref, err := s.store.Find(ctx, id)
	if err != nil {
		return api.Summary{}, err
	}
	caller, accountsThere := accounts.Of(ctx)
	if !ref.Own || !accountsThere {
		return api.Summary{}, problem(http.StatusConflict, "no_access", "The task has no access to set",
			"only Roost's own tasks can be shared, and only in a store with accounts")
	}
	below, err := s.below(ctx, ref)
	if err != nil {
		return api.Summary{}, err
	}
	for _, one := range append([]store.Ref{ref}, below...) {
		was, err := s.store.Access(ctx, one)
		if err != nil {
			return api.Summary{}, err
		}
		if was.Owner != a.Owner && !caller.Can(accounts.Admin) && !caller.Is(was.Owner) {
			continue // a subtask of another owner
		}
		if was.Owner == a.Owner && slices.Equal(was.Shares, a.Shares) {
			continue
		}
		if err := s.engine.ChangeAccess(ctx, one, a); err != nil {
			return api.Summary{}, err
		}
	}
	return store.FromView(ctx, s.store, ref, summaryOf) // by its place: Find no longer shows it to a caller who gave it away
}

// maxShares bounds the shares of a task: each list reads them.
const maxShares = 100

// mayUndo refuses a caller who is not the owner of the task, if the action is one that only the owner may undo or
// redo. It writes the action that it judged into the options, so that no other action is undone.
func (s *Service) mayUndo(ctx context.Context, id string, o *actions.Options) error {
	c, ok := accounts.Of(ctx)
	if !ok || c.Operator {
		return nil
	}
	found, err := actions.Find(ctx, s.store, id)
	if err != nil {
		return err
	}
	list := found.Undo
	if o.Redo {
		list = found.Redo
	}
	if len(list) == 0 {
		return nil
	}
	o.Only = cmp.Or(o.Only, list[0].ID)
	if kind := list[0].Kind; kind == api.ActionShare || kind == "delete" {
		_, err = c.Sight(accounts.Own)(found.Task.Access)
	}
	return err
}

// Shows reports whether the caller of a context may see a task, also in the trash, by its whole id. It fails while the
// database does not answer.
func (s *Service) Shows(ctx context.Context, id string) (bool, error) {
	if c, ok := accounts.Of(ctx); !ok || c.Operator {
		return true, nil
	}
	seen := func(ref store.Ref) bool { return s.store.HasJournal(ctx, ref) && s.store.Sees(ctx, ref) }
	places := []store.Ref{s.store.OwnRef(id), s.store.TrashRef(id)}
	if slices.ContainsFunc(places, seen) {
		return true, nil
	}
	err := s.Database(ctx)
	return err == nil && slices.ContainsFunc(places, seen), err // it may not have answered before
}
