package task

import (
	"cmp"
	"errors"
	"slices"
)

// ErrNothingToCut: no message stands behind the place that a rewind should go to.
var ErrNothingToCut = errors.New("nothing stands behind it")

// ErrTurns: there are fewer replies than a rewind should go back.
var ErrTurns = errors.New("it has fewer turns")

// CutAt is what a rewind to a row takes: that row and what came with it and after
// it, on both sides. row is its place in the UI history from 0. With keep the row
// itself stays.
//
// Which messages of the model's side go is told by the order of the log where this
// program wrote both sides, and else by aligned.
func (s *State) CutAt(row int, keep bool) (Rewound, error) {
	if row < 0 || row >= len(s.ui) {
		return Rewound{}, ErrNothingToCut
	}
	first := row
	if keep {
		first++
	}
	target := s.ui[row]
	c := cutting{state: s, rows: s.ui[first:], since: target.Seq}
	switch {
	case target.Foreign:
		from := s.behindRow(row, first)
		c.unmatched = from.unmatched
		c.gone = func(i int, m *Message) bool {
			if m.Foreign && m.Seq == target.Seq {
				return i >= from.at
			}
			return m.Seq > target.Seq
		}
		if keep {
			c.since++ // what another program knows came all at once
		}
	case first < len(s.ui):
		next := s.ui[first]
		c.since = next.Seq
		c.gone = func(_ int, m *Message) bool { return m.ID >= next.ID }
	default:
		return Rewound{}, ErrNothingToCut
	}
	return c.event("rewind")
}

// behindRow is the cut for the row that is the first to go; row is it, or the one before it, which stays.
func (s *State) behindRow(row, first int) cutPlace {
	if first < len(s.ui) && s.ui[first].Foreign && s.ui[first].Seq == s.ui[row].Seq {
		place := s.aligned(first)
		if before := s.aligned(row); first > row && before.at > place.at && s.ui[row].Kind() == "say:user_feedback" {
			return before // Roo keeps the reply that these words led to
		}
		return place
	}
	return cutPlace{at: len(s.api)} // all that another program knew stays
}

// ErrNoRewind: what is gone is not what goes with a row.
var ErrNoRewind = errors.New("it is not what a rewind takes")

// CutAs is a rewind to a row that another program made, when it took just these messages
// of the model's side. It may have left what Roo leaves: a reply, or a message without a
// time, behind the cut.
func (s *State) CutAs(row int, gone []*Message, by string) (Rewound, error) {
	e, err := s.CutAt(row, false)
	if err != nil {
		return e, err
	}
	took := map[*Message]bool{}
	for _, m := range gone {
		took[m] = true
	}
	c := cutting{state: s, rows: s.ui[row:], since: s.ui[row].Seq, gone: func(_ int, m *Message) bool { return took[m] }}
	for _, m := range s.api {
		goes := slices.ContainsFunc(e.Hide, func(r Run64) bool { return m.ID >= r[0] && m.ID <= r[1] })
		if took[m] && !goes || goes && !took[m] && m.TS() != 0 && m.Kind() != "assistant" && !m.facts.summary {
			return Rewound{}, ErrNoRewind
		}
	}
	out, err := c.event("rewind")
	out.By = by
	return out, err
}

// CutModelAs is a rewind that another program made of the model's side alone, by somebody's
// hand: what a person sees is all still there.
func (s *State) CutModelAs(gone []*Message, by string) (Rewound, error) {
	took := map[*Message]bool{}
	for _, m := range gone {
		took[m] = true
	}
	if len(took) == 0 {
		return Rewound{}, ErrNothingToCut
	}
	c := cutting{state: s, since: gone[0].Seq, gone: func(_ int, m *Message) bool { return took[m] }}
	if gone[0].Foreign {
		c.since++ // what another program knows came all at once
	}
	e, err := c.event("rewind")
	e.By = by
	return e, err
}

// CutTurns is what going back some turns takes. A turn is one reply of the model with
// its tool results: the oldest one that goes is replaced when the task goes on.
func (s *State) CutTurns(n int) (Rewound, error) {
	if n < 1 {
		return Rewound{}, ErrNothingToCut
	}
	left := n
	for i, m := range slices.Backward(s.api) {
		if m.Kind() != "assistant" || m.facts.summary {
			continue
		}
		if left--; left == 0 {
			row := s.requestOf(m)
			c := cutting{state: s, rows: s.ui[row:], since: m.Seq, gone: func(k int, _ *Message) bool { return k >= i }}
			if row < len(s.ui) && !s.ui[row].Foreign {
				c.since = s.ui[row].Seq
			} else if row < len(s.ui) && s.ui[row].Kind() != "say:api_req_started" {
				c.unmatched = s.aligned(row).unmatched
			}
			return c.event("rewind")
		}
	}
	return Rewound{}, ErrTurns
}

// requestOf is the place of the row that a reply's turn begins with.
func (s *State) requestOf(reply *Message) int {
	came := reply.TS()
	var a *alignment
	if reply.Foreign {
		a = s.align(reply.Seq)
		came = a.times[slices.Index(a.group, reply)]
	}
	for i, row := range slices.Backward(s.ui) {
		if row.Kind() != "say:api_req_started" {
			continue
		}
		if row.Seq != reply.Seq && row.ID < reply.ID || row.Seq == reply.Seq && !row.Foreign {
			return i
		}
		if row.Foreign && row.Seq == reply.Seq && row.TS() > 0 && row.TS() <= came && came != unknown {
			return i
		}
	}
	// No row says when it was asked for: the first one that goes with it, if there is one.
	at := slices.Index(s.api, reply)
	if a != nil {
		a.whole = true
	}
	return sortedSearch(len(s.ui), func(i int) bool {
		row := s.ui[i]
		return a != nil && row.Foreign && row.Seq == reply.Seq && a.place(s, row).at >= at || row.Seq > reply.Seq
	})
}

// sortedSearch is the first i below n for which f holds, n when there is none.
func sortedSearch(n int, f func(int) bool) int {
	for i := range n {
		if f(i) {
			return i
		}
	}
	return n
}

// cutting collects what goes.
type cutting struct {
	state *State
	rows  []*Message                   // of the UI history
	gone  func(i int, m *Message) bool // of the API history, by its place
	since uint64                       // what else came from this commit on goes too

	unmatched int // see cutPlace
}

func (c cutting) event(why string) (Rewound, error) {
	s := c.state
	e := Rewound{Why: why, Unmatched: c.unmatched}
	out := map[*Message]bool{}
	for _, m := range c.rows {
		out[m] = true
	}
	if len(c.rows) > 0 {
		e.To = c.rows[0].ID
	}
	for i, m := range s.api {
		if c.gone(i, m) {
			out[m] = true
		}
	}
	c.named(out)
	if len(out) == 0 {
		return e, ErrNothingToCut
	}
	e.Hide = runs(out)
	e.Lift = s.orphaned(out)
	for _, call := range s.order {
		m := s.Message(call.Message)
		if call.Finished != nil && call.finished.Seq >= c.since && m != nil && m.Hidden == "" && !out[m] && s.calls[call.ID] == call {
			e.Calls = append(e.Calls, call.ID)
		}
	}
	goes := func(seq, message uint64, call string) bool {
		if m := s.Message(message); m != nil && (out[m] || m.Hidden != "") {
			return true
		}
		of := s.calls[call]
		return seq >= c.since || of != nil && out[s.Message(of.Message)]
	}
	for _, q := range s.Questions {
		if q.Kind != "damage" && goes(q.Seq, q.Message, q.Call) {
			e.Questions = append(e.Questions, q.Question)
		}
	}
	for _, a := range s.Answered {
		if goes(a.Seq, a.Message, a.Call) {
			e.Questions = append(e.Questions, a.QuestionOpened.Question)
		}
	}
	for _, q := range s.Queue {
		if s.QueuedAt[q.Input] >= c.since {
			e.Inputs = append(e.Inputs, q.Input)
		}
	}
	if slices.ContainsFunc(s.Files, func(f FileRecord) bool { return f.Seq >= c.since }) {
		e.Files = c.since
	}
	return e, nil
}

// named adds the summaries and markers that the rows which go tell of. A summary's
// row may lack the id, as Roo writes it after an overflow: then the rows and the
// summaries that nothing names belong together in their order.
func (c cutting) named(out map[*Message]bool) {
	s := c.state
	summaries, markers := map[string]bool{}, map[string]bool{}
	known := map[string]bool{} // summaries that some row names
	var nameless []*Message    // rows
	for _, m := range s.ui {
		t := m.tagged()
		switch {
		case m.Kind() == "say:condense_context" && t.summary == "":
			nameless = append(nameless, m)
		case m.Kind() == "say:condense_context":
			known[t.summary] = true
			if out[m] {
				summaries[t.summary] = true
			}
		case m.Kind() == "say:sliding_window_truncation" && out[m]:
			markers[t.marker] = true
		}
	}
	var unknown []*Message // summaries
	for _, m := range s.api {
		t := m.tagged()
		if m.facts.summary && !known[t.summary] {
			unknown = append(unknown, m)
		}
		if m.facts.summary && t.summary != "" && summaries[t.summary] || t.marks && t.marker != "" && markers[t.marker] {
			out[m] = true
		}
	}
	for i := 1; i <= min(len(nameless), len(unknown)); i++ {
		if out[nameless[len(nameless)-i]] {
			out[unknown[len(unknown)-i]] = true
		}
	}
}

// orphaned are the ids that tags of messages which stay name, and that no summary or
// marker has which stays.
func (s *State) orphaned(out map[*Message]bool) []string {
	living := map[string]bool{"": true}
	for _, m := range s.api {
		if t := m.tagged(); !out[m] && m.facts.summary {
			living[t.summary] = true
		} else if !out[m] && t.marks {
			living[t.marker] = true
		}
	}
	var ids []string
	for _, m := range s.api {
		if out[m] {
			continue
		}
		for _, id := range []string{m.tagged().condensed, m.tagged().truncated} {
			if !living[id] {
				living[id] = true
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// runs are the numbers of messages, in order.
func runs(set map[*Message]bool) []Run64 {
	ids := make([]uint64, 0, len(set))
	for m := range set {
		ids = append(ids, m.ID)
	}
	slices.SortFunc(ids, func(a, b uint64) int { return cmp.Compare(a, b) })
	var out []Run64
	for _, id := range ids {
		if n := len(out) - 1; n >= 0 && out[n][1]+1 == id {
			out[n][1] = id
			continue
		}
		out = append(out, Run64{id, id})
	}
	return out
}

// Lifts is how many messages that stay are sent again after a rewind, because it takes
// the summary or the marker that hides them.
func (s *State) Lifts(e Rewound) (n int) {
	goes := func(id uint64) bool {
		return slices.ContainsFunc(e.Hide, func(r Run64) bool { return id >= r[0] && id <= r[1] })
	}
	for _, m := range s.api {
		t := m.tagged()
		if !goes(m.ID) && (t.condensed != "" && slices.Contains(e.Lift, t.condensed) ||
			t.truncated != "" && slices.Contains(e.Lift, t.truncated) || slices.ContainsFunc(m.coveredBy(), goes)) {
			n++
		}
	}
	return n
}
