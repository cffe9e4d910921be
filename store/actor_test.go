package store

import (
	"context"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/task"
)

func TestActingWithoutANameChangesNothing(t *testing.T) {
	if got := actor(Acting(context.Background(), ""), "run"); got != "run" {
		t.Errorf("got %q, want run", got)
	}
}

// The end of a restore that another process has finished belongs to who began it.
func TestARestoreIsOneDeedWhoeverEndsIt(t *testing.T) {
	s := open(t, t.TempDir())
	k := create(t, s, "mine")
	ctx := context.Background()
	fixture.NoError(t, k.Commit(Acting(ctx, "mine"), task.RestoreBegun{Restore: "r", To: 1}))
	begun := k.State().Seq
	fixture.NoError(t, k.Commit(ctx, task.RestoreEnded{Restore: "other", Begun: begun + 100, Outcome: task.RestoreDone}))
	fixture.NoError(t, k.Commit(ctx, task.RestoreEnded{Restore: "r", Begun: begun, Outcome: task.RestoreDone}))
	end := k.State().Seq
	closeTask(t, k)
	commits, err := s.CommitsBy(ctx, fixture.Must[Ref](t)(s.Find(ctx, "mine")), "mine", 0)
	fixture.NoError(t, err)
	if len(commits) != 2 || commits[0].Seq != begun || commits[1].Seq != end {
		t.Errorf("got %+v, want len(commits) = 2 and commits[0].Seq = begun and commits[1].Seq = end", commits)
	}
}
