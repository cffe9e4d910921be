package task

import (
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/journal"
)

// Run is one stretch of work on the task.
type Run struct {
	ID       string
	Settings Settings
	Head     string // the workspace's git HEAD when it began
	Queued   int64  `json:",omitempty"` // when it entered the queue, Unix milliseconds; 0 = it did not wait there
	Started  int64  // Unix milliseconds; 0 = it is still in the queue
	Ended    int64
	Outcome  string // "" while it has no end
	Reason   string // of an older run with a long one: "", see State.WithReasons
	Code     string
	Waiting  string // the question it waits for, or the subtask that asks; "" = it waits for none
	Rewound  bool   `json:",omitempty"` // the histories moved to another branch since
	Yes      bool   `json:",omitempty"` // of a queued one: it continues without further input
	After    string `json:",omitempty"` // of a queued one: the outcome of the run before it; "none" = there was none, "" = it had none

	ChildQuestion string   `json:",omitempty"` // the question of the subtask that Waiting names
	Before        Position `json:",omitzero"`  // the event before the run's first one
	ReasonAt      Position `json:",omitzero"`  // the event with the whole Reason, where that is long

	// The use that the limits bound. A run that continues another one inherits that one's use.
	Turns      int   `json:",omitempty"` // requests that brought a reply
	CostMicros int64 `json:",omitempty"` // of the requests whose price is known
	WorkedMS   int64 `json:",omitempty"` // only of runs whose time is limited

	// The use of this run alone.
	OwnTurns      int   `json:",omitempty"`
	OwnCostMicros int64 `json:",omitempty"`
	CostUnknown   bool  `json:",omitempty"` // the price of one request is not known
}

// Position locates an event in a log.
type Position struct {
	Epoch, Seq uint64
	Index      int
}

func (p Position) place() place { return place{Seq: p.Seq, Event: p.Index} }

// RunHistory has the runs, answers and inputs of all times. State.Questions and State.Queue have only what is open.
// An entry is small, so that a task with ten thousand runs stays cheap to open: a long text stays in the log, and
// the entry has its position.
type RunHistory struct {
	All       []*Run                 // oldest first; the last one is State.Run
	Inputs    map[string]string      `json:",omitempty"` // the run that each queued input came to; "" = none yet
	Unclaimed []string               `json:",omitempty"` // inputs for the next run
	Answers   map[string]PastAnswer  `json:",omitempty"` // the newest answer to each question
	Replies   map[string]InputAnswer `json:",omitempty"` // the inputs that came as answers

	byID map[string]*Run
}

// PastAnswer is an answer to a question.
type PastAnswer struct {
	api.QuestionClosed          // a long Text is absent: use State.AnswerTo
	At                 Position // the event with the answer
	Long               bool     `json:",omitempty"` // Text is absent
}

// InputAnswer names the question that an input answered, and the run that had asked it; "" = not known.
type InputAnswer struct {
	Question, Run string
}

// Find finds a run by its id; nil when there is none.
func (h *RunHistory) Find(id string) *Run { return h.byID[id] }

// add makes r the newest run. It gets the inputs that no run has yet.
func (h *RunHistory) add(r *Run) {
	if n := len(h.All); n > 0 && h.All[n-1].ReasonAt != (Position{}) {
		h.All[n-1].Reason = ""
	}
	if old := h.byID[r.ID]; old != nil {
		h.All = slices.DeleteFunc(h.All, func(one *Run) bool { return one == old })
	}
	h.index(r)
	for _, input := range h.Unclaimed {
		h.Inputs[input] = r.ID
	}
	h.Unclaimed = nil
}

// index appends a run.
func (h *RunHistory) index(r *Run) {
	if h.byID == nil {
		h.byID = map[string]*Run{}
	}
	h.All, h.byID[r.ID] = append(h.All, r), r
}

// queue notes an input. It belongs to the run that works, else to the next one.
func (h *RunHistory) queue(input string, newest *Run) {
	if _, known := h.Inputs[input]; known {
		return
	}
	if h.Inputs == nil {
		h.Inputs = map[string]string{}
	}
	h.Inputs[input] = ""
	if newest != nil && newest.Outcome == "" {
		h.Inputs[input] = newest.ID
	} else {
		h.Unclaimed = append(h.Unclaimed, input)
	}
}

// answer notes the answer to a question that asker had asked.
func (h *RunHistory) answer(e api.QuestionClosed, asker string, at Position) {
	if h.Answers == nil {
		h.Answers = map[string]PastAnswer{}
	}
	if e.Input != "" {
		if h.Replies == nil {
			h.Replies = map[string]InputAnswer{}
		}
		h.Replies[e.Input] = InputAnswer{Question: e.Question, Run: asker}
	}
	past := PastAnswer{QuestionClosed: e, At: at}
	if past.Long = len(e.Text) > longText; past.Long {
		past.Text = ""
	}
	h.Answers[e.Question] = past
}

// inherit takes over the use of a run that has no end of its own.
func (r *Run) inherit(before *Run) {
	if before.Unended() {
		r.Turns, r.CostMicros, r.WorkedMS = before.Turns, before.CostMicros, before.WorkedMS
	}
}

// Waits reports whether the run is still in the queue.
func (r *Run) Waits() bool { return r != nil && r.Queued != 0 && r.Started == 0 && r.Outcome == "" }

// Rests reports whether the run waits for an answer, and will continue with it.
func (r *Run) Rests() bool { return r != nil && r.Outcome == "" && r.Waiting != "" }

// Unended reports whether the run has no end of its own: the next one inherits what it used of its limits.
func (r *Run) Unended() bool {
	return r != nil && (r.Outcome == "" || r.Outcome == "interrupted")
}

// Predecessor is the run before a queued one, as far as its end is known; nil when there was none.
func (r *Run) Predecessor() *Run {
	if r.After == "none" {
		return nil
	}
	return &Run{Outcome: r.After}
}

// worked notes how long a run worked. 0 = the event does not give it.
func (r *Run) worked(ms int64) {
	if r != nil {
		r.WorkedMS = max(r.WorkedMS, ms)
	}
}

// endTurn counts a request that brought a reply.
func (r *Run) endTurn(e TurnEnded) {
	if r != nil {
		r.Turns++
		r.OwnTurns++
		r.worked(e.WorkedMS)
	}
}

// spend counts the price of a request. One whose price is unknown counts nothing against the limit.
func (r *Run) spend(e UsageChanged) {
	switch {
	case r == nil:
	case e.CostMicros == nil:
		r.CostUnknown = true
	default:
		grow(&r.CostMicros, *e.CostMicros)
		grow(&r.OwnCostMicros, *e.CostMicros)
	}
}

func positionOf(c journal.Commit, at place) Position {
	return Position{Epoch: c.Epoch, Seq: c.Seq, Index: at.Event}
}

// longText is how many bytes a text may have to be kept in the history: about a paragraph. Longer ones are read from the log.
const longText = 512
