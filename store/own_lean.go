package store

import (
	"context"
	"fmt"

	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/task"
)

// BranchName is the name of the branch that a commit left.
func BranchName(seq uint64) string { return fmt.Sprintf("b%d", seq) }

// OwnLean owns a task like Own, but reads no more than it must: the log from its snapshot on, and Roo's files only where
// another program may have changed them. The next owner compares everything.
func (s *Store) OwnLean(ctx context.Context, ref Ref) (*Owned, error) {
	v := &View{Ref: ref}
	if linked(ref.Dir) || !HasJournal(ref.Log) || !v.asWritten() {
		return s.Own(ctx, ref)
	}
	if err := s.Prepare(); err != nil {
		return nil, err
	}
	t, err := s.takeWith(ctx, ref, ref.Own, true)
	if err != nil {
		return nil, err
	}
	if t.damaged() || empty(t.state) || !v.asWritten() || !t.proj.ReadUnchanged() {
		if err := t.release(); err != nil {
			return nil, err
		}
		return s.Own(ctx, ref)
	}
	return &Owned{Task: t}, nil
}

// OwnMade owns a task of the root that the caller has just made. No other program can have changed its files, so it
// compares nothing.
func (s *Store) OwnMade(ctx context.Context, ref Ref) (*Task, error) {
	return s.takeWith(ctx, ref, true, true)
}

// CommitDurably commits events and makes them durable. what begins the names of the failpoints at which tests kill the process.
func (t *Task) CommitDurably(ctx context.Context, what string, events ...task.Event) error {
	failpoint.Hit(what + ".before")
	err := t.Commit(ctx, events...)
	if err == nil {
		failpoint.Hit(what + ".committed")
		err = t.Barrier(ctx)
	}
	if err == nil {
		failpoint.Hit(what + ".synced")
	}
	return err
}

// release gives up an owned task to which nothing was done.
func (t *Task) release() error {
	t.proj.Stop()
	t.wants.moved(t.state.Seq)
	return t.log.Close()
}
