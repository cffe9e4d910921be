package task

import (
	"encoding/json"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
)

// shown returns what Raw gives for a message that is stored as raw: it adds the tags of the summaries and markers
// that cover the message and are part of the history.
func (m *Message) shown(raw json.RawMessage) json.RawMessage {
	for _, i := range m.Covers {
		c := &m.state.Covers[i]
		if by := m.state.Message(c.Message); by != nil && by.Hidden == "" {
			raw = esjson.Set(raw, c.key(), esjson.Quote(nil, c.ID))
		}
	}
	return raw
}

// CoveredBy are the summaries and markers that replace the message in what is sent now.
func (m *Message) CoveredBy() (ids []uint64) {
	for _, i := range m.Covers {
		c := &m.state.Covers[i]
		if by := m.state.Message(c.Message); by != nil && by.Hidden == "" {
			ids = append(ids, c.Message)
		}
	}
	return ids
}

// cover notes what stands for messages from now on. What was out of the history at
// that time is not covered: when a rewind is taken back, it comes back as it was.
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

// uncover takes a summary or a marker out of the histories, and back in.
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

// behind is the number of the message that follows one in a list; 0 at its end.
func behind(list []*Message, m *Message) uint64 {
	if i := slices.Index(list, m); i >= 0 && i+1 < len(list) {
		return list[i+1].ID
	}
	return 0
}

// back puts a message into its list again.
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

// Sent is the part of the visible API history that is sent: from the newest summary
// on, without what a truncation hides. It is decided by what the state keeps of each
// message, so it costs no reading however long the task is. What is made of it for a
// request is the same as of the whole history (contextwindow.Effective); results whose
// calls lie before the summary are still among it.
func (s *State) Sent() []*Message {
	from := 0
	for i := len(s.api) - 1; i > 0; i-- {
		if s.api[i].Facts.Summary {
			from = i
			break
		}
	}
	list := s.api[from:]
	var markers map[string]bool
	for _, m := range list {
		if t := m.Tags(); t.Marks && t.Marker != "" {
			if markers == nil {
				markers = map[string]bool{}
			}
			markers[t.Marker] = true
		}
	}
	if markers == nil {
		return list[:len(list):len(list)]
	}
	out := make([]*Message, 0, len(list))
	for _, m := range list {
		if !m.truncatedBy(markers) {
			out = append(out, m)
		}
	}
	return out
}

// truncatedBy reports whether one of these markers hides the message.
func (m *Message) truncatedBy(markers map[string]bool) bool {
	for _, i := range m.Covers {
		if c := &m.state.Covers[i]; c.Kind == api.ActionTruncate && markers[c.ID] {
			return true
		}
	}
	return markers[m.Tags().Truncated]
}
