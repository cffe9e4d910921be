package task

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/journal"
)

// NewRuns is New for a reader that wants only the runs, the questions and the inputs. The fold passes over the
// events of messages, calls and files, so that it is cheap however long the task is. Run, Runs, Questions and Queue
// are those of the whole state; nothing else is to be used.
func NewRuns(src Source) *State {
	s := New(src)
	s.source, s.runsOnly = src, true
	return s
}

// aboutRuns reports whether a fold of the runs needs an event, by how every writer begins it.
func aboutRuns(raw []byte) bool {
	rest, ok := bytes.CutPrefix(raw, []byte(`{"type":"`))
	if !ok {
		return false
	}
	for _, kind := range []string{"run.", "question.", "input.", "task.", "usage.", `turn.ended"`, `history.rewound"`, `history.undone"`} {
		if bytes.HasPrefix(rest, []byte(kind)) {
			return true
		}
	}
	return false
}

// begin starts a run. A run inherits turns, cost and time from a run that it continues because the program was killed
// or the run only waited for an answer: a kill or a question must not reset a limit. After any other end a user has
// decided to spend more.
func (s *State) begin(e RunStarted, at int64) {
	run := &Run{ID: e.Run, Settings: e.Settings, Head: e.Head, Started: at, Before: s.last}
	run.inherit(s.Run)
	s.Settings = e.Settings
	known := s.Runs.Find(e.Run)
	if known != nil { // it was queued, or waited
		run.Queued, run.After, run.Before = known.Queued, known.After, known.Before
		run.OwnTurns, run.OwnCostMicros, run.CostUnknown = known.OwnTurns, known.OwnCostMicros, known.CostUnknown
		if known.Started != 0 {
			run.Started = known.Started
		}
	}
	if known != nil && known == s.Run {
		s.replaceNewest(run)
		return
	}
	s.addRun(run)
}

// queueRun notes a run that will begin.
func (s *State) queueRun(e RunQueued, at int64) {
	if s.Runs.Find(e.Run) != nil {
		return // it may have started
	}
	run := &Run{ID: e.Run, Settings: e.Settings, Queued: at, Yes: e.Yes, After: "none", Before: s.last}
	run.inherit(s.Run)
	if s.Run != nil {
		run.After = s.Run.Outcome
	}
	s.addRun(run)
}

func (s *State) addRun(r *Run) {
	s.Runs.add(r)
	s.Run = r
}

// replaceNewest puts another value in the place of the newest run. Readers may still hold the old one.
func (s *State) replaceNewest(r *Run) {
	s.Runs.All[len(s.Runs.All)-1], s.Runs.byID[r.ID] = r, r
	s.Run = r
}

// run finds a run. When the log lost its start, the run is added, because its end is the newest fact about the task.
func (s *State) run(id string) *Run {
	if id == "" {
		return s.Run
	}
	if known := s.Runs.Find(id); known != nil {
		return known
	}
	s.addRun(&Run{ID: id, Settings: s.Settings, Before: s.last})
	return s.Run
}

func (s *State) endRun(e RunEnded, c journal.Commit, at Position) {
	run := s.run(e.Run)
	if run == nil {
		return
	}
	run.Ended, run.Outcome, run.Reason, run.Code = c.At, e.Outcome, e.Reason, e.Code
	run.Waiting, run.ChildQuestion, run.ReasonAt = "", "", Position{}
	run.worked(e.WorkedMS)
	if len(e.Reason) > longText {
		run.ReasonAt = at
	}
}

func (s *State) waitRun(e RunWaiting) {
	run := s.run(e.Run)
	if run == nil {
		return
	}
	run.worked(e.WorkedMS)
	run.Waiting, run.ChildQuestion = e.Question, ""
	if e.Child != "" { // no question of this task has a subtask's id
		run.Waiting, run.ChildQuestion = e.Child, e.Question
	}
}

// endUnfinished ends all runs that have no end.
func (s *State) endUnfinished(at int64) {
	for i, run := range s.Runs.All {
		if run.Outcome != "" {
			continue
		}
		ended := *run // readers may hold the old value
		ended.Ended, ended.Outcome, ended.Code, ended.Reason = at, "interrupted", CodeReceived, receivedReason
		ended.Waiting, ended.ChildQuestion = "", ""
		s.Runs.All[i], s.Runs.byID[run.ID] = &ended, &ended
		if run == s.Run {
			s.Run = &ended
		}
	}
	s.Runs.Unclaimed = nil
}

// WithReasons gives copies of runs, with the long reasons that the history leaves in the log.
func (s *State) WithReasons(runs ...*Run) ([]Run, error) {
	out := make([]Run, len(runs))
	var away []place
	for i, run := range runs {
		out[i] = *run
		if run.Reason == "" && run.ReasonAt.Seq != 0 {
			away = append(away, run.ReasonAt.place())
		}
	}
	if len(away) == 0 {
		return out, nil
	}
	events, err := s.fetch(eventsAt(away))
	if err != nil {
		return out, fmt.Errorf("read why runs of task %s ended: %w", s.ID, err)
	}
	for i := range out {
		if run := &out[i]; run.Reason == "" && run.ReasonAt.Seq != 0 {
			if e, err := Decode(events.at(run.ReasonAt.place())); err == nil {
				ended, _ := e.(RunEnded)
				run.Reason = ended.Reason
			}
		}
	}
	return out, nil
}

// AnswerTo is the newest answer to a question; false when it has none.
func (s *State) AnswerTo(question string) (api.QuestionClosed, bool, error) {
	past, ok := s.Runs.Answers[question]
	if !ok || !past.Long {
		return past.QuestionClosed, ok, nil
	}
	at := past.At.place()
	events, err := s.fetch(eventsAt([]place{at}))
	if err != nil {
		return past.QuestionClosed, true, fmt.Errorf("read the answer to question %s of task %s: %w", question, s.ID, err)
	}
	if e, err := Decode(events.at(at)); err == nil {
		if closed, ok := e.(api.QuestionClosed); ok {
			return closed, true, nil
		}
	}
	return past.QuestionClosed, true, nil
}
func (s *State) openQuestion(e api.QuestionOpened, c journal.Commit, at Position) {
	s.Answered = slices.DeleteFunc(s.Answered, func(a Answered) bool { return a.Question == e.Question })
	delete(s.Runs.Answers, e.Question)
	q := s.Question(e.Question)
	if q == nil {
		q = &Question{QuestionOpened: e, Opened: c.At, Seq: c.Seq}
		s.Questions = append(s.Questions, q)
	}
	q.Asked, q.Run = at, ""
	if s.Run != nil {
		q.Run = s.Run.ID
	}
}

func (s *State) closeQuestion(e api.QuestionClosed, c journal.Commit, at Position) {
	asker := ""
	if q := s.Question(e.Question); q != nil {
		asker = q.Run
		if q.Call != "" && e.Reason == "" {
			s.Answered = append(s.Answered, Answered{QuestionOpened: q.QuestionOpened, Answer: e, Seq: c.Seq})
		}
	}
	if e.Reason == "" {
		s.Runs.answer(e, asker, at)
	}
	s.Questions = slices.DeleteFunc(s.Questions, func(q *Question) bool { return q.Question == e.Question })
	if s.Run != nil && s.Run.Waiting == e.Question {
		s.Run.Waiting = ""
	}
}
