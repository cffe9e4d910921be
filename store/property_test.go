package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// onBranch reports whether a branch that was left shows a row.
func onBranch(s *task.State, m *task.Message) bool {
	return slices.ContainsFunc(s.Branches, func(b task.Branch) bool {
		return slices.Contains(s.History(b.Leaf, task.UI), m)
	})
}

// Whatever an editor does to the files in between, nothing that was committed and
// synced is ever lost from the journal, and reopening gives the same state.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		root, err := os.MkdirTemp("", "store-property-")
		fixture.NoError(t, err)
		defer os.RemoveAll(root)
		s := open(t, root)
		k := create(t, s, "prop")
		acked, next := map[uint64]bool{1: true}, 2
		for range rapid.IntRange(1, 3).Draw(r, "rounds") {
			for range rapid.IntRange(0, 3).Draw(r, "commits") {
				id := k.State().NextMessage()
				commit(t, k, task.UI, uiRow(next/2, fmt.Sprint("row ", next))) // time stamps repeat
				acked[id], next = true, next+1
			}
			want := rows(k.State())
			closeTask(t, k)
			o := own(t, s, "prop")
			if len(o.Task.Intakes()) != 0 || rows(o.Task.State()) != want {
				r.Fatalf("reopened: %+v\n%s\nwant %s", o.Task.Intakes(), rows(o.Task.State()), want)
			}
			closeTask(t, o.Task)

			dir := filepath.Join(root, "tasks", "prop")
			var list []string
			for e := range esjson.Array([]byte(read(t, dir, roofmt.UIName))) {
				list = append(list, string(e))
			}
			switch at := rapid.IntRange(0, len(list)-1).Draw(r, "at"); rapid.SampledFrom([]string{"none", "add", "change", "drop", "swap", "cut"}).Draw(r, "edit") {
			case "add":
				list, next = append(list, uiRow(next/2, fmt.Sprint("foreign ", next))), next+1
			case "change":
				ts, _ := esjson.GetInt([]byte(list[at]), "ts")
				list[at], next = uiRow(int(ts-ts0), fmt.Sprint("changed ", next)), next+1
			case "drop":
				list = append(list[:at], list[at+1:]...)
			case "swap":
				list[0], list[at] = list[at], list[0]
			case "cut":
				list = list[:at]
			}
			write(t, dir, roofmt.UIName, array(list...))
			k = own(t, s, "prop").Task
			for id := range acked {
				// What an editor took back together with its own rows is a branch.
				if m := k.State().Message(id); m == nil || m.Missing || m.Hidden != "" && !onBranch(k.State(), m) {
					r.Fatalf("message %d is gone", id)
				}
			}
		}
		closeTask(t, k)
		report := fixture.Must[CheckReport](t)(Rooms.Check(context.Background(), s, nil, false))
		if report.OK != 1 {
			r.Fatalf("got %+v, want report.OK = 1", report)
		}
	})
}
