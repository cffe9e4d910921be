package task

import "github.com/roost-dev/roost/api"

// Sent is the part of the visible API history that is sent: from the newest summary
// on, without what a truncation hides. It is decided by what the state keeps of each
// message, so it costs no reading however long the task is. What is made of it for a
// request is the same as of the whole history (contextwindow.Effective); results whose
// calls lie before the summary are still among it.
func (s *State) Sent() []*Message {
	from := 0
	for i := len(s.api) - 1; i > 0; i-- {
		if s.api[i].facts.Summary {
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
	for _, i := range m.covers {
		if c := &m.state.Covers[i]; c.Kind == api.ActionTruncate && markers[c.ID] {
			return true
		}
	}
	return markers[m.Tags().Truncated]
}
