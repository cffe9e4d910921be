package spend_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/spend"
	"github.com/roost-dev/roost/task"
)

// A tree is every task from its first parent down, whoever asks; a circle is counted
// once. The task that asks is left out: it knows itself what it spent.
func TestSpentByFamily(t *testing.T) {
	s, _ := family(t)
	for _, tt := range []struct {
		id, parent string
		want       money.USD
	}{
		{"parent", "", 4_000_003},
		{"child", "parent", 1_000_000 + 4_000_000},
		{"grandchild", "child", 1_000_003},
		{"new", "grandchild", 1_000_003 + 4_000_000}, // not listed yet
		{"new", "", 0},
		{"new", "gone", 0},
		{"round", "about", 250_000},
		{"about", "round", 500_000},
	} {
		got, err := spend.ByFamily(t.Context(), s, tt.id, tt.parent)
		if err != nil || got != tt.want {
			t.Errorf("%s below %q: %d, %v, want %d", tt.id, tt.parent, got, err, tt.want)
		}
	}
}

// Of a subtask that was imported and continued, and its original, each request counts once.
func TestTheFamilyOfACopyCountsEachRequestOnce(t *testing.T) {
	storage := filepath.Join(t.TempDir(), "rooveterinaryinc.roo-cline")
	s := storetest.Open(t, t.TempDir(), storage)
	for _, id := range []string{"parent", "child"} {
		dir := filepath.Join(storage, "tasks", id)
		storetest.Write(t, dir, roofmt.UIName, storetest.Array(storetest.UIRow(0, id), requestRow(1, "0.5")))
		storetest.Write(t, dir, roofmt.APIName, storetest.Array(storetest.APIRow(0, "user", id)))
		storetest.Write(t, dir, roofmt.ItemName, fmt.Sprintf(`{"id":%q,"ts":1,"task":"do it","parentTaskId":%q}`, id, map[string]string{"child": "parent"}[id]))
		ref := s.OwnRef(id)
		storetest.Check(t, os.CopyFS(ref.Dir, os.DirFS(dir)))
		storetest.Write(t, ref.Dir, store.ImportRecord, fmt.Sprintf(`{"from":%q}`, dir))
	}
	k := storetest.Own(t, s, "roost:child").Task
	request := k.State().NextMessage()
	storetest.Commit(t, k, task.UI, requestRow(3, "0.125"))
	storetest.Check(t, k.CommitSynced(t.Context(), task.UsageChanged{Request: request, Provider: "p", Model: "m", Input: 9, CostMicros: new(int64(125_000))}))
	storetest.Close(t, k) // its files differ from the original's now
	if got, err := spend.ByFamily(t.Context(), s, "parent", ""); err != nil || got != 625_000 {
		t.Errorf("below the parent: got %d, %v, want 625000", got, err)
	}
}

// A day is what was asked for from its first moment on, in every storage; what a task
// spent before that is left out although the task is one of the day.
func TestSpentSince(t *testing.T) {
	s, _ := family(t)
	const day = 24 * 3600 * 1000
	for _, tt := range []struct {
		what        string
		since       int64
		id          string
		own, others money.USD
	}{
		{"all of it", 0, "parent", 1_000_000, 4_000_003 + 500_000 + 250_000},
		{"from the third task's first request on", storetest.TS0 + 2*day + 1, "grandchild", 4_000_000, 750_000},
		{"from its second request on", storetest.TS0 + 2*day + 2, "grandchild", 2_000_000, 750_000},
		{"after it", storetest.TS0 + 2*day + 3, "grandchild", 0, 750_000},
		{"of a task that is not there", storetest.TS0 + 4*day, "new", 0, 250_000},
		{"in the future", storetest.TS0 + 100*day, "parent", 0, 0},
	} {
		own, others, err := spend.Since(t.Context(), s, tt.since, tt.id)
		if err != nil || own != tt.own || others != tt.others {
			t.Errorf("%s: %d and %d, %v, want %d and %d", tt.what, own, others, err, tt.own, tt.others)
		}
	}
}

// What was spent today stays spent when a rewind leaves a task with yesterday's messages.
func TestSpentSinceStaysAfterARewind(t *testing.T) {
	const day = 24 * 3600 * 1000
	s := storetest.OpenWith(t, store.Options{Root: t.TempDir(), Now: func() int64 { return storetest.TS0 + day + 9 }})
	k := storetest.Must[*store.Task](t)(s.Create(t.Context(), task.Created{Task: "rewound", CreatedAt: storetest.TS0}))
	defer storetest.Close(t, k)
	storetest.Commit(t, k, task.UI, storetest.UIRow(0, "yesterday"))
	request := k.State().NextMessage()
	storetest.Commit(t, k, task.UI, requestRow(day+1, "0.5"))
	for _, e := range []task.Event{
		task.UsageChanged{Request: request, CostMicros: new(int64(500_000))},
		task.MessageHidden{Messages: []uint64{request}, Reason: "rewind"},
	} {
		storetest.Check(t, k.CommitSynced(t.Context(), e))
		if _, others, err := spend.Since(t.Context(), s, storetest.TS0+day, "new"); others != 500_000 || err != nil {
			t.Errorf("after %T: got %d, %v, want 500000", e, others, err)
		}
	}
}

// A root that does not exist yet has spent nothing.
func TestNothingIsSpentWhereNothingIs(t *testing.T) {
	s := storetest.Open(t, filepath.Join(t.TempDir(), "root"))
	if own, others, err := spend.Since(t.Context(), s, 0, "x"); own != 0 || others != 0 || err != nil {
		t.Errorf("nothing there: %d, %d, %v", own, others, err)
	}
}
