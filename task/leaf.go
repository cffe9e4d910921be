package task

import (
	"maps"
	"slices"
)

// runsOf packs a history into ranges. Numbers of the other history in between do not end a range; numbers of messages
// that are not in the list, or lost, do.
func (s *State) runsOf(list []*Message) []Run64 {
	var out []Run64
	for _, m := range list {
		if n := len(out) - 1; n >= 0 && s.follows(out[n][1], m) {
			out[n][1] = m.ID
			continue
		}
		out = append(out, Run64{m.ID, m.ID})
	}
	return out
}

// follows reports whether a message is the next of its history after a number.
func (s *State) follows(last uint64, m *Message) bool {
	if m.ID <= last {
		return false
	}
	for id := last + 1; id < m.ID; id++ {
		if h := s.messages[id-1].History; h == m.History || h == "" {
			return false
		}
	}
	return true
}

// listOf unpacks a history. What the log lost is left out.
func (s *State) listOf(h History, runs []Run64) []*Message {
	var out []*Message
	for _, r := range runs {
		for id := max(r[0], 1); id <= r[1] && id < s.NextMessage(); id++ {
			if m := s.messages[id-1]; m.History == h {
				out = append(out, m)
			}
		}
	}
	return out
}

// History is a branch's list of one history, in order.
func (s *State) History(l Leaf, h History) []*Message {
	if h == UI {
		return s.listOf(UI, l.UI)
	}
	return s.listOf(API, l.API)
}

// Branch finds a branch by its number; nil when there is none.
func (s *State) Branch(seq uint64) *Branch {
	for i := range s.Branches {
		if s.Branches[i].Seq == seq {
			return &s.Branches[i]
		}
	}
	return nil
}

// leaf returns the present head.
func (s *State) leaf() Leaf {
	l := Leaf{
		Seq: s.Seq, UI: s.runsOf(s.ui), API: s.runsOf(s.api),
		Answered: slices.Clone(s.Answered), Queue: slices.Clone(s.Queue), QueuedAt: maps.Clone(s.QueuedAt),
		Files: packed(s.fileAt), Failures: s.Failures,
	}
	var summaries, markers []*Message
	for _, m := range s.api {
		if m.lifted&noSummary != 0 {
			summaries = append(summaries, m)
		}
		if m.lifted&noMarker != 0 {
			markers = append(markers, m)
		}
	}
	l.NoSummary, l.NoMarker = s.runsOf(summaries), s.runsOf(markers)
	for _, q := range s.Questions {
		one := *q
		l.Questions = append(l.Questions, &one)
	}
	for _, i := range s.Touched {
		l.Ends = append(l.Ends, s.end(i))
	}
	if s.Run != nil {
		l.Run, l.Waiting, l.Rewound = s.Run.ID, s.Run.Waiting, s.Run.Rewound
	}
	return l
}

// end returns the present outcome of a call.
func (s *State) end(i int) End {
	c := s.order[i]
	return End{
		Call: i, Started: c.Started, Replay: c.Replay, Before: c.Before, UI: c.UI,
		Process: c.Process, Finished: c.Finished, At: c.finished, away: c.away,
	}
}

// touch marks calls whose outcome will differ between branches. On the existing branches they have their present
// outcome: nothing has changed it since.
func (s *State) touch(calls []*Call) {
	for _, c := range calls {
		i := slices.Index(s.order, c)
		if i < 0 || slices.Contains(s.Touched, i) {
			continue
		}
		s.Touched = append(s.Touched, i)
		for b := range s.Branches {
			s.Branches[b].Leaf.Ends = append(s.Branches[b].Leaf.Ends, s.end(i))
		}
	}
}

// leave keeps the head as a branch: it is about to move.
func (s *State) leave(seq uint64, at int64, why, by string) {
	if len(s.Branches) == 0 {
		s.filed = slices.Clone(s.Files)
		s.fileAt = upTo(len(s.filed))
	}
	s.touch(s.lastCalls())
	s.Branches = append(s.Branches, Branch{Seq: seq, At: at, Why: why, By: by, Leaf: s.leaf()})
}

// lastCalls are the calls of the last reply: another branch may give them another outcome.
func (s *State) lastCalls() []*Call {
	m := s.lastReply()
	if m == nil {
		return nil
	}
	var out []*Call
	for _, u := range m.facts.Uses {
		if c := s.calls[u.ID]; c != nil && c.Message == m.ID {
			out = append(out, c)
		}
	}
	return out
}

// enter makes a leaf the head.
func (s *State) enter(l Leaf) {
	before := s.lastReply()
	for _, list := range [][]*Message{s.ui, s.api} {
		for _, m := range list {
			m.Hidden, m.lifted = "rewind", 0
		}
	}
	s.ui, s.api = s.listOf(UI, l.UI), s.listOf(API, l.API)
	for _, list := range [][]*Message{s.ui, s.api} {
		for _, m := range list {
			m.Hidden, m.lifted = "", 0
		}
	}
	for _, m := range s.listOf(API, l.NoSummary) {
		m.lifted |= noSummary
	}
	for _, m := range s.listOf(API, l.NoMarker) {
		m.lifted |= noMarker
	}
	s.liftLater(l.Seq)
	for _, e := range l.Ends {
		if e.Call < 0 || e.Call >= len(s.order) {
			continue
		}
		c := s.order[e.Call]
		c.Started, c.Replay, c.Before, c.UI, c.Process = e.Started, e.Replay, e.Before, e.UI, e.Process
		c.Finished, c.finished = e.Finished, e.At
		c.away = c.Finished != nil && (e.away || c.Finished.Result == nil)
	}
	s.Answered, s.Queue, s.QueuedAt = slices.Clone(l.Answered), slices.Clone(l.Queue), maps.Clone(l.QueuedAt)
	s.Questions = nil
	for _, q := range l.Questions {
		one := *q
		s.Questions = append(s.Questions, &one)
	}
	s.showFiles(unpacked(l.Files, len(s.filed)))
	s.reindex(before)
	s.Failures = l.Failures
	if s.Run != nil && s.Run.ID == l.Run {
		s.Run.Waiting, s.Run.Rewound = l.Waiting, l.Rewound
	} else if s.Run != nil {
		s.Run.Waiting, s.Run.Rewound = "", true
	}
}

// liftLater removes the tags that messages got on another branch, after a commit, and whose summary or marker is not
// on this one.
func (s *State) liftLater(seq uint64) {
	var living map[string]bool
	for _, m := range s.api {
		t := m.Tags()
		if t.Condensed == "" && t.Truncated == "" || m.body.Seq <= seq {
			continue
		}
		if living == nil {
			living = s.tagIDs()
		}
		if t.Condensed != "" && !living[t.Condensed] {
			m.lifted |= noSummary
		}
		if t.Truncated != "" && !living[t.Truncated] {
			m.lifted |= noMarker
		}
	}
}

// tagIDs are the ids of the visible summaries and markers.
func (s *State) tagIDs() map[string]bool {
	ids := map[string]bool{}
	for _, m := range s.api {
		if t := m.Tags(); m.facts.Summary {
			ids[t.Summary] = true
		} else if t.Marks {
			ids[t.Marker] = true
		}
	}
	return ids
}

// swap exchanges the head and the version that a branch holds. Undo and redo are such exchanges.
func (s *State) swap(seq uint64) bool {
	b := s.Branch(seq)
	if b == nil {
		return false
	}
	s.touch(s.lastCalls())
	now, then := s.leaf(), b.Leaf
	s.enter(then)
	b.Leaf = now
	return true
}
