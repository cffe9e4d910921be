package task_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/task"
)

func said(h task.History, n uint64, before uint64) task.Event {
	return task.MessageAdded{History: h, Message: n, Before: before, Body: task.Body{Raw: []byte(`{"role":"user","content":"m` + string(rune('0'+n)) + `"}`)}}
}

func words(s *task.State) string {
	var out []string
	for _, m := range s.API() {
		raw := string(m.Raw())
		at := strings.Index(raw, `"m`)
		out = append(out, raw[at+1:at+3])
	}
	return strings.Join(out, " ")
}

// A message can be put between two others, and stays there in a snapshot. One whose
// place is gone, or in the other history, comes at the end.
func TestAMessageBeforeAnother(t *testing.T) {
	for name, c := range map[string]struct {
		before uint64
		want   string
	}{
		"the first": {1, "m4 m1 m2"}, "the second": {2, "m1 m4 m2"}, "none": {0, "m1 m2 m4"},
		"unknown": {9, "m1 m2 m4"}, "of the other history": {3, "m1 m2 m4"}, "itself": {4, "m1 m2 m4"},
	} {
		s := folded(t, nil, []task.Event{task.Created{Task: "t"}, said(task.API, 1, 0), said(task.API, 2, 0), said(task.UI, 3, 0), said(task.API, 4, c.before)})
		if got := words(s); got != c.want {
			t.Errorf("%s: %s, wanted %s", name, got, c.want)
		}
		if len(s.Problems) != 0 {
			t.Errorf("%s: got %v, want len(s.Problems) = 0", name, s.Problems)
		}
	}
}

// What providers refuse and how long a quota lasts is in the state, and in its
// snapshot; the next request ends the wait.
func TestWithheldAndWaiting(t *testing.T) {
	held := task.MessageWithheld{Run: "r", Message: 1, Block: 2, Images: true, Provider: "p", What: "the image", Reason: "no"}
	failed := []task.Event{task.TurnFailed{Run: "r", Turn: 1, Kind: "rate_limited", WaitMS: 60, Until: 9_000}, held}
	s := folded(t, nil, []task.Event{task.Created{Task: "t"}}, failed)
	snapshot, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	again, err := task.Restore(snapshot, nil, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*task.State{s, again} {
		if d := cmp.Diff([]task.MessageWithheld{held}, s.Withheld); d != "" || s.WaitingUntil != 9_000 || s.Failures != 1 {
			t.Errorf("waiting until %d, %d failures: %s", s.WaitingUntil, s.Failures, d)
		}
	}
	for name, next := range map[string]task.Event{"a request": task.TurnStarted{Turn: 2}, "a failure of another kind": task.TurnFailed{Turn: 1}} {
		if s := folded(t, nil, []task.Event{task.Created{Task: "t"}}, failed, []task.Event{next}); s.WaitingUntil != 0 || len(s.Withheld) != 1 {
			t.Errorf("after %s it waits until %d", name, s.WaitingUntil)
		}
	}
}

func TestTruncationEventsComeBackAsTheyWere(t *testing.T) {
	for _, e := range []task.Event{
		task.HistoryTruncated{Run: "r", Truncation: "id", Messages: 4, Before: 10, After: 5},
		task.MessageWithheld{Run: "r", Message: 7, Block: -1, Provider: "p", What: "w"},
		task.MessageAdded{History: task.API, Message: 3, Before: 2, Body: task.Body{Raw: []byte(`{}`)}},
		task.TurnFailed{Run: "r", Until: 5},
	} {
		raw, err := task.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		got, err := task.Decode(raw)
		if d := cmp.Diff(e, got); d != "" || err != nil {
			t.Errorf("%s: got %v %s, want d = \"\" and no error", raw, err, d)
		}
	}
}
