package actions

import (
	"context"

	"github.com/roost-dev/roost/store"
)

// Found are the actions of a task, before Undo performs one.
type Found = taskActions

// Look finds the actions of a task, as Undo does first.
func Look(ctx context.Context, s *store.Store, given string) (Found, error) {
	return find(ctx, s, given)
}

// CheckNext chooses the action again, as Undo does with the overlay locked.
func CheckNext(ctx context.Context, s *store.Store, t *Found, o Options) error {
	return t.checkNext(ctx, s, o)
}

// PerformInJournal undoes the newest action in the task's journal, as Undo does after it has chosen it.
func PerformInJournal(ctx context.Context, s *store.Store, t *Found, o Options) error {
	a, _ := t.done.newest()
	return t.performInJournal(ctx, s, a, o, nil)
}
