// Package rewind decides which messages, calls, questions and inputs a rewind, or the removal of one message, hides. It
// only reads a state. The event that it returns changes the task when it is committed and folded.
//
// Which messages of the model's side belong to the hidden rows follows from the order of the log where Roost wrote both
// sides, otherwise from tool ids, words and times (align.go).
package rewind

import (
	"errors"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/task/facts"
)

// ErrNothingToCut: no message follows the target of the rewind.
var ErrNothingToCut = errors.New("no message follows it")

// ErrTurns: the task has fewer replies than the rewind goes back.
var ErrTurns = errors.New("the task has fewer turns")

// At returns the rewind to a row: it hides that row, and the messages that came with it and after it, in both
// histories. row is its index in the UI history. With keep the row itself stays.
//
// Where this program wrote both sides, the order of the log decides which messages of the API history go. Elsewhere
// aligned decides.
func At(s *task.State, row int, keep bool) (task.Rewound, error) {
	if row < 0 || row >= len(s.UI()) {
		return task.Rewound{}, ErrNothingToCut
	}
	first := row
	if keep {
		first++
	}
	target := s.UI()[row]
	c := cutting{state: s, rows: s.UI()[first:], since: target.Seq}
	switch {
	case target.Foreign:
		from := behindRow(s, row, first)
		c.unmatched = from.unmatched
		c.gone = func(i int, m *task.Message) bool {
			if m.Foreign && m.Seq == target.Seq {
				return i >= from.at
			}
			return m.Seq > target.Seq
		}
		if keep {
			c.since++ // another program's messages all came in one commit
		}
	case first < len(s.UI()):
		next := s.UI()[first]
		c.since = next.Seq
		c.gone = func(_ int, m *task.Message) bool { return m.ID >= next.ID }
	default:
		return task.Rewound{}, ErrNothingToCut
	}
	return c.event("rewind")
}

// behindRow returns the cut for the first removed row: row, or the one after it when row stays.
func behindRow(s *task.State, row, first int) cutPlace {
	if first < len(s.UI()) && s.UI()[first].Foreign && s.UI()[first].Seq == s.UI()[row].Seq {
		place := aligned(s, first)
		if before := aligned(s, row); first > row && before.at > place.at && s.UI()[row].Kind() == "say:user_feedback" {
			return before // Roo keeps the reply that these words led to
		}
		return place
	}
	return cutPlace{at: len(s.API())} // all messages of the other program stay
}

// ErrNoRewind: the missing messages are not those that a rewind hides together with a row.
var ErrNoRewind = errors.New("the missing messages are not those that a rewind hides")

// As returns the rewind that another program made when it removed a row and exactly these messages of the API
// history. The other program may have left a message behind the cut that Roo leaves, too: a reply, or a message
// without a time.
func As(s *task.State, row int, gone []*task.Message, by string) (task.Rewound, error) {
	e, err := At(s, row, false)
	if err != nil {
		return e, err
	}
	c := cuttingOf(s, s.UI()[row:], gone)
	c.since = s.UI()[row].Seq
	for i, m := range s.API() {
		goes := slices.ContainsFunc(e.Hide, func(r task.Run64) bool { return m.ID >= r[0] && m.ID <= r[1] })
		if took := c.gone(i, m); took && !goes || goes && !took && m.TS() != 0 && m.Kind() != "assistant" && !m.Summary() {
			return task.Rewound{}, ErrNoRewind
		}
	}
	out, err := c.event("rewind")
	out.By = by
	return out, err
}

// ModelAs returns the rewind that another program, or a user's editor, made in the API history alone: every row of
// the UI history is still there.
func ModelAs(s *task.State, gone []*task.Message, by string) (task.Rewound, error) {
	if len(gone) == 0 {
		return task.Rewound{}, ErrNothingToCut
	}
	c := cuttingOf(s, nil, gone)
	c.since = gone[0].Seq
	if gone[0].Foreign {
		c.since++ // another program's messages all came in one commit
	}
	e, err := c.event("rewind")
	e.By = by
	return e, err
}

// Turns returns the rewind that goes back n turns. A turn is one reply of the model with its tool results. The next
// run replaces the oldest removed turn.
func Turns(s *task.State, n int) (task.Rewound, error) {
	if n < 1 {
		return task.Rewound{}, ErrNothingToCut
	}
	left := n
	for i, m := range slices.Backward(s.API()) {
		if m.Kind() != "assistant" || m.Summary() {
			continue
		}
		if left--; left == 0 {
			row := requestOf(s, m)
			c := cutting{state: s, rows: s.UI()[row:], since: m.Seq, gone: func(k int, _ *task.Message) bool { return k >= i }}
			if row < len(s.UI()) && !s.UI()[row].Foreign {
				c.since = s.UI()[row].Seq
			} else if row < len(s.UI()) && s.UI()[row].Kind() != "say:api_req_started" {
				c.unmatched = aligned(s, row).unmatched
			}
			return c.event("rewind")
		}
	}
	return task.Rewound{}, ErrTurns
}

// requestOf returns the index of the row that begins a reply's turn.
func requestOf(s *task.State, reply *task.Message) int {
	came := reply.TS()
	var a *alignment
	if reply.Foreign {
		a = align(s, reply.Seq)
		came = a.times[slices.Index(a.group, reply)]
	}
	for i, row := range slices.Backward(s.UI()) {
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
	// No row shows when the reply was requested: take the first row that goes with it, if there is one.
	at := slices.Index(s.API(), reply)
	var first *task.Message
	if a != nil {
		a.whole = true
		// A later row is never cut at an earlier message, but for some words of the user: no search needs all rows.
		if i := sort.Search(len(a.rows), func(i int) bool { return a.place(s, a.rows[i]).at >= at }); i < len(a.rows) {
			first = a.rows[i]
		}
	}
	for i, row := range s.UI() {
		if row.Seq > reply.Seq || row == first {
			return i
		}
	}
	return len(s.UI())
}

// cutting collects what a rewind hides.
type cutting struct {
	state *task.State
	rows  []*task.Message                   // of the UI history
	gone  func(i int, m *task.Message) bool // of the API history, by its index
	since uint64                            // calls, questions, inputs and file records from this commit on are hidden, too

	unmatched int // see cutPlace
}

// cuttingOf returns the cutting of rows and of the given messages of the API history.
func cuttingOf(s *task.State, rows, gone []*task.Message) cutting {
	goes := api.SetOf(gone)
	return cutting{state: s, rows: rows, since: math.MaxUint64, gone: func(_ int, m *task.Message) bool { return goes[m] }}
}

func (c cutting) event(why string) (task.Rewound, error) {
	s := c.state
	e := task.Rewound{Why: why, Unmatched: c.unmatched}
	out := api.SetOf(c.rows)
	if len(c.rows) > 0 {
		e.To = c.rows[0].ID
	}
	for i, m := range s.API() {
		if c.gone(i, m) {
			out[m] = true
		}
	}
	c.named(out)
	if len(out) == 0 {
		return e, ErrNothingToCut
	}
	e.Hide = runs(out)
	e.Lift = orphaned(s, out)
	for _, call := range s.Calls() {
		m := s.Message(call.Message)
		if call.Finished != nil && call.At.Seq >= c.since && m != nil && m.Hidden == "" && !out[m] && s.Call(call.ID) == call {
			e.Calls = append(e.Calls, call.ID)
		}
	}
	goes := func(seq, message uint64, call string) bool {
		if m := s.Message(message); m != nil && (out[m] || m.Hidden != "") {
			return true
		}
		of := s.Call(call)
		return seq >= c.since || of != nil && out[s.Message(of.Message)]
	}
	e.Questions = api.Some(s.Questions, func(q *task.Question) (string, bool) {
		return q.Question, q.Kind != "damage" && goes(q.Seq, q.Message, q.Call)
	})
	e.Questions = append(e.Questions, api.Some(s.Answered, func(a task.Answered) (string, bool) {
		return a.QuestionOpened.Question, goes(a.Seq, a.Message, a.Call)
	})...)
	e.Inputs = api.Some(s.Queue, func(q task.InputQueued) (string, bool) { return q.Input, s.QueuedAt[q.Input] >= c.since })
	if slices.ContainsFunc(s.Files, func(f task.FileRecord) bool { return f.Seq >= c.since }) {
		e.Files = c.since
	}
	return e, nil
}

// named adds the summaries and markers whose rows are removed. A summary's row may lack the id, because Roo writes it
// without one after an overflow. In that case the rows without an id and the summaries that no row names are paired
// in their order.
func (c cutting) named(out map[*task.Message]bool) {
	s := c.state
	summaries, markers := map[string]bool{}, map[string]bool{}
	known := map[string]bool{}   // summaries that some row names
	var nameless []*task.Message // rows
	for _, m := range s.UI() {
		t := m.Tags()
		switch {
		case m.Kind() == "say:condense_context" && t.Summary == "":
			nameless = append(nameless, m)
		case m.Kind() == "say:condense_context":
			known[t.Summary] = true
			if out[m] {
				summaries[t.Summary] = true
			}
		case m.Kind() == "say:sliding_window_truncation" && out[m]:
			markers[t.Marker] = true
		}
	}
	var unknown []*task.Message // summaries
	for _, m := range s.API() {
		t := m.Tags()
		if m.Summary() && !known[t.Summary] {
			unknown = append(unknown, m)
		}
		if m.Summary() && t.Summary != "" && summaries[t.Summary] || t.Marks && t.Marker != "" && markers[t.Marker] {
			out[m] = true
		}
	}
	for i := 1; i <= min(len(nameless), len(unknown)); i++ {
		if out[nameless[len(nameless)-i]] {
			out[unknown[len(unknown)-i]] = true
		}
	}
}

// orphaned returns the ids in the tags of remaining messages that belong to no remaining summary or marker.
func orphaned(s *task.State, out map[*task.Message]bool) []string {
	living := map[string]bool{"": true}
	for _, m := range s.API() {
		if t := m.Tags(); !out[m] && m.Summary() {
			living[t.Summary] = true
		} else if !out[m] && t.Marks {
			living[t.Marker] = true
		}
	}
	var ids []string
	for _, m := range s.API() {
		if out[m] {
			continue
		}
		for _, id := range []string{m.Tags().Condensed, m.Tags().Truncated} {
			if !living[id] {
				living[id] = true
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// runs returns the numbers of messages as ranges, in order.
func runs(set map[*task.Message]bool) []task.Run64 {
	ids := make([]uint64, 0, len(set))
	for m := range set {
		ids = append(ids, m.ID)
	}
	slices.Sort(ids)
	return task.Ranges(ids)
}

// Lifts returns how many remaining messages are sent again after a rewind, because it hides the summary or the marker
// that covers them.
func Lifts(s *task.State, e task.Rewound) (n int) {
	goes := func(id uint64) bool {
		return slices.ContainsFunc(e.Hide, func(r task.Run64) bool { return id >= r[0] && id <= r[1] })
	}
	for _, m := range s.API() {
		t := m.Tags()
		if !goes(m.ID) && (t.Condensed != "" && slices.Contains(e.Lift, t.Condensed) ||
			t.Truncated != "" && slices.Contains(e.Lift, t.Truncated) || slices.ContainsFunc(m.CoveredBy(), goes)) {
			n++
		}
	}
	return n
}

// The reasons why one message cannot be removed alone.
var (
	ErrFirstMessage = errors.New("the first message states the task and cannot be removed; delete the task instead")
	ErrShared       = errors.New("one message of the model's history holds it together with results of calls; rewind to it " +
		"instead, or edit it")
)

// Message returns the removal of one message. With a reply it removes the reply's request, words, calls and their
// results; words of the user are removed alone.
func Message(s *task.State, row int) (task.Rewound, error) {
	if row < 0 || row >= len(s.UI()) {
		return task.Rewound{}, ErrNothingToCut
	}
	if row == 0 {
		return task.Rewound{}, ErrFirstMessage
	}
	rows := s.UI()[row : row+1]
	var gone []*task.Message
	if rows[0].Kind() == "say:user_feedback" {
		said, err := saidIn(s, row)
		if err != nil {
			return task.Rewound{}, err
		}
		if said != nil {
			gone = append(gone, said)
		}
	} else if from, to := turnOf(s, row); from >= 0 && !coverRow(rows[0]) {
		rows = slices.DeleteFunc(slices.Clone(s.UI()[from:to]), coverRow)
		if reply := replyBetween(s, from, to); reply >= 0 {
			gone = append(gone, s.API()[reply])
			if next := reply + 1; next < len(s.API()) && answersOnly(s.API()[next], s.API()[reply]) && wordsApart(s, to, s.API()[next]) {
				gone = append(gone, s.API()[next])
			}
		}
	}
	return cuttingOf(s, rows, gone).event("remove")
}

// coverRow reports whether a row shows a summary or a marker. It belongs to no turn.
func coverRow(m *task.Message) bool {
	return m.Kind() == "say:condense_context" || m.Kind() == "say:sliding_window_truncation"
}

// turnOf returns the rows of the turn that a row belongs to: from its request to the row before the next request or
// before the user's next words. from is -1 when the row belongs to no turn.
func turnOf(s *task.State, row int) (from, to int) {
	for from = row; from >= 0; from-- {
		kind := s.UI()[from].Kind()
		if kind == "say:api_req_started" {
			break
		}
		if kind == "say:user_feedback" {
			return -1, 0
		}
	}
	if from < 0 {
		return -1, 0
	}
	for to = from + 1; to < len(s.UI()); to++ {
		if kind := s.UI()[to].Kind(); kind == "say:api_req_started" || kind == "say:user_feedback" {
			break
		}
	}
	return from, to
}

// wordsApart reports whether the user's words in a row, if it holds any, are in another message than m.
func wordsApart(s *task.State, row int, m *task.Message) bool {
	if row == len(s.UI()) || s.UI()[row].Kind() != "say:user_feedback" {
		return true
	}
	said, err := saidIn(s, row)
	return err == nil && said != nil && said != m
}

// replyBetween returns the index of the reply to the request in row from, -1 when it has none. to is the row behind the
// turn.
func replyBetween(s *task.State, from, to int) int {
	end := len(s.API())
	if next := slices.IndexFunc(s.UI()[to:], func(m *task.Message) bool { return m.Kind() == "say:api_req_started" }); next >= 0 {
		end = behindIn(s, to+next)
	}
	for i := behindIn(s, from); i < end; i++ {
		if m := s.API()[i]; m.Kind() == "assistant" && !m.Summary() {
			return i
		}
	}
	return -1
}

// behindIn returns the index of the first message of the API history that came with a row or after it.
func behindIn(s *task.State, row int) int {
	target := s.UI()[row]
	if target.Foreign {
		return aligned(s, row).at
	}
	if i := slices.IndexFunc(s.API(), func(m *task.Message) bool { return m.ID > target.ID }); i >= 0 {
		return i
	}
	return len(s.API())
}

// answersOnly reports whether a user turn holds results of a reply's calls, and no other results. Where calls are text,
// their results are, too: [read_file for 'a.go'] Result:
func answersOnly(m, reply *task.Message) bool {
	other := func(id string) bool {
		return !slices.ContainsFunc(reply.Uses(), func(u facts.Use) bool { return u.ID == id })
	}
	line, _, _ := strings.Cut(textOf(m.Raw()), "\n")
	return m.Kind() == "user" && !m.Summary() && !slices.ContainsFunc(m.Results(), other) &&
		(len(m.Results()) > 0 || strings.HasPrefix(line, "[") && strings.Contains(line, "] Result:"))
}

// saidIn returns the user turn that holds the user's words in a row, nil when none does. Where neither times nor records
// show when messages came, it may be one before the place where the row seems to belong; it is never the first message.
func saidIn(s *task.State, row int) (said *task.Message, err error) {
	target, begin := s.UI()[row], behindIn(s, row)
	text := strings.TrimSpace(target.Text())
	for i, m := range s.API() {
		if i < begin && (i == 0 || m.TS() != 0 || !target.Foreign || target.Facts.Behind != 0) ||
			m.Kind() != "user" || m.Summary() || !strings.Contains(textOf(m.Raw()), text) {
			continue
		}
		if said = m; i >= begin {
			break
		}
	}
	if said != nil && len(said.Results()) > 0 {
		return nil, ErrShared
	}
	return said, nil
}
