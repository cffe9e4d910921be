package history_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/history"
)

// What was committed under a name is found by it, and says what it did as it did then.
func TestDeedsAreFoundByTheirName(t *testing.T) {
	s := storetest.Open(t, t.TempDir())
	ref := worked(t, s, "mine")
	ctx := context.Background()
	for i, o := range []history.RewindOptions{{}, {To: "#4"}, {To: "#2", Keep: true}, {To: "#2", Edit: "other words"}} {
		name := string(rune('a' + i))
		before, err := s.CommitsBy(ctx, ref, name, 0)
		storetest.Check(t, err)
		if r, done, err := history.FindRewind(ctx, s, ref, o, before); done || err != nil || len(before) != 0 {
			t.Fatalf("%q did something before it was there: %+v %v", name, r, err)
		}
		did, finish, err := history.Rewind(store.Acting(ctx, name), s, ref, o)
		storetest.Check(t, err)
		storetest.Check(t, finish(ctx))
		commits, err := s.CommitsBy(ctx, ref, name, 0)
		storetest.Check(t, err)
		again, done, err := history.FindRewind(ctx, s, ref, o, commits)
		storetest.Check(t, err)
		if d := cmp.Diff(did, again); d != "" || !done || len(commits) != 1 {
			t.Errorf("%+v is told as another (%d commits):\n%s", o, len(commits), d)
		}
	}
	if all, err := s.CommitsBy(ctx, ref, "a", 1<<50); err != nil || len(all) != 0 {
		t.Errorf("of later days: %v %v", all, err)
	}
	if all, err := s.CommitsBy(ctx, store.Ref{ID: "x", Log: filepath.Join(t.TempDir(), "none")}, "a", 0); err != nil || len(all) != 0 {
		t.Errorf("of no log: %v %v", all, err)
	}
}

func TestAForkMayHaveItsIDGiven(t *testing.T) {
	s := storetest.Open(t, t.TempDir())
	ref := worked(t, s, "mine")
	ctx := context.Background()
	const id = "0d9f3a52-8c2e-8b1a-9d3c-000000000001"
	if _, err := history.FindFork(ctx, s, id); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("there is none, and it says %v", err)
	}
	did, finish, err := history.Fork(ctx, s, ref, history.ForkOptions{ID: id, At: "#3", Origin: "api"})
	storetest.Check(t, err)
	again, err := history.FindFork(ctx, s, id)
	storetest.Check(t, err)
	if d := cmp.Diff(did, again); d != "" || did.ID != id {
		t.Errorf("the fork is told as another:\n%s", d)
	}
	storetest.Check(t, finish(ctx))
	if _, _, err := history.Fork(ctx, s, ref, history.ForkOptions{ID: id}); err == nil {
		t.Error("two forks have one id")
	}
	if again, err := history.FindFork(ctx, s, id); err != nil || again.Messages != did.Messages {
		t.Errorf("the second one changed the first: %+v %v", again, err)
	}
}

func TestAForkThatCannotBeMadeTakesNothingOver(t *testing.T) {
	storage, _ := clineStorage(t)
	root := t.TempDir()
	s := storetest.Open(t, root, storage)
	ref := storetest.Find(t, s, "1730047571772")
	before := storetest.Tree(t, root)
	for _, o := range []history.ForkOptions{{At: "#99"}, {Branch: "b9"}} {
		if out, _, err := history.Fork(context.Background(), s, ref, o); err == nil {
			t.Errorf("got %+v: %+v, want an error", o, out)
		}
		if d := cmp.Diff(before, storetest.Tree(t, root)); d != "" {
			t.Errorf("got %+v: %s, want d = \"\"", o, d)
		}
	}
	out, finish, err := history.Fork(context.Background(), s, ref, history.ForkOptions{At: "#1"})
	storetest.Check(t, err)
	storetest.Check(t, finish(context.Background()))
	if out.ID == "" || out.Messages.UI != 1 {
		t.Errorf("got %+v, want out.ID != \"\" and out.Messages.UI = 1", out)
	}
}

// clineStorage is a storage of a tool whose folders Roost does not write, with one task.
func clineStorage(t testing.TB) (storage, dir string) {
	storage = filepath.Join(t.TempDir(), "saoudrizwan.claude-dev")
	dir = filepath.Join(storage, "tasks", "1730047571772")
	storetest.Write(t, dir, roofmt.UIName, storetest.Array(storetest.UIRow(1, "one"), storetest.UIRow(2, "two")))
	storetest.Write(t, dir, roofmt.APIName, storetest.Array(storetest.APIRow(1, "user", "one"), storetest.APIRow(2, "assistant", "two")))
	return storage, dir
}
