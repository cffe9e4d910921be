package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/roofmt"
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
	if t.damaged() || empty(t.state) || !v.asWritten() || !t.proj.readUnchanged() {
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
	close(t.proj.stop)
	<-t.proj.done
	t.wants.moved(t.state.Seq)
	return t.log.Close()
}

// readUnchanged reads the two small files as they are and checks that the histories can be opened. It is false when a file
// cannot be read.
func (p *projector) readUnchanged() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range []string{roofmt.UIName, roofmt.APIName} {
		f, err := roofmt.OpenFile(p.task.Ref.Dir, name)
		if err != nil || f.Close() != nil {
			return false
		}
	}
	for name, to := range map[string]*[]byte{roofmt.ItemName: &p.base, roofmt.MetadataName: &p.meta} {
		f, err := roofmt.OpenFile(p.task.Ref.Dir, name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return false
		}
		data, err := io.ReadAll(f)
		err = errors.Join(err, f.Close())
		if err != nil || esjson.TypeOf(data) != esjson.TypeObject || !esjson.Valid(data) {
			return false
		}
		*to = data
	}
	return true
}
