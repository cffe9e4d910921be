package store

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/task"
)

// What was committed under a name is found by it, and says what it did as it did then.
func TestDeedsAreFoundByTheirName(t *testing.T) {
	s := open(t, t.TempDir())
	ref := worked(t, s, "mine")
	ctx := context.Background()
	for i, o := range []RewindOptions{{}, {To: "#4"}, {To: "#2", Keep: true}, {To: "#2", Edit: "other words"}} {
		name := string(rune('a' + i))
		before, err := s.CommitsBy(ctx, ref, name, 0)
		check(t, err)
		if r, done, err := s.RewoundBy(ctx, ref, o, before); done || err != nil || len(before) != 0 {
			t.Fatalf("%q did something before it was there: %+v %v", name, r, err)
		}
		did, finish, err := s.Rewind(Acting(ctx, name), ref, o)
		check(t, err)
		check(t, finish(ctx))
		commits, err := s.CommitsBy(ctx, ref, name, 0)
		check(t, err)
		again, done, err := s.RewoundBy(ctx, ref, o, commits)
		check(t, err)
		if d := cmp.Diff(did, again); d != "" || !done || len(commits) != 1 {
			t.Errorf("%+v is told as another (%d commits):\n%s", o, len(commits), d)
		}
	}
	if all, err := s.CommitsBy(ctx, ref, "a", 1<<50); err != nil || len(all) != 0 {
		t.Errorf("of later days: %v %v", all, err)
	}
	if all, err := s.CommitsBy(ctx, Ref{ID: "x", Log: filepath.Join(t.TempDir(), "none")}, "a", 0); err != nil || len(all) != 0 {
		t.Errorf("of no log: %v %v", all, err)
	}
	if ctx := Acting(ctx, ""); actor(ctx, "run") != "run" {
		t.Error("no name is a name")
	}
}

// The end of a restore that another process has finished belongs to who began it.
func TestARestoreIsOneDeedWhoeverEndsIt(t *testing.T) {
	s := open(t, t.TempDir())
	k := create(t, s, "mine")
	ctx := context.Background()
	check(t, k.Commit(Acting(ctx, "mine"), task.RestoreBegun{Restore: "r", To: 1}))
	begun := k.State().Seq
	check(t, k.Commit(ctx, task.RestoreEnded{Restore: "other", Begun: begun + 100, Outcome: task.RestoreDone}))
	check(t, k.Commit(ctx, task.RestoreEnded{Restore: "r", Begun: begun, Outcome: task.RestoreDone}))
	end := k.State().Seq
	closeTask(t, k)
	commits, err := s.CommitsBy(ctx, must[Ref](t)(s.Find(ctx, "mine")), "mine", 0)
	check(t, err)
	if len(commits) != 2 || commits[0].Seq != begun || commits[1].Seq != end {
		t.Errorf("%+v", commits)
	}
}

func TestAForkMayHaveItsIDGiven(t *testing.T) {
	s := open(t, t.TempDir())
	ref := worked(t, s, "mine")
	ctx := context.Background()
	const id = "0d9f3a52-8c2e-8b1a-9d3c-000000000001"
	if _, err := s.ForkOf(ctx, id); !errors.Is(err, ErrNotFound) {
		t.Errorf("there is none, and it says %v", err)
	}
	did, finish, err := s.Fork(ctx, ref, ForkOptions{ID: id, At: "#3", Origin: "api"})
	check(t, err)
	again, err := s.ForkOf(ctx, id)
	check(t, err)
	if d := cmp.Diff(did, again); d != "" || did.ID != id {
		t.Errorf("the fork is told as another:\n%s", d)
	}
	check(t, finish(ctx))
	if _, _, err := s.Fork(ctx, ref, ForkOptions{ID: id}); err == nil {
		t.Error("two forks have one id")
	}
	if again, err := s.ForkOf(ctx, id); err != nil || again.Messages != did.Messages {
		t.Errorf("the second one changed the first: %+v %v", again, err)
	}
}
