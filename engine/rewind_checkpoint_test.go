package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/checkpoints"

	"github.com/roost-dev/roost/store/history"
)

// A rewind to a checkpoint goes back to when it was taken: what a call was to do goes with
// the checkpoint before it, and stays with the one behind it. Files, where they go too,
// are then as the checkpoint says.
func TestRewindToACheckpoint(t *testing.T) {
	ctx := context.Background()
	b, id, before, after := afterTwoTurns(t)
	list, err := b.engine.Checkpoints().List(ctx, id)
	if err != nil || len(list.Checkpoints) != 3 {
		t.Fatalf("got %+v, %v, want no error and len(list.Checkpoints) = 3", list.Checkpoints, err)
	}
	for _, c := range list.Checkpoints {
		want := c.Row + 1 // the first row that goes
		if c.Reason == "before" {
			want = c.Row
		}
		taken, restored, _, err := b.engine.Checkpoints().RewindFiles(ctx, id, history.RewindOptions{To: c.Name(), DryRun: true}, checkpoints.RestoreOptions{NewRestore: api.NewRestore{DryRun: true}})
		switch {
		case err != nil:
			t.Errorf("%s: %v", c.Name(), err)
		case taken.To == nil || taken.To.Number != want:
			t.Errorf("%s (%s, row %d) goes back to %+v, want #%d", c.Name(), c.Reason, c.Row, taken.To, want)
		case c.Reason == "before" && len(restored.Files) != len(before):
			t.Errorf("%s puts %+v back", c.Name(), restored.Files)
		case c.Reason != "before" && restored.To.Number != c.Number:
			t.Errorf("%s puts the files of c%d back", c.Name(), restored.To.Number)
		}
	}
	b.wantFiles("after dry runs", after)

	_, _, finish, err := b.engine.Checkpoints().RewindFiles(ctx, id, history.RewindOptions{To: "c1"}, checkpoints.RestoreOptions{})
	if err != nil || finish(ctx) != nil {
		t.Fatal(err)
	}
	b.wantFiles("after the rewind to c1", before)
	for given, want := range map[string]string{"c1": "no message follows c1", "c99": "the task has the checkpoints c1 to"} {
		_, _, _, err := b.engine.Checkpoints().RewindFiles(ctx, id, history.RewindOptions{To: given, DryRun: true}, checkpoints.RestoreOptions{NewRestore: api.NewRestore{DryRun: true}})
		var wrong *history.ReferenceError
		if !errors.As(err, &wrong) || wrong.Malformed || len(wrong.Why) < len(want) || wrong.Why[:len(want)] != want {
			t.Errorf("%s: got %v, want errors.As(err, &wrong) and not wrong.Malformed and len(wrong.Why) >= len(want) and wrong.Why[:len(want)] = %v",
				given, err, want)
		}
	}
}
