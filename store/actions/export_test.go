package actions

import (
	"context"

	"github.com/roost-dev/roost/store"
)

// CheckNext chooses the action again, as Undo does with the overlay locked.
func CheckNext(ctx context.Context, s *store.Store, t *TaskActions, o Options) error {
	return t.checkNext(ctx, s, o)
}

// PerformInJournal undoes the newest action in the task's journal, as Undo does after it has chosen it.
func PerformInJournal(ctx context.Context, s *store.Store, t *TaskActions, o Options) error {
	a, _ := t.done.newest()
	return t.performInJournal(ctx, s, a, o)
}
