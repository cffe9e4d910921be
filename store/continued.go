package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/intake"
)

// forkSpace keeps ids of forks apart from all other name-based ids.
var forkSpace = uuid.MustParse("7d0a1f5e-1f5b-5c1e-9a35-6f0f7a6f2c11")

// forkID is the id under which a foreign task is continued. It follows from the task's place: continuing it again, also
// from two processes at the same moment, leads to the same fork. A random id would make a new fork each time.
func forkID(from Ref) string {
	return uuid.NewSHA1(forkSpace, []byte(from.Source+"\x00"+from.ID)).String()
}

// Continued is the task in Roost's own root that continues a foreign one, if there is one: its settings and messages are
// the newer ones. Owning either of the two owns that task.
func (s *Store) Continued(ref Ref) (Ref, bool) {
	if ref.Own {
		return Ref{}, false
	}
	fork := s.OwnRef(forkID(ref))
	return fork, HasJournal(fork.Log)
}

// Latest is the task that continues a foreign one, or the task itself.
func (s *Store) Latest(ref Ref) Ref {
	if fork, ok := s.Continued(ref); ok {
		return fork
	}
	return ref
}

// FindLatest is Find, and Latest of what it finds.
func (s *Store) FindLatest(ctx context.Context, given string) (Ref, error) {
	ref, err := s.Find(ctx, given)
	if err != nil {
		return ref, err
	}
	return s.Latest(ref), nil
}

// fork continues a task whose format has no proven writer as a task of Roost's own root: first as a new one, then always
// as that one.
func (s *Store) fork(ctx context.Context, from Ref, folder *roofmt.Folder) (*Owned, error) {
	t, err := s.take(ctx, s.OwnRef(forkID(from)))
	if err != nil {
		return nil, err
	}
	t.Ref.Tool = from.toolOf(folder)
	owned := &Owned{Task: t, Forked: from.Source + ":" + from.ID}
	if empty(t.state) {
		err = t.adopt(ctx, folder)
	} else {
		owned.Again = true
		err = s.forkAgain(ctx, owned, folder)
	}
	if err != nil {
		return nil, errors.Join(err, t.Close(ctx))
	}
	return owned, nil
}

// forkAgain continues an existing fork. It takes in what other programs changed in the fork's folder and in the
// original.
func (s *Store) forkAgain(ctx context.Context, o *Owned, original *roofmt.Folder) error {
	t := o.Task
	from := t.state.Adopted
	if from == nil || clean(from.Dir) != clean(original.Dir) {
		return fmt.Errorf("task %s: it is no continuation of %s; move it out of %s to continue that one", t.Ref.ID, original.Dir, s.TasksDir())
	}
	folder, err := t.readFolder(ctx)
	if err != nil {
		return err
	}
	if folder != nil {
		defer folder.Close()
	}
	if err := s.adoptOrTakeIn(ctx, o, folder); err != nil {
		return err
	}
	changes, err := t.takeInOriginal(ctx, original)
	o.Intakes = append(o.Intakes, changes...)
	return err
}

// takeInOriginalOf does for a fork that is owned by its own id what owning it by the original's id does. It skips an
// original that cannot be read now.
func (s *Store) takeInOriginalOf(ctx context.Context, o *Owned) error {
	t := o.Task
	from := t.state.Adopted
	if !t.Ref.Own || from == nil || from.Dir == "" {
		return nil
	}
	tasks, id := roofmt.PlaceOf(from.Dir)
	if forkID(Ref{Source: SourceName(tasks), ID: id}) != t.Ref.ID {
		return nil
	}
	folder, err := intake.ReadSettled(ctx, from.Dir, intake.Originals(from), s.wait)
	if err != nil {
		return ctx.Err()
	}
	defer folder.Close()
	changes, err := t.takeInOriginal(ctx, folder)
	o.Intakes = append(o.Intakes, changes...)
	return err
}
