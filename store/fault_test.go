package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/faultfs"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// allFaults makes every call to the disk fail in turn, and not a few: that takes a minute.
const allFaults = "ROOST_TEST_ALL_FAULTS"

// deeds is what can be done to a task, each as a caller does it.
var deeds = map[string]func(ctx context.Context, s *Store, id string) error{
	"a commit": func(ctx context.Context, s *Store, id string) error {
		return working(ctx, s, id, func(k *Task) error {
			if err := k.Commit(ctx, add(k, task.UI, uiRow(9, "new")), task.InputQueued{Input: "i", Text: "words"}); err != nil {
				return err
			}
			return k.Barrier(ctx)
		})
	},
	"a large message": func(ctx context.Context, s *Store, id string) error {
		return working(ctx, s, id, func(k *Task) error {
			if err := k.Commit(ctx, add(k, task.UI, uiRow(9, strings.Repeat("large ", 60<<10)))); err != nil {
				return err
			}
			return k.Barrier(ctx)
		})
	},
	"words beside a run": func(ctx context.Context, s *Store, id string) error {
		return working(ctx, s, id, func(k *Task) error {
			return k.ChangeInput(ctx, task.InputQueued{Input: "i", Text: "words", Images: pictures(300 << 10), By: "api"})
		})
	},
	"taking it over": func(ctx context.Context, s *Store, id string) error {
		return working(ctx, s, id, func(*Task) error { return nil })
	},
	"a rewind": func(ctx context.Context, s *Store, id string) error {
		ref, err := s.Find(ctx, id)
		if err != nil {
			return err
		}
		finish, err := Rooms.Rewind(ctx, s, ref, "#2")
		if finish != nil {
			err = errors.Join(err, finish(ctx))
		}
		return err
	},
	"a new task": func(ctx context.Context, s *Store, _ string) error {
		k, err := s.Create(ctx, task.Created{Task: "new", Number: 2, CreatedAt: ts0}, task.InputQueued{Input: "i", Text: "go"})
		if err != nil {
			return err
		}
		return k.Close(ctx)
	},
	"a fork": func(ctx context.Context, s *Store, id string) error {
		ref, err := s.Find(ctx, id)
		if err != nil {
			return err
		}
		_, finish, err := Rooms.Fork(ctx, s, ref, "#2")
		return errors.Join(err, finish(ctx))
	},
	"a deletion": func(ctx context.Context, s *Store, id string) error {
		ref, err := s.Find(ctx, id)
		if err != nil {
			return err
		}
		_, err = Rooms.Delete(ctx, s, ref)
		return err
	},
}

// working owns a task for a while.
func working(ctx context.Context, s *Store, id string, f func(*Task) error) error {
	ref, err := s.Find(ctx, id)
	if err != nil {
		return err
	}
	o, err := s.Own(ctx, ref)
	if err != nil {
		return err
	}
	return errors.Join(f(o.Task), o.Task.Close(ctx))
}

// allOf is all that a root says of its tasks, as a process finds it that comes later.
func allOf(t *testing.T, root string) string {
	t.Helper()
	s := open(t, root)
	var out strings.Builder
	for _, ref := range fixture.Must[[]Ref](t)(s.Refs(context.Background())) {
		v, err := s.Read(context.Background(), ref)
		if err != nil {
			t.Fatal(err)
		}
		if v.Summary.ID == "new" && v.State.NextMessage() == 1 && len(v.State.Queue) == 0 {
			fixture.NoError(t, v.Close()) // a folder that nothing was put into is no task
			continue
		}
		name := ref.ID
		if strings.Contains(name, "-") { // a fork's
			name = "other"
		}
		fmt.Fprintf(&out, "%s\n%s%v\n", name, rows(v.State), queueOf(v.State))
		for _, q := range v.State.Queue {
			whole, err := v.State.LoadInput(q)
			fmt.Fprintln(&out, len(whole.Images), err)
		}
		fixture.NoError(t, v.Close())
	}
	for _, d := range fixture.Must[[]DeletedTask](t)(s.Deleted(t.Context())) {
		fmt.Fprint(&out, "trash ", d.Name)
	}
	return out.String()
}

// onFaults is a root with one task, and what its journals are written through.
func onFaults(t *testing.T) (root string, s *Store, fs *faultfs.FS) {
	t.Helper()
	root = t.TempDir()
	k := create(t, open(t, root), "one")
	for i := range 4 {
		commit(t, k, task.UI, uiRow(i+2, "row"))
	}
	closeTask(t, k)
	fs = faultfs.New()
	s = fixture.Must[*Store](t)(Open(Options{Root: root, Program: "store test", FS: fs, Now: func() int64 { return 1700000100000 }}))
	return root, s, fs
}

// Whichever call to the disk fails, once, in whichever deed: what was acknowledged is there,
// what was refused is there whole or not at all, nothing is damaged, and the task goes on.
func TestADiskThatFailsOnceInAnyDeed(t *testing.T) {
	slow(t)
	for name, deed := range deeds {
		t.Run(name, func(t *testing.T) {
			root, s, fs := onFaults(t)
			before := allOf(t, root)
			calls := atomic.Int64{}
			fs.Fail(func(string, string) error { calls.Add(1); return nil })
			fixture.NoError(t, deed(t.Context(), s, "one"))
			after := allOf(t, root)
			step := max(1, calls.Load()/2)
			if os.Getenv(allFaults) != "" {
				step = 1
			}
			for i := min(2, calls.Load()); i <= calls.Load(); i += step {
				failed := syscall.ENOSPC
				if i%2 == 0 {
					failed = syscall.EIO
				}
				root, s, fs := onFaults(t)
				var at atomic.Int64
				var what atomic.Value
				fs.Fail(func(op, file string) error {
					if at.Add(1) != i {
						return nil
					}
					what.Store(op + " of " + file)
					return failed
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				err := deed(ctx, s, "one")
				cancel()
				fs.Fail(nil)
				got := allOf(t, root)
				switch {
				case err == nil && got != after:
					t.Errorf("%v failed: the deed was acknowledged, and is not there:\n%.300s", what.Load(), got)
				case err != nil && got != before && got != after:
					t.Errorf("%v failed: %v; it is neither there nor not:\n%.300s", what.Load(), err, got)
				}
				late := open(t, root)
				if got == before && before != after {
					fixture.NoError(t, deed(t.Context(), late, "one")) // asked for again
					if got := allOf(t, root); got != after {
						t.Errorf("%v failed: done again, there is\n%.300s", what.Load(), got)
					}
				}
				if !strings.Contains(name, "deletion") {
					fixture.NoError(t, working(t.Context(), late, "one", func(k *Task) error {
						return k.Commit(t.Context(), add(k, task.UI, uiRow(20, "goes on")))
					}))
				}
				if r := checkWith(t, late); len(r.Damaged) > 0 {
					t.Errorf("%v failed: %v; doctor finds %s", what.Load(), err, fmt.Sprint(r.Damaged))
				}
			}
			t.Logf("%d calls", calls.Load())
		})
	}
}

// The bytes of a damaged file are kept before the file is written again. While they cannot be kept, it stays.
func TestADamagedItemThatCannotBeKeptStays(t *testing.T) {
	root, s, fs := onFaults(t)
	item := filepath.Join(root, "tasks", "one", roofmt.ItemName)
	fixture.NoError(t, os.WriteFile(item, []byte(`{"id":"one"`), 0o600))
	fs.Fail(func(_, file string) error {
		if strings.HasPrefix(file, "tmp-") {
			return syscall.ENOSPC
		}
		return nil
	})
	err := working(t.Context(), s, "one", func(k *Task) error { return k.Commit(t.Context(), add(k, task.UI, uiRow(20, "more"))) })
	if got, rerr := os.ReadFile(item); string(got) != `{"id":"one"` {
		t.Errorf("got %.60q, %v, want the damaged item in its place: %v", got, rerr, err)
	}
}

// A payload that its owner could not open, once, is missing for that owner. It is not missing
// for everybody who comes later: what was folded without it is not kept as the snapshot.
func TestAFoldThatMissedAPayloadIsNotKept(t *testing.T) {
	root, s, fs := onFaults(t)
	want := uiRow(9, strings.Repeat("large ", 60<<10))
	var armed atomic.Bool
	fs.Fail(func(op, file string) error {
		// The first open behind the commit's write is the fold's.
		if op == "write" && file == "journal.jsonl" {
			armed.Store(true)
		}
		if op == "open" && len(file) == 64 && armed.CompareAndSwap(true, false) {
			return syscall.EMFILE
		}
		return nil
	})
	o := fixture.Must[*Owned](t)(s.Own(t.Context(), fixture.Must[Ref](t)(s.Find(t.Context(), "one"))))
	if err := o.Task.Commit(t.Context(), add(o.Task, task.UI, want)); !errors.Is(err, syscall.EMFILE) || !o.Task.State().Doubtful() {
		t.Errorf("the fold did not fail: %v", err)
	}
	fixture.NoError(t, o.Task.Close(t.Context()))
	fs.Fail(nil)
	late := open(t, root)
	if got := rows(view(t, late, "one").State); !strings.Contains(got, want) {
		t.Errorf("who comes later does not see it: %.300s", got)
	}
	closeTask(t, own(t, late, "one").Task)
	if r := checkWith(t, late); len(r.Damaged) > 0 {
		t.Errorf("doctor finds %s", fmt.Sprint(r.Damaged))
	}
}
