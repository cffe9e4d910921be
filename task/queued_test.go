package task

import (
	"testing"

	"github.com/roost-dev/roost/journal"
)

// folded is the state behind commits of one event each, a second apart.
func folded(t *testing.T, events ...Event) *State {
	t.Helper()
	s := New(nil)
	for i, e := range events {
		raw, err := Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		c := journal.Commit{Seq: uint64(i + 1), Epoch: 1, At: int64(i+1) * 1000}
		c.Events = append(c.Events, raw)
		if err := s.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestAQueuedRun(t *testing.T) {
	opened := EpochOpened{}
	queued := RunQueued{Run: "b", Settings: Settings{Mode: "ask"}, Yes: true}
	started := RunStarted{Run: "b", Settings: Settings{Mode: "ask"}}
	ended := RunEnded{Run: "a", Outcome: "completed"}

	s := folded(t, opened, RunStarted{Run: "a"}, ended, queued)
	if r := s.Run; !r.Waits() || r.ID != "b" || r.Queued != 4000 || !r.Yes || r.Predecessor() == nil || r.Predecessor().Outcome != "completed" {
		t.Errorf(`got %+v, want r.Waits() and r.ID = "b" and r.Queued = 4000 and r.Yes and r.Predecessor() != nil and r.Predecessor().Outcome = "completed"`,
			r)
	}
	if len(s.Runs.All) != 2 {
		t.Errorf("%d runs", len(s.Runs.All))
	}
	s = folded(t, opened, RunStarted{Run: "a"}, ended, queued, started)
	if r := s.Run; r.Waits() || r.Queued != 4000 || r.Started != 5000 || len(s.Runs.All) != 2 {
		t.Errorf("begun: %+v, %d runs", r, len(s.Runs.All))
	}
	if s = folded(t, opened, queued); s.Run.Predecessor() != nil {
		t.Errorf("the first run has a predecessor: %+v", s.Run)
	}
	if s = folded(t, opened, queued, RunEnded{Run: "b", Outcome: "cancelled"}); s.Run.Waits() || s.Run.Outcome != "cancelled" {
		t.Errorf("taken out of the queue: %+v", s.Run)
	}
	if s = folded(t, opened, started, queued); s.Run.Waits() {
		t.Errorf("a run that works was put into the queue: %+v", s.Run)
	}
}

// A limit that a queue or a question would reset is none.
func TestARunThatGoesOnUnderItsNameKeepsWhatItSpent(t *testing.T) {
	cost := int64(7)
	spent := UsageChanged{CostMicros: &cost}
	first := []Event{EpochOpened{}, RunStarted{Run: "a"}, spent, TurnEnded{Run: "a"}}
	for name, c := range map[string]struct {
		then  []Event
		turns int
		micro int64
		runs  int
	}{
		"waited":                           {[]Event{RunWaiting{Run: "a", Question: "q1"}, RunStarted{Run: "a"}}, 1, 7, 1},
		"killed, and queued anew":          {[]Event{RunQueued{Run: "b"}, RunStarted{Run: "b"}}, 1, 7, 2},
		"ended as interrupted, and queued": {[]Event{RunEnded{Run: "a", Outcome: "interrupted"}, RunQueued{Run: "b"}, RunStarted{Run: "b"}}, 1, 7, 2},
		"completed, and queued":            {[]Event{RunEnded{Run: "a", Outcome: "completed"}, RunQueued{Run: "b"}, RunStarted{Run: "b"}}, 0, 0, 2},
	} {
		s := folded(t, append(append([]Event{}, first...), c.then...)...)
		if s.Run.Turns != c.turns || s.Run.CostMicros != c.micro || len(s.Runs.All) != c.runs || s.Run.Started == 0 {
			t.Errorf("%s: %+v, %d runs", name, s.Run, len(s.Runs.All))
		}
	}
	s := folded(t, append(first, RunWaiting{Run: "a", Question: "q1"}, RunStarted{Run: "a"})...)
	if s.Run.Waiting != "" || s.Run.Started != 2000 {
		t.Errorf("got %+v, want s.Run.Waiting = \"\" and s.Run.Started = 2000", s.Run)
	}
}

func TestWordsInTheQueueAreReplacedInTheirPlace(t *testing.T) {
	s := folded(t, EpochOpened{}, InputQueued{Input: "a", Text: "1"}, InputQueued{Input: "b", Text: "2"}, InputQueued{Input: "a", Text: "other"})
	if len(s.Queue) != 2 || s.Queue[0].Text != "other" || s.Queue[1].Text != "2" {
		t.Errorf(`got %+v, want len(s.Queue) = 2 and s.Queue[0].Text = "other" and s.Queue[1].Text = "2"`, s.Queue)
	}
	if s = folded(t, EpochOpened{}, InputQueued{Input: "a"}, InputTaken{Input: "a", Dropped: true}); len(s.Queue) != 0 {
		t.Errorf("got %+v, want len(s.Queue) = 0", s.Queue)
	}
}
