package task

import (
	"fmt"
	"slices"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
)

// Apply folds one commit. The state after an error is the state before it plus
// the events before the one that failed; a reader reports it and goes on.
func (s *State) Apply(c journal.Commit) error {
	if c.Seq <= s.Seq {
		return fmt.Errorf("fold commit %d: the state is already at %d", c.Seq, s.Seq)
	}
	s.Seq, s.Epoch = c.Seq, c.Epoch
	var first error
	for i, raw := range c.Events {
		e, err := Decode(raw)
		if err == nil {
			err = s.fold(e, c)
		}
		if err != nil {
			err = fmt.Errorf("fold commit %d, event %d: %w", c.Seq, i, err)
			s.Problems = append(s.Problems, Problem{Seq: c.Seq, Reason: err.Error()})
			if first == nil {
				first = err
			}
		}
	}
	return first
}

// Lost notes a commit that the log could not give.
func (s *State) Lost(d journal.Damage) {
	s.Seq = max(s.Seq, d.Seq)
	s.Problems = append(s.Problems, Problem{Seq: d.Seq, Reason: d.Reason})
}

func (s *State) fold(e Event, c journal.Commit) error {
	if _, opened := e.(EpochOpened); !opened {
		s.UpdatedAt = max(s.UpdatedAt, c.At)
	}
	switch e := e.(type) {
	case Created:
		s.ID, s.Title, s.Origin, s.Number = e.Task, e.Title, e.Origin, e.Number
		s.Parent, s.RootTask, s.CreatedAt, s.Settings = e.Parent, e.RootTask, e.CreatedAt, e.Settings
	case Adopted:
		return s.adopt(e, c)
	case ForeignImported:
		return s.importForeign(e, c)
	case ForeignRefused:
		s.Refused = append(s.Refused, e)
	case Changed:
		if e.Title != nil {
			s.Title = *e.Title
		}
		if e.Settings != nil {
			s.Settings = *e.Settings
		}
	case MessageAdded:
		return s.addMessage(e, c)
	case MessageChanged:
		return s.changeMessage(e)
	case MessageTextSaved:
		m := s.Message(e.Message)
		if m == nil {
			return fmt.Errorf("text for message %d, which does not exist", e.Message)
		}
		m.saved = append(m.saved, e.Text...)
		m.text = append(m.text, e.Text...)
	case MessageHidden:
		s.hide(e)
	case RunStarted:
		s.Run = &Run{ID: e.Run, Settings: e.Settings, Head: e.Head, Started: c.At}
		s.Runs++
		s.Settings = e.Settings
	case RunWaiting:
		if s.Run != nil {
			s.Run.Waiting = e.Question
		}
	case RunEnded:
		if s.Run != nil {
			s.Run.Ended, s.Run.Outcome, s.Run.Reason, s.Run.Code = c.At, e.Outcome, e.Reason, e.Code
			s.Run.Waiting = ""
		}
	case TurnStarted:
		s.Turns = max(s.Turns, e.Turn)
	case TurnFailed:
		s.Failures++
	case ToolStarted:
		call := s.call(e.Call, e.Name)
		call.Started, call.Replay, call.Before = true, e.Replay, e.Before
		if e.Message != 0 {
			call.UI = e.Message
		}
	case ToolProcess:
		s.call(e.Call, "").Process = &e
	case ToolFinished:
		s.call(e.Call, e.Name).Finished = &e
		s.Answered = slices.DeleteFunc(s.Answered, func(a Answered) bool { return a.Call == e.Call })
	case QuestionOpened:
		s.Answered = slices.DeleteFunc(s.Answered, func(a Answered) bool { return a.Question == e.Question })
		if s.Question(e.Question) == nil {
			s.Questions = append(s.Questions, &Question{QuestionOpened: e, Opened: c.At})
		}
	case QuestionClosed:
		if q := s.Question(e.Question); q != nil && q.Call != "" && e.Reason == "" {
			s.Answered = append(s.Answered, Answered{QuestionOpened: q.QuestionOpened, Answer: e})
		}
		s.Questions = slices.DeleteFunc(s.Questions, func(q *Question) bool { return q.Question == e.Question })
		if s.Run != nil && s.Run.Waiting == e.Question {
			s.Run.Waiting = ""
		}
	case InputQueued:
		s.Queue = append(s.Queue, e)
	case InputTaken:
		s.Queue = slices.DeleteFunc(s.Queue, func(q InputQueued) bool { return q.Input == e.Input })
	case UsageChanged:
		s.Usage.add(e)
	case FileChanged:
		s.addFile(e, c.At)
	case SubtaskStarted:
		s.Children = append(s.Children, Child{ID: e.Child, Call: e.Call})
	case SubtaskEnded:
		for i := range s.Children {
			if s.Children[i].ID == e.Child {
				s.Children[i].Ended, s.Children[i].Result = true, e.Result
			}
		}
	}
	return nil
}

// call finds a call, or notes one that the API history does not hold (its
// message may be damaged).
func (s *State) call(id, name string) *Call {
	if c := s.calls[id]; c != nil {
		return c
	}
	c := &Call{ID: id, Name: name}
	s.calls[id] = c
	s.order = append(s.order, c)
	return c
}

// maxGap is how many messages lost commits may have held. A number further away
// is damage, and must not make us allocate.
const maxGap = 1 << 20

func (s *State) addMessage(e MessageAdded, c journal.Commit) error {
	if e.History != UI && e.History != API {
		return fmt.Errorf("message %d is of the history %q, which does not exist", e.Message, e.History)
	}
	if e.Message != s.NextMessage() {
		if e.Message > s.NextMessage()+maxGap {
			return fmt.Errorf("message %d comes after message %d: too many are missing", e.Message, s.NextMessage()-1)
		}
		// A lost commit in between took messages with it: their numbers stay free.
		for s.NextMessage() < e.Message {
			s.messages = append(s.messages, &Message{
				ID: s.NextMessage(), Hidden: "lost", Missing: true, raw: []byte("{}"),
			})
		}
		if e.Message < s.NextMessage() {
			return fmt.Errorf("message %d comes twice", e.Message)
		}
	}
	raw, err := s.body(e.Body)
	m := &Message{ID: e.Message, History: e.History, Seq: c.Seq, raw: raw}
	if err != nil {
		m.raw, m.Missing = []byte("{}"), true
	}
	s.attach(m)
	return err
}

func (s *State) attach(m *Message) {
	s.messages = append(s.messages, m)
	if m.History == UI {
		s.ui = append(s.ui, m)
		return
	}
	s.api = append(s.api, m)
	s.index(m)
}

// index notes what an API message says of tool calls and replies.
func (s *State) index(m *Message) {
	switch m.Kind() {
	case "assistant":
		for _, c := range toolUses(m.raw) {
			if old := s.calls[c.ID]; old != nil && old.Message != 0 && old.Message != m.ID {
				if first := s.Message(old.Message); first != nil && first.Hidden == "" {
					continue // a provider used an id twice: the first one stands
				}
				// The call that had this id is rewound: what became of it says
				// nothing of the new one.
				delete(s.calls, c.ID)
			}
			call := s.call(c.ID, c.Name)
			call.Name, call.Input, call.Message, call.Foreign = c.Name, c.Input, m.ID, m.Foreign
		}
		if !m.flag("isSummary") {
			s.Replies++
			s.Failures = 0
		}
	case "user":
		for _, id := range toolResults(m.raw) {
			if c := s.calls[id]; c != nil {
				c.Answered = true
			}
		}
	}
}

func (s *State) changeMessage(e MessageChanged) error {
	m := s.Message(e.Message)
	if m == nil {
		return fmt.Errorf("change of message %d, which does not exist", e.Message)
	}
	raw, err := s.body(e.Body)
	if err != nil {
		return err
	}
	before := m.raw
	m.raw, m.saved, m.Missing = raw, nil, false
	if m.History == API && !s.sameCalls(m, before) {
		s.reindex()
	}
	return nil
}

// sameCalls reports whether a changed message says the same of calls and replies
// as before, so that the rest of the history need not be looked at. New inputs
// of its calls are noted.
func (s *State) sameCalls(m *Message, before []byte) bool {
	old := Message{History: API, raw: before}
	if m.Kind() != old.Kind() || m.flag("isSummary") != old.flag("isSummary") ||
		!slices.Equal(toolResults(m.raw), toolResults(before)) {
		return false
	}
	now, was := toolUses(m.raw), toolUses(before)
	if !slices.EqualFunc(now, was, func(a, b Call) bool { return a.ID == b.ID && a.Name == b.Name }) {
		return false
	}
	for _, c := range now {
		if call := s.calls[c.ID]; call != nil && call.Message == m.ID {
			call.Input = c.Input
		}
	}
	return true
}

// hide takes messages out of their histories, all in one go: one at a time, a
// rewind of a long task would take the square of its length.
func (s *State) hide(e MessageHidden) {
	reason := e.Reason
	if reason == "" {
		reason = "hidden"
	}
	ui, api := false, false
	for _, id := range e.Messages {
		m := s.Message(id)
		if m == nil || m.Hidden != "" {
			continue
		}
		m.Hidden = reason
		ui, api = ui || m.History == UI, api || m.History == API
	}
	gone := func(m *Message) bool { return m.Hidden != "" }
	if ui {
		s.ui = slices.DeleteFunc(s.ui, gone)
	}
	if api {
		s.api = slices.DeleteFunc(s.api, gone)
		s.reindex()
	}
}

// reindex derives anew what the visible API history says of calls and replies.
// When replies went out of it the failures since the last one start over: a
// script plays its turns again after a rewind.
func (s *State) reindex() {
	for _, c := range s.order {
		c.Answered = false
	}
	failures, replies := s.Failures, s.Replies
	s.Replies = 0
	for _, m := range s.api {
		s.index(m)
	}
	s.Failures = failures
	if s.Replies < replies {
		s.Failures = 0
	}
}

func (s *State) body(b Body) ([]byte, error) {
	switch {
	case len(b.Raw) > 0:
		return b.Raw, nil
	case b.Blob != "":
		raw, err := s.blobs.Range(b.Blob, 0, -1)
		if err == nil && !esjson.Valid(raw) {
			err = fmt.Errorf("blob %s holds no JSON", b.Blob)
		}
		return raw, err
	}
	var out []byte
	for _, p := range b.Compose {
		switch {
		case p.TextOf != 0:
			m := s.Message(p.TextOf)
			if m == nil {
				return nil, fmt.Errorf("text of message %d, which does not exist", p.TextOf)
			}
			out = esjson.Quote(out, string(m.text))
		case p.Result != "":
			c := s.calls[p.Result]
			if c == nil || c.Finished == nil {
				return nil, fmt.Errorf("result of call %q, which has none", p.Result)
			}
			out = append(out, c.Finished.Result...)
		default:
			out = append(out, p.Literal...)
		}
	}
	if !esjson.Valid(out) {
		return nil, fmt.Errorf("composed message is not JSON")
	}
	return out, nil
}
