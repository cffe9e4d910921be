package task_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
)

// TestReceivedEndsWhatIsOpen: everything that a log holds open is over, and the histories and what
// is said of files and money stay.
func TestReceivedEndsWhatIsOpen(t *testing.T) {
	yes := true
	had := task.Settings{Workspace: "/w", Mode: "code", Provider: "anthropic", Model: "m", BaseURL: "http://x", Approve: "all", Allow: []string{"rm"}, Limits: api.RunLimits{MaxTurns: 3}}
	cost := int64(7)
	s := task.New(nil)
	seq := uint64(0)
	apply := func(events ...task.Event) {
		t.Helper()
		seq++
		if err := s.Apply(encode(t, seq, events...)); err != nil {
			t.Fatal(err)
		}
	}
	raw := func(text string) task.Body { return task.Body{Raw: []byte(text)} }
	apply(task.Created{Task: "t", Settings: had})
	apply(task.RunStarted{Run: "r", Settings: had}, task.UsageChanged{Turn: 1, CostMicros: &cost})
	apply(task.MessageAdded{History: task.API, Message: 1, Body: raw(`{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"execute_command","input":{}}]}`)})
	apply(api.QuestionOpened{Question: "q", Kind: "approval", Call: "c", Text: "run it?"})
	apply(api.QuestionClosed{Question: "q", Approve: &yes, By: "api"})
	apply(api.QuestionOpened{Question: "other", Kind: "followup", Text: "which?"}, task.InputQueued{Input: "i", Text: "words"})
	before := both(t, s)
	if !s.Open() || len(s.Brings()) == 0 {
		t.Fatal("nothing is open before")
	}

	apply(task.Received{From: task.FromImport, Had: s.Settings, Settings: s.Settings.Proposed()})
	if s.Open() || len(s.Questions)+len(s.Answered)+len(s.Queue) > 0 {
		t.Errorf("open: %d questions, %d answers, %d words", len(s.Questions), len(s.Answered), len(s.Queue))
	}
	if s.Run.Outcome != "interrupted" || s.Run.Code != "received" {
		t.Errorf("the run is %q %q, want interrupted, received", s.Run.Outcome, s.Run.Code)
	}
	if got := s.Call("c").Outcome(); got != task.OutcomeUnknown {
		t.Errorf("the call is %s, want unknown: it must not run as one that was allowed", got)
	}
	if want := (task.Settings{Workspace: "/w", Mode: "code", Provider: "anthropic", Model: "m"}); !cmp.Equal(s.Settings, want) {
		t.Errorf("settings %+v, want %+v", s.Settings, want)
	}
	if after := both(t, s); after != before {
		t.Errorf("the histories changed:\n%s\nwant\n%s", after, before)
	}
	if s.Usage.CostMicros != cost {
		t.Errorf("cost %d, want %d", s.Usage.CostMicros, cost)
	}
	if s.Begins != seq {
		t.Errorf("it begins at %d, want %d", s.Begins, seq)
	}
	notes := strings.Join(s.Received.Notes(s.Settings), "\n")
	for _, want := range []string{"approve all", "rm", "http://x", "words", "1 recorded answer"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes do not name %q:\n%s", want, notes)
		}
	}
	if s.Run.Outcome != "interrupted" || s.Run.Code != "received" || s.Runs.Find("r") != s.Run {
		t.Errorf("run %+v, want one that is interrupted by what was received", s.Run)
	}
	if back := s.Settings.Trusting(had); !cmp.Equal(back, had) {
		t.Errorf("taken over: %+v, want %+v", back, had)
	}

	// At its user's word everything stays.
	apply(task.InputQueued{Input: "j", Text: "more"})
	apply(task.Received{From: task.FromElsewhere, Had: s.Settings, Settings: s.Settings, Kept: true})
	if len(s.Queue) != 1 || s.Begins != seq || s.Received.Notes(s.Settings) != nil {
		t.Errorf("kept: %d words, begins %d, notes %q", len(s.Queue), s.Begins, s.Received.Notes(s.Settings))
	}
}

// Settings that give no powers need no words.
func TestSettingsWithoutPowersAreNotNoted(t *testing.T) {
	r := &task.Reception{Had: task.Settings{Mode: "code", Approve: "ask"}}
	if got := r.Notes(task.Settings{}); got != nil {
		t.Errorf("got %q, want no notes", got)
	}
}

// The runs, questions and inputs before a fork are another task's.
func TestAForkBeginsAHistoryOfItsOwn(t *testing.T) {
	w := tell(t, task.Created{Task: "base"}, task.RunStarted{Run: "r"})
	w.then(api.QuestionOpened{Question: "q"}, task.InputQueued{Input: "i"})
	w.then(task.Forked{Task: "fork", From: "base"})
	if d := cmp.Diff(task.RunHistory{}, w.Runs, cmpopts.IgnoreUnexported(task.RunHistory{})); d != "" || w.Run != nil || w.Runs.Find("r") != nil {
		t.Errorf("run %+v, history %s", w.Run, d)
	}
	w.then(task.RunStarted{Run: "own"})
	if w.Run.ID != "own" || len(w.Runs.All) != 1 {
		t.Errorf("newest %q of %d runs, want the fork's own", w.Run.ID, len(w.Runs.All))
	}
}
