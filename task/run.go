package task

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
)

// Run is one stretch of work on the task.
type Run struct {
	ID       string
	Settings Settings
	Head     string // the workspace's git HEAD when it began
	Queued   int64  `json:",omitempty"` // when it entered the queue, Unix milliseconds; 0 = it was never queued
	Started  int64  // Unix milliseconds; 0 = it is still in the queue
	Ended    int64
	Outcome  string // "" while it has not ended
	Reason   string // "" in an older run with a long reason; see State.WithReasons
	Code     string
	Waiting  string // the question that it waits for, or the subtask that asks; "" = it does not wait
	Rewound  bool   `json:",omitempty"` // the histories moved to another branch after it
	Yes      bool   `json:",omitempty"` // for a queued run: it continues without further input
	After    string `json:",omitempty"` // for a queued run: the outcome of the run before it; "none" = no run, "" = no outcome

	RunChoice
	ChildQuestion string   `json:",omitempty"` // the question of the subtask that Waiting names
	Before        Position `json:",omitzero"`  // the event before the run's first one
	ReasonAt      Position `json:",omitzero"`  // the event with the whole Reason, if that is long

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

// RunHistory has the runs, answers and inputs of all times. State.Questions and State.Queue have only open ones. An
// entry is small, so that a task with ten thousand runs stays cheap to open: a long text stays in the log, and the
// entry holds its position.
type RunHistory struct {
	All       []*Run                 // oldest first; the last one is State.Run
	Inputs    map[string]string      `json:",omitempty"` // the run that took each queued input; "" = none yet
	Unclaimed []string               `json:",omitempty"` // inputs for the next run
	Answers   map[string]PastAnswer  `json:",omitempty"` // the newest answer to each question
	Replies   map[string]InputAnswer `json:",omitempty"` // the inputs that came as answers

	byID map[string]*Run
}

// PastAnswer is an answer to a question.
type PastAnswer struct {
	api.QuestionClosed          // without Text if that is long: use State.AnswerTo
	At                 Position // the event with the answer
	Long               bool     `json:",omitempty"` // Text is in the log only
}

// InputAnswer names the question that an input answered, and the run that had asked it; "" = not known.
type InputAnswer struct {
	Question, Run string
}

// Find finds a run by its id; nil when there is none.
func (h *RunHistory) Find(id string) *Run { return h.byID[id] }

// add makes r the newest run. r gets the inputs that no run has yet.
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

// queue records an input. It belongs to the working run, else to the next one.
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

// answer records the answer to a question of the run asker.
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

// NextSettings returns the settings that the next run begins with: those that a run was queued with, or the task's.
func (s *State) NextSettings() Settings {
	if s.Run.Waits() {
		return s.Run.Settings
	}
	return s.Settings
}

// Rests reports whether the run waits for an answer, and will continue with it.
func (r *Run) Rests() bool { return r != nil && r.Outcome == "" && r.Waiting != "" }

// Unended reports whether the run did not end by itself: the next run inherits its use of the limits.
func (r *Run) Unended() bool {
	return r != nil && (r.Outcome == "" || r.Outcome == "interrupted")
}

// Predecessor returns the run before a queued one, as far as its end is known; nil when there was none.
func (r *Run) Predecessor() *Run {
	if r.After == "none" {
		return nil
	}
	return &Run{Outcome: r.After}
}

// worked records how long a run worked. 0 = the event does not hold it.
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

// spend adds the price of a request. An unknown price adds nothing to the use of the limit.
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

// longText is the number of bytes up to which the history keeps a text: about a paragraph. Longer texts are read from
// the log.
const longText = 512

// NewRuns is New for a reader that wants only the runs, the questions and the inputs. The fold passes over the events
// of messages, calls and files, so that it is cheap however long the task is. Run, Runs, Questions and Queue equal
// those of the whole state; callers must use nothing else of it.
func NewRuns(src Source) *State {
	s := New(src)
	s.source, s.runsOnly = src, true
	return s
}

var kindsAboutRuns = []string{
	"run.", "question.", "input.", "task.", "usage.", "turn.ended", "history.rewound", "history.undone",
}

// aboutRuns reports whether a fold of the runs needs an event, by the bytes with which every writer begins it.
func aboutRuns(raw []byte) bool {
	name := leadingType(raw)
	return slices.ContainsFunc(kindsAboutRuns, func(kind string) bool { return strings.HasPrefix(name, kind) })
}

// begin starts a run. A run inherits turns, cost and time from a run that it continues because the program was killed
// or the run only waited for an answer: a kill or a question must not reset a limit. After any other end, the new run
// means that a user decided to spend more.
func (s *State) begin(e RunStarted, at int64) {
	run := &Run{ID: e.Run, Settings: e.Settings, Head: e.Head, Started: at, Before: s.last, RunChoice: e.RunChoice}
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

// queueRun records a run that waits for a slot. One that waits already gets the new settings, and keeps its place.
func (s *State) queueRun(e RunQueued, at int64) {
	if known := s.Runs.Find(e.Run); known != nil {
		if known == s.Run && known.Waits() {
			run := *known
			run.Settings, run.Yes, run.RunChoice = e.Settings, run.Yes || e.Yes, e.RunChoice
			s.replaceNewest(&run)
		}
		return
	}
	run := &Run{ID: e.Run, Settings: e.Settings, Queued: at, Yes: e.Yes, After: "none", Before: s.last, RunChoice: e.RunChoice}
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

// replaceNewest replaces the newest run by another value. Readers may still hold the old one.
func (s *State) replaceNewest(r *Run) {
	s.Runs.All[len(s.Runs.All)-1], s.Runs.byID[r.ID] = r, r
	s.Run = r
}

// run finds a run. When the log lost the run's start, run adds it, because its end is the newest fact about the task.
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

// CodeReceived is the RunEnded.Code of a run that a Received ended.
const CodeReceived = "received"

const receivedReason = "the task was received from elsewhere"

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

// WithReasons returns copies of runs, with the long reasons that the history leaves in the log.
func (s *State) WithReasons(runs ...*Run) ([]Run, error) {
	out := make([]Run, len(runs))
	var away []place
	for i, run := range runs {
		out[i] = *run
		if run.Reason == "" && run.ReasonAt.Seq != 0 {
			away = append(away, run.ReasonAt.place())
		}
	}
	events, err := s.fetch(away)
	if err != nil {
		return out, fmt.Errorf("read why runs of task %s ended: %w", s.ID, err)
	}
	for i := range out {
		if run := &out[i]; run.Reason == "" && run.ReasonAt.Seq != 0 {
			e, _ := Decode(events.at(run.ReasonAt.place()))
			ended, _ := e.(RunEnded)
			run.Reason = ended.Reason
		}
	}
	return out, nil
}

// AnswerTo returns the newest answer to a question; false when it has none.
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
	e, _ := Decode(events.at(at))
	if closed, ok := e.(api.QuestionClosed); ok {
		return closed, true, nil
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

// SubtaskTool is the tool that starts a child, in Roo's words.
const SubtaskTool = "new_task"

// child finds a child, or records a new one when the log lost its start but not its end.
func (s *State) child(id string) *Child {
	for i := range s.Children {
		if s.Children[i].ID == id {
			return &s.Children[i]
		}
	}
	s.Children = append(s.Children, Child{ID: id})
	return &s.Children[len(s.Children)-1]
}

// ChildID returns the id of the child that a call of a task starts. It follows from the task and the call alone, so
// that a run after a crash finds the same child. It is a UUID of version 7, like the ids of all tasks: its time is
// that of the reply that made the call, and a digest takes the place of the random bits.
func ChildID(s *State, c *Call) string {
	at := int64(0)
	if m := s.Message(c.Message); m != nil {
		at = max(m.TS(), 0)
	}
	sum := sha256.Sum256([]byte(s.ID + "\x00" + strconv.FormatUint(c.Message, 10) + "\x00" + c.ID))
	var id [16]byte
	binary.BigEndian.PutUint64(id[:8], uint64(at)<<16)
	copy(id[6:], sum[:])
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// Awaited returns the child that the task waits for: the call that started it is still open in the visible history.
// nil when it waits for none. So a rewind to before the call ends the waiting, and the log needs no event for it.
func (s *State) Awaited() *Child {
	if !slices.ContainsFunc(s.Children, func(c Child) bool { return !c.Ended }) {
		return nil
	}
	for _, call := range s.OpenCalls() {
		if child := s.ChildOf(call); child != nil && call.Finished == nil {
			return child
		}
	}
	_, child := s.HandedOver()
	return child
}

// HandedOver returns the call and the child of another form in which Roo waits. When other tools ran in the reply
// that delegated, Roo has stored their results already, in a user turn with a placeholder for the missing result. It
// returns nil when the visible history does not end in such a turn.
func (s *State) HandedOver() (*Call, *Child) {
	n := len(s.api)
	i := slices.IndexFunc(s.Children, func(c Child) bool { return !c.Ended && c.Call == "" })
	if i < 0 || n < 2 || s.api[n-1].Kind() != "user" || !s.api[n-1].Foreign || s.api[n-2].Kind() != "assistant" {
		return nil, nil
	}
	for _, id := range s.api[n-1].Facts.Results {
		if c := s.calls[id]; c != nil && c.Message == s.api[n-2].ID && c.Name == SubtaskTool && c.Foreign && c.Finished == nil {
			return c, &s.Children[i]
		}
	}
	return nil, nil
}

// interrupted is Roo's placeholder for a missing result.
const interrupted = "Tool execution was interrupted before completion."

// ResultsSoFar returns the user turn that Roo stores before a task waits for its subtask: the results of the reply's
// other calls, after a placeholder for each call that has none. It is derived: the log gets the turn when all results
// are there. Without the turn, Roo would report to the model that the other calls did not run. It is nil when the
// task waits for no subtask of its own, or no other call ran.
func (s *State) ResultsSoFar() (json.RawMessage, error) {
	child := s.Awaited()
	n := len(s.api)
	if child == nil || child.Call == "" || n == 0 || s.api[n-1].ID != child.Message {
		return nil, nil
	}
	var missing, results [][]byte
	for _, c := range s.OpenCalls() {
		result, err := c.Result()
		switch {
		case err != nil:
			return nil, err
		case result != nil:
			results = append(results, result)
		default:
			missing = append(missing, esjson.ObjectOf("type", "tool_result", "tool_use_id", c.ID,
				"content", interrupted))
		}
	}
	if len(results) == 0 {
		return nil, nil
	}
	content := bytes.Join(append(missing, results...), []byte(","))
	return fmt.Appendf(nil, `{"role":"user","content":[%s],"ts":%d}`, content, s.api[n-1].TS()+1), nil
}

// ChildOf returns the child that a call started and that has not ended; nil when there is none. Another program's
// history names the child that it waits for, but not the call: there, the call of SubtaskTool without a result is the
// one.
func (s *State) ChildOf(call *Call) *Child {
	for i := range slices.Backward(s.Children) {
		switch c := &s.Children[i]; {
		case c.Ended:
		case c.Call == call.ID && c.Message == call.Message && call.Message != 0,
			c.Call == "" && call.Foreign && call.Name == SubtaskTool:
			return c
		}
	}
	return nil
}

// adoptChildren takes the children from another program's history item: all have ended but the one that the task
// waits for.
func (s *State) adoptChildren(item []byte) {
	for el := range esjson.Array(esjson.Member(item, "childIds")) {
		if id, err := esjson.Unquote(el); err == nil && id != "" && len(s.Children) < maxChildren {
			s.child(id).Ended = true
		}
	}
	if id, _ := esjson.GetString(item, "completedByChildId"); id != "" {
		c := s.child(id)
		c.Ended, c.Outcome = true, "completed"
		c.Result, _ = esjson.GetString(item, "completionResultSummary")
	}
	if id, _ := esjson.GetString(item, "awaitingChildId"); id != "" {
		c := s.child(id)
		c.Ended, c.Outcome, c.Result = false, "", ""
	}
}

// maxChildren bounds how many children a damaged or hostile item can add, because the time to find a child grows with
// their number.
const maxChildren = 10_000
