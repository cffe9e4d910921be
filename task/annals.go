package task

import (
	"bytes"

	"github.com/roost-dev/roost/journal"
)

// Annals are what a log says of its runs, questions and words, of all times: a State knows
// the newest run and what is open. They are folded from the log, as a state is, and kept in
// its snapshot, so that a log of any length is not gone through for them.
type Annals struct {
	Last Mark  // the newest event that was read
	At   int64 // when its commit was made, Unix milliseconds

	Runs  []*Chapter
	Words map[string]string         // input -> the run that it came to; "" = the one that begins next
	Said  map[string]QuestionClosed // the answers that were given, by question
	By    map[string]string         // message -> the question that it answered
	Open  map[string]Unanswered     // by question
	Asked map[string]*Chapter       // by question: the run that asked, nil = there was none

	known map[string]*Chapter
	early []string // words that no run has yet
}

// Mark is the place of an event in a log.
type Mark struct {
	Epoch, Seq uint64
	Index      int
}

// Unanswered is a question that is open, and the event that opened it.
type Unanswered struct {
	QuestionOpened
	At Mark
}

// Chapter is one run in a task's annals.
type Chapter struct {
	ID       string
	Settings Settings
	Before   Mark // the event before the run's first one
	Queued   int64
	Started  int64
	Ended    int64
	Outcome  string // "" while it goes on
	Code     string
	Reason   string
	Waits    bool   // it goes on with an answer
	Waiting  string // to this question
	Child    string // the subtask whose question that is, "" = it is the task's own

	Turns      int
	CostMicros int64
	CostKnown  bool
}

// NewAnnals are those of an empty log.
func NewAnnals() *Annals {
	return &Annals{
		Words: map[string]string{}, Said: map[string]QuestionClosed{}, By: map[string]string{},
		Open: map[string]Unanswered{}, Asked: map[string]*Chapter{}, known: map[string]*Chapter{},
	}
}

// Take reads the next commit.
func (a *Annals) Take(c journal.Commit) {
	for i, raw := range c.Events {
		if e, ok := Told(raw); ok {
			a.fold(e, c, i)
		}
		a.Last = Mark{Epoch: c.Epoch, Seq: c.Seq, Index: i}
	}
	a.At = c.At
}

// Told decodes an event of a log that annals are about.
func Told(raw []byte) (Event, bool) {
	if !told(raw) {
		return nil, false
	}
	e, err := Decode(raw)
	return e, err == nil
}

// told reports whether annals are about an event, by how every writer begins it.
func told(raw []byte) bool {
	rest, ok := bytes.CutPrefix(raw, []byte(`{"type":"`))
	if !ok {
		return false
	}
	for _, kind := range []string{"run.", "question.", "input.queued", `usage.changed"`, `turn.ended"`, `task.forked"`, `task.received"`} {
		if bytes.HasPrefix(rest, []byte(kind)) {
			return true
		}
	}
	return false
}

// Run finds a run by its id; nil when there is none.
func (a *Annals) Run(id string) *Chapter { return a.known[id] }

// Newest is the last run; nil when there was none.
func (a *Annals) Newest() *Chapter {
	if len(a.Runs) == 0 {
		return nil
	}
	return a.Runs[len(a.Runs)-1]
}

func (a *Annals) fold(e Event, c journal.Commit, i int) {
	newest := a.Newest()
	switch e := e.(type) {
	case Forked:
		a.forget()
	case Received:
		a.receive(e, c)
	case RunQueued:
		run := a.chapter(e.Run)
		if run.Started == 0 && run.Queued == 0 {
			run.Queued, run.Settings = c.At, e.Settings
		}
	case RunStarted:
		run := a.chapter(e.Run)
		if run.Started == 0 {
			run.Started = c.At
		}
		run.Settings = e.Settings
		run.Waits, run.Waiting, run.Child = false, "", ""
		run.Outcome, run.Code, run.Reason, run.Ended = "", "", "", 0
	case RunWaiting:
		run := a.chapter(e.Run)
		run.Waits, run.Waiting, run.Child = true, e.Question, e.Child
	case RunEnded:
		run := a.chapter(e.Run)
		run.Outcome, run.Code, run.Reason, run.Ended = e.Outcome, e.Code, e.Reason, c.At
		run.Waits, run.Waiting, run.Child = false, "", ""
	case TurnEnded:
		if newest != nil {
			newest.Turns++
		}
	case UsageChanged:
		switch {
		case newest == nil:
		case e.CostMicros == nil:
			newest.CostKnown = false
		default:
			newest.CostMicros += *e.CostMicros
		}
	case QuestionOpened:
		delete(a.Said, e.Question)
		a.Open[e.Question] = Unanswered{e, Mark{Epoch: c.Epoch, Seq: c.Seq, Index: i}}
		a.Asked[e.Question] = newest
	case QuestionClosed:
		delete(a.Open, e.Question)
		if e.Reason == "" {
			a.Said[e.Question] = e
			if e.Input != "" {
				a.By[e.Input] = e.Question
			}
		}
		if newest != nil && newest.Waits && newest.Child == "" && newest.Waiting == e.Question {
			newest.Waits, newest.Waiting = false, ""
		}
	case InputQueued:
		if _, known := a.Words[e.Input]; known {
			break
		}
		a.Words[e.Input] = ""
		if newest != nil && newest.Outcome == "" {
			a.Words[e.Input] = newest.ID
		} else {
			a.early = append(a.early, e.Input)
		}
	}
}

// chapter is a run's, a new one when it was not told of yet.
func (a *Annals) chapter(run string) *Chapter {
	if c := a.known[run]; c != nil {
		return c
	}
	c := &Chapter{ID: run, CostKnown: true, Before: a.Last}
	a.known[run] = c
	a.Runs = append(a.Runs, c)
	for _, input := range a.early {
		a.Words[input] = run
	}
	a.early = nil
	return c
}
