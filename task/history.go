package task

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task/facts"
)

// call finds a call, or records a new one if the API history does not hold it (its message may be damaged).
func (s *State) call(id, name string) *Call {
	if c := s.calls[id]; c != nil {
		return c
	}
	c := &Call{ID: id, Name: name, state: s}
	s.calls[id] = c
	s.order = append(s.order, c)
	return c
}

func (s *State) finishCall(e ToolFinished, at place) error {
	call := s.call(e.Call, e.Name)
	call.Finished, call.At, call.away = &e, at, false
	s.Answered = slices.DeleteFunc(s.Answered, func(a Answered) bool { return a.Call == e.Call })
	var err error
	if e.Result, err = e.result(s.blobs); err != nil {
		return fmt.Errorf("result of call %s: %w", e.Call, err)
	}
	s.hold(heldResult(call))
	return nil
}

// returnReasoning records a server that must get the reasoning of earlier replies.
func (s *State) returnReasoning(server string) {
	if server != "" && !slices.Contains(s.ReasoningTo, server) {
		s.ReasoningTo = append(s.ReasoningTo, server)
	}
}

func (s *State) addMessage(e MessageAdded, c journal.Commit, at place) error {
	if e.History != UI && e.History != API {
		return fmt.Errorf("message %d is of the history %q, which does not exist", e.Message, e.History)
	}
	if err := s.skipTo(e.Message, c); err != nil {
		return err
	}
	if e.Message < s.NextMessage() {
		return fmt.Errorf("message %d comes twice", e.Message)
	}
	raw, pieces, err := s.body(e.Body)
	m := s.newMessage(e.History, c.Seq)
	m.set(raw, at, pieces)
	if n := len(s.api); e.History == UI && n > 0 && s.api[n-1].Foreign && bytes.HasSuffix(raw, []byte(`,"inferred":true}`)) {
		m.Foreign, m.Seq = true, s.api[n-1].Seq // it was made of another program's messages, and belongs to them
	}
	if err != nil {
		m.Missing = true
		m.blank()
	}
	s.attach(m)
	if e.Before != 0 {
		s.moveBefore(m, e.Before)
	}
	return err
}

// moveBefore puts the newest message of a history before another one. When that one does not exist any more, the
// message stays at the end: no added message is lost. The calls and replies of the history do not change: only
// messages without calls and replies have a place other than the end.
func (s *State) moveBefore(m *Message, before uint64) {
	list := s.visible(m.History)
	l := *list
	at := slices.IndexFunc(l, func(o *Message) bool { return o.ID == before })
	if at >= 0 && l[len(l)-1] == m {
		*list = slices.Insert(slices.Clone(l[:len(l)-1]), at, m)
	}
}

// visible returns the list of a history's visible messages.
func (s *State) visible(h History) *[]*Message {
	if h == UI {
		return &s.ui
	}
	return &s.api
}

// maxGap is how many messages lost commits may have held. A number further away
// is damage, and must not make us allocate.
const maxGap = 1 << 20

// skipTo leaves the numbers before next unused: a lost commit held their messages.
func (s *State) skipTo(next uint64, c journal.Commit) error {
	if next > s.NextMessage()+maxGap {
		return fmt.Errorf("message %d comes after message %d: too many are missing", next, s.NextMessage()-1)
	}
	for s.NextMessage() < next {
		lost := s.newMessage("", c.Seq)
		lost.Seq, lost.Hidden, lost.Missing = 0, "lost", true
		lost.blank()
		s.messages = append(s.messages, lost)
	}
	return nil
}

// newMessage returns the next message; it is not part of the task yet.
func (s *State) newMessage(h History, seq uint64) *Message {
	return &Message{ID: s.NextMessage(), History: h, Seq: seq, state: s}
}

func (s *State) attach(m *Message) {
	s.messages = append(s.messages, m)
	s.hold(heldMessage(m))
	list := s.visible(m.History)
	*list = append(*list, m)
	if m.History == API {
		s.index(m)
	}
}

// index records the tool calls and replies of an API message.
func (s *State) index(m *Message) {
	switch m.Kind() {
	case "assistant":
		for _, u := range m.Facts.Uses {
			if old := s.calls[u.ID]; old != nil && old.Message != 0 && old.Message != m.ID {
				if s.made(old) {
					continue // a provider used an id twice: the first call counts
				}
				// The call that had this id is rewound: its outcome does not apply to the new call.
				s.calls[u.ID] = s.callOf(m, u)
			}
			call := s.calls[u.ID]
			if call == nil {
				call = s.call(u.ID, u.Name)
				// Another program may also have put it into a reply of ours.
				call.Foreign = m.Foreign || m.Body.Blob != ""
			}
			call.Name, call.Message = u.Name, m.ID
			call.Answered = false // a result before it is another call's
		}
		if !m.Facts.Summary {
			s.Replies++
			s.Failures = 0
		}
	case "user":
		for _, id := range m.Facts.Results {
			if c := s.calls[id]; c != nil {
				c.Answered = true
			}
		}
	}
}

// made reports whether the reply that made a call is still in the visible history.
func (s *State) made(c *Call) bool {
	m := s.Message(c.Message)
	return m != nil && m.Hidden == "" && slices.ContainsFunc(m.Facts.Uses, func(u facts.Use) bool { return u.ID == c.ID })
}

// callOf returns the call that a reply made, for a reply that comes back into the history; nil when it made none.
// What is known of the call from before is still true.
func (s *State) callOf(m *Message, u facts.Use) *Call {
	for _, c := range slices.Backward(s.order) {
		if c.ID == u.ID && c.Message == m.ID {
			return c
		}
	}
	return nil
}

func (s *State) changeMessage(e MessageChanged, at place) error {
	m := s.Message(e.Message)
	if m == nil {
		return fmt.Errorf("change of message %d, which does not exist", e.Message)
	}
	raw, pieces, err := s.body(e.Body)
	if err != nil {
		return err
	}
	before, last := m.Facts, (*Message)(nil)
	if m.History == API {
		last = s.lastReply()
	}
	size := m.size()
	m.set(raw, at, pieces)
	m.Missing = false
	s.grew(m, size)
	if m.History == API && !m.Facts.SameCalls(before) {
		s.reindex(last)
	}
	return nil
}

// hide takes messages out of their histories, all at once: one at a time, the time of a rewind would grow with the
// square of the task's length.
func (s *State) hide(e MessageHidden) {
	last, reindex := s.lastReply(), false
	for _, id := range e.Messages {
		if m := s.Message(id); m != nil && m.Hidden == "" {
			m.Hidden = cmp.Or(e.Reason, "hidden")
			reindex = reindex || m.History == API
		}
	}
	s.dropHidden()
	if reindex {
		s.reindex(last)
	}
}

// dropHidden removes hidden messages from the lists of visible ones. It makes new lists, because a reader may still
// hold the old ones.
func (s *State) dropHidden() {
	hidden := func(m *Message) bool { return m.Hidden != "" }
	s.ui = slices.DeleteFunc(slices.Clone(s.ui), hidden)
	s.api = slices.DeleteFunc(slices.Clone(s.api), hidden)
}

// cover records which message replaces others from now on. It does not cover messages that are hidden at that time:
// when an undo brings them back, they are unchanged.
func (s *State) cover(c Cover, covers []Run64) {
	s.Covers = append(slices.Clip(s.Covers), c)
	n := len(s.Covers) - 1
	for _, m := range s.api {
		if m.ID != c.Message && slices.ContainsFunc(covers, func(r Run64) bool { return m.ID >= r[0] && m.ID <= r[1] }) {
			m.Covers = append(m.Covers, n)
		}
	}
	s.Actions.Do(Action{Kind: c.Kind, Seq: c.Seq, At: c.At, Cover: c.Messages})
}

// uncover removes a summary or a marker from the histories, or puts it back.
func (s *State) uncover(undoes, redoes, seq uint64) {
	i := slices.IndexFunc(s.Covers, func(c Cover) bool { return c.Seq == undoes || c.Seq == redoes })
	if i < 0 {
		return
	}
	s.Covers = slices.Clone(s.Covers)
	c := &s.Covers[i]
	message, row := s.Message(c.Message), s.Message(c.Row)
	if undoes != 0 {
		c.Off, c.Next, c.NextRow = true, behind(s.api, message), behind(s.ui, row)
		s.hide(MessageHidden{Messages: []uint64{c.Message, c.Row}, Reason: "undo"})
		s.Actions.turn(undoes, 0, seq)
		return
	}
	if c.Off {
		s.api, s.ui = s.back(s.api, message, c.Next), s.back(s.ui, row, c.NextRow)
		s.reindex(s.lastReply())
	}
	c.Off, c.Next, c.NextRow = false, 0, 0
	s.Actions.turn(0, redoes, seq)
}

// behind returns the number of the message that follows m in a list; 0 at the end of the list.
func behind(list []*Message, m *Message) uint64 {
	if i := slices.Index(list, m); i >= 0 && i+1 < len(list) {
		return list[i+1].ID
	}
	return 0
}

// back puts a message back into its list.
func (s *State) back(list []*Message, m *Message, next uint64) []*Message {
	if m == nil || m.Hidden == "" {
		return list
	}
	m.Hidden = ""
	at := slices.IndexFunc(list, func(o *Message) bool { return o.ID == next })
	if at < 0 {
		at = len(list)
	}
	return slices.Insert(slices.Clone(list), at, m)
}

// reindex computes the calls and replies of the visible API history again. When the last reply has changed, the count
// of failures since that reply starts again: a script repeats its turns after a rewind.
func (s *State) reindex(before *Message) {
	for _, c := range s.order {
		c.Answered = false
	}
	failures := s.Failures
	s.Replies = 0
	for _, m := range s.api {
		s.index(m)
	}
	s.Failures = 0
	if s.lastReply() == before {
		s.Failures = failures
	}
}

// lastReply returns the newest complete reply in the visible API history, nil when there is none.
func (s *State) lastReply() *Message {
	for _, m := range slices.Backward(s.api) {
		if m.Kind() == "assistant" && !m.Facts.Summary {
			return m
		}
	}
	return nil
}
