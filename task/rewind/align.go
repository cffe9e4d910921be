package rewind

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/task"
)

// cutPlace is where a rewind cuts the API history: it hides the messages from index at on. unmatched counts the
// messages around that place that neither ids nor words nor times match to a row.
type cutPlace struct{ at, unmatched int }

// aligned returns where a rewind to another program's row cuts the API history, among the messages that came together with
// that row.
//
// Roo's own cut is the rule, with these differences. A message that a remaining row shows always stays, and so do the
// messages before it. A message goes when no remaining row shows any of it, and everything behind it goes as well:
// Roo keeps replies and messages without a time for ever. A message is never later than the message that follows it,
// whichever time it has. Where times are no evidence, because the clock went back or they are missing, replies are
// matched to request rows by count. Cline's own records precede all of that.
func aligned(s *task.State, row int) cutPlace { return align(s, s.UI()[row].Seq).place(s, s.UI()[row]) }

// alignment relates the rows and messages that came from another program in one commit.
type alignment struct {
	rows, group []*task.Message
	start       int     // of the group in the API history
	rowTimes    []int64 // the times of the rows, each lowered to an earlier time behind it; or unknown
	times       []int64 // the same for the messages
	state       *task.State

	whole  bool      // all rows were compared with all messages
	paired bool      // the pairs are computed
	pairs  []showing // the result
}

const unknown = int64(math.MaxInt64)

func align(s *task.State, seq uint64) *alignment {
	a := &alignment{state: s, start: len(s.API())}
	a.rows = api.Some(s.UI(), func(m *task.Message) (*task.Message, bool) { return m, m.Foreign && m.Seq == seq })
	for i, m := range s.API() {
		if m.Foreign && m.Seq == seq {
			a.start = min(a.start, i)
			a.group = append(a.group, m)
		}
	}
	a.rowTimes, a.times = risingTimes(a.rows), risingTimes(a.group)
	return a
}

// risingTimes returns the times of messages, each lowered to that of a later message with an earlier time. A message
// without a time gets that of the next one.
func risingTimes(list []*task.Message) []int64 {
	out := make([]int64, len(list))
	least := unknown
	for i, m := range slices.Backward(list) {
		if ts := m.TS(); ts > 0 {
			least = min(least, ts)
		}
		out[i] = least
	}
	return out
}

// place returns the cut for the first row that is removed.
func (a *alignment) place(s *task.State, row *task.Message) cutPlace {
	at := slices.Index(a.rows, row)
	if at == 0 && len(a.group) > 0 {
		return cutPlace{at: a.start}
	}
	j, unmatched := a.cut(at)
	if j == len(a.group) {
		return cutPlace{behind(s, a.group, a.start), unmatched}
	}
	// Messages that other steps put between those of the group do not count here.
	if i := slices.Index(s.API(), a.group[j]); i >= 0 {
		return cutPlace{i, unmatched}
	}
	return cutPlace{len(s.API()), unmatched}
}

// behind returns the index after the last message of a group.
func behind(s *task.State, group []*task.Message, start int) int {
	if len(group) == 0 {
		return start
	}
	if i := slices.Index(s.API(), group[len(group)-1]); i >= 0 {
		return i + 1
	}
	return len(s.API())
}

// cut returns the index of the first message in the group that a rewind removes when it removes the rows from at on.
func (a *alignment) cut(at int) (j, unmatched int) {
	if j, ok := a.recorded(at); ok {
		return j, 0
	}
	sound := !a.wentBack(at)
	byCount := false
	if !sound {
		j, byCount = a.counted(at)
	}
	if !byCount {
		j = a.byTime(at)
	}
	stay, gone := 0, len(a.group)
	for _, p := range a.shown(at, j, sound) {
		switch {
		case p.row < at:
			stay = max(stay, p.message+1)
		case p.message >= stay && (p.text || !sound || a.group[p.message].TS() == 0):
			// A reply begins with its text. When one of its calls goes, what came before the call may stay.
			gone = min(gone, p.message)
		}
	}
	if !byCount {
		unmatched = a.unmatched(at, j, stay, gone, sound)
	}
	return min(max(j, stay), gone), unmatched
}

// unmatched counts the messages that no evidence places: no row shows them, and they or the rows have no usable
// times.
func (a *alignment) unmatched(at, j, stay, gone int, sound bool) (n int) {
	for i := stay; i < gone; i++ {
		between := a.group[i].TS() == 0 && i < j && a.times[i] >= a.rowTimes[at]
		if between || !sound {
			n++
		}
	}
	return n
}

// wentBack reports whether a row before the target has a later time. Then times do not order what is before and
// after.
func (a *alignment) wentBack(at int) bool {
	if a.rowTimes[at] == unknown {
		return true
	}
	return slices.ContainsFunc(a.rows[:at], func(m *task.Message) bool { return m.TS() > a.rowTimes[at] })
}

// byTime cuts by Roo's rule, which compares times. The reply before the user's words led to them and stays.
func (a *alignment) byTime(at int) int {
	ts := a.rowTimes[at]
	exact, older := false, false
	j, user := len(a.group), -1
	for i, m := range a.group {
		t := a.times[i]
		exact, older = exact || m.TS() == ts, older || t < ts
		if m.TS() == 0 || t < ts {
			continue
		}
		j = min(j, i)
		if user < 0 && m.Kind() == "user" {
			user = i
		}
	}
	if a.rows[at].Kind() == "say:user_feedback" && !exact && older && user >= 0 {
		return user
	}
	return j
}

// recorded cuts where Cline recorded in the row how many messages the model's history held. A request that stays sends
// the message behind those if it is the user's, and words that stay begin it if it is a reply. The records are of the
// file as it was adopted.
func (a *alignment) recorded(at int) (int, bool) {
	behind, s := a.rows[at].Facts.Behind, a.state
	if first := s.Message(1); behind == 0 || first == nil || first.History != task.UI || first.Seq != a.rows[at].Seq {
		return 0, false
	}
	next := a.rows[len(a.rows)-1].ID // becomes the number of the message behind the recorded ones
	for m := s.Message(next); m != nil && m.History == task.UI; m = s.Message(next) {
		next++
	}
	next += uint64(behind - 1)
	if held := s.Message(next - 1); held == nil || held.Seq != a.rows[at].Seq {
		return 0, false // the other program cut this history later
	}
	j := slices.IndexFunc(a.group, func(m *task.Message) bool { return m.ID >= next })
	if j < 0 {
		return len(a.group), true
	}
	for i := at; i >= 0 && a.rows[i].Facts.Behind == behind && a.group[j].ID == next; i-- {
		switch user := a.group[j].Kind() == "user"; {
		case user && a.rows[i].Kind() == "say:api_req_started", !user && i < at && a.rows[i].Kind() == "say:text" && a.rows[i].Text() != "":
			return j + 1, true
		}
	}
	return j, true
}

// counted pairs replies with the request rows that brought them, when there are as
// many of both.
func (a *alignment) counted(at int) (int, bool) {
	requests, replies, before := 0, 0, 0
	last := -1 // the request row that the target belongs to
	for i, m := range a.rows {
		if m.Kind() != "say:api_req_started" {
			continue
		}
		if _, brought := m.Spent(); !brought {
			continue
		}
		if requests++; i < at {
			before, last = requests, i
		}
	}
	reply := -1 // the one before the target
	for i, m := range a.group {
		if m.Kind() != "assistant" || m.Summary() {
			continue
		}
		if replies++; replies == before {
			reply = i
		}
	}
	if requests == 0 || requests != replies {
		return 0, false
	}
	switch kind := a.rows[at].Kind(); {
	case last < 0:
		return 0, true
	case kind == "say:text" || kind == "say:reasoning":
		return reply, true
	case kind == "say:api_req_started" && reply+1 < len(a.group) && a.group[reply+1].Kind() == "user":
		return reply + 2, true // the request sent messages that existed before it
	}
	return reply + 1, true
}

// Where times are evidence, only this many rows and messages around a cut are compared. The rows of a message are
// nearly always among them.
const (
	rowsAround     = 1024
	messagesAround = 256
)

// shown returns pairs of a row and the message that it shows, in the order of both: only those near a cut, or all of
// them where times are no evidence. The sign that pairs them is the id of a call, words with which one of the two
// begins, or a detail of a call: its command, question, path or result. A sign that occurs as often in rows as in
// messages pairs them in order; any other sign is no evidence.
func (a *alignment) shown(at, j int, sound bool) []showing {
	if sound && !a.whole {
		return a.pair(max(0, at-rowsAround), min(len(a.rows), at+rowsAround), max(0, j-messagesAround), min(len(a.group), j+messagesAround))
	}
	if !a.paired {
		a.paired, a.pairs = true, a.pair(0, len(a.rows), 0, len(a.group))
	}
	return a.pairs
}

// pair compares a range of the rows with a range of the messages.
func (a *alignment) pair(fromRow, toRow, from, to int) []showing {
	rows, err := a.state.Raws(a.rows[fromRow:toRow])
	if err != nil {
		return nil
	}
	messages, err := a.state.Raws(a.group[from:to])
	if err != nil {
		return nil
	}
	left, right := map[string][]sign{}, map[string][]sign{}
	ids := map[string]bool{}
	for i, raw := range messages {
		i += from
		for _, u := range a.group[i].Uses() {
			ids[u.ID] = true
		}
		signsOfMessage(raw, func(key, text string) { right[key] = append(right[key], sign{at: i, text: text}) })
	}
	first := slices.IndexFunc(a.rows, func(m *task.Message) bool { return m.Kind() == "say:text" }) // the user's first prompt
	for i, raw := range rows {
		i += fromRow
		kind := a.rows[i].Kind()
		whole := kind == "say:text" || kind == "say:user_feedback"
		signsOfRow(kind, raw, i == first, ids, func(key, text string) { left[key] = append(left[key], sign{i, text, whole}) })
	}
	var pairs []showing
	for key, shown := range left {
		said := right[key]
		if len(shown) != len(said) {
			continue
		}
		for i := range shown {
			if strings.HasPrefix(shown[i].text, said[i].text) || strings.HasPrefix(said[i].text, shown[i].text) {
				pairs = append(pairs, showing{shown[i].at, said[i].at, shown[i].whole})
			}
		}
	}
	slices.SortFunc(pairs, func(p, q showing) int { return cmp.Or(cmp.Compare(p.row, q.row), cmp.Compare(p.message, q.message)) })
	return inBothOrders(pairs)
}

// showing is a row and the message that it shows.
type showing struct {
	row, message int
	text         bool // the sign is the beginning of the message, and not one of its calls
}

// sign is a property of a row or a message by which the two can be paired.
type sign struct {
	at    int
	text  string
	whole bool // for a row: the sign is the beginning of its message
}

// signLength is the number of bytes in which two texts must agree. A shorter text must agree as a whole.
const signLength = 12

// under passes the text to give under a key that all texts with the same beginning share.
func (s sign) under(whose string, give func(key, text string)) {
	text := strings.TrimSpace(s.text)
	if text != "" {
		give(whose+text[:min(len(text), signLength)], text)
	}
}

// signsOfRow passes the signs of a row to give.
func signsOfRow(kind string, raw []byte, first bool, ids map[string]bool, give func(key, text string)) {
	text, _ := esjson.GetString(raw, "text")
	inside := []byte(text)
	if strings.HasPrefix(text, "{") && esjson.Valid(inside) {
		for _, key := range idMembers {
			if id, ok := esjson.GetString(inside, key); ok && ids[id] {
				give("id "+id, id)
			}
		}
	}
	for _, key := range idMembers {
		if id, ok := esjson.GetString(raw, key); ok && ids[id] {
			give("id "+id, id)
		}
	}
	switch {
	case kind == "say:user_feedback" || kind == "say:text" && first:
		sign{text: text}.under("user ", give)
	case kind == "say:text" || kind == "say:completion_result" || kind == "ask:completion_result" ||
		kind == "ask:command" || kind == "say:command":
		sign{text: text}.under("assistant ", give)
	case kind == "say:reasoning":
		sign{text: text}.under("thought ", give)
	case kind == "ask:followup":
		sign{text: esjson.TextOf(inside, "question")}.under("assistant ", give)
	case kind == "ask:tool" || kind == "say:tool":
		path, ok := esjson.GetString(inside, "path")
		if !ok {
			path, _ = esjson.GetString(raw, "path")
		}
		if path != "" {
			give("path "+path, path)
		}
	}
}

// idMembers are the names of members in which a row may hold the id of a call.
var idMembers = []string{"id", "toolUseId", "tool_use_id", "toolCallId", "callId"}

// signsOfMessage passes to give the signs of a message that rows may show.
func signsOfMessage(raw []byte, give func(key, text string)) {
	whose := esjson.TextOf(raw, "role") + " "
	said := func(text string) {
		if text = strings.TrimSpace(text); !strings.HasPrefix(text, "<environment_details>") {
			sign{text: unwrapped(text)}.under(whose, give)
		}
	}
	for block := range esjson.Blocks(esjson.Member(raw, "content")) {
		text, _ := esjson.GetString(block, "text")
		switch esjson.TextOf(block, "type") {
		case "text":
			said(text)
		case "reasoning":
			sign{text: text}.under("thought ", give)
		case "thinking":
			sign{text: esjson.TextOf(block, "thinking")}.under("thought ", give)
		case "tool_use":
			if id := esjson.TextOf(block, "id"); id != "" {
				give("id "+id, id)
			}
			input, _ := esjson.Get(block, "input")
			for _, key := range []string{"command", "question", "result"} {
				sign{text: esjson.TextOf(input, key)}.under(whose, give)
			}
			if path := esjson.TextOf(input, "path"); path != "" {
				give("path "+path, path)
			}
		}
	}
}

// wrappers are the tags that enclose a user's words in a message.
var wrappers = []string{"<user_message>", "<task>", "<feedback>", "<answer>"}

// unwrapped returns the user's words without the tags around them.
func unwrapped(text string) string {
	for _, open := range wrappers {
		if rest, ok := strings.CutPrefix(text, open); ok {
			rest, _, _ = strings.Cut(rest, "</"+open[1:])
			return rest
		}
	}
	return text
}

// inBothOrders returns the longest part of pairs, which are in the order of their rows, that is also in the order of
// their messages.
func inBothOrders(pairs []showing) []showing {
	var ends []int // by length, less one: the last pair of the best chain
	before := make([]int, len(pairs))
	for i, p := range pairs {
		n, _ := slices.BinarySearchFunc(ends, p.message, func(e, message int) int {
			if pairs[e].message <= message {
				return -1
			}
			return 1
		})
		if before[i] = -1; n > 0 {
			before[i] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, i)
		} else {
			ends[n] = i
		}
	}
	if len(ends) == 0 {
		return nil
	}
	var out []showing
	for i := ends[len(ends)-1]; i >= 0; i = before[i] {
		out = append(out, pairs[i])
	}
	slices.Reverse(out)
	return out
}

// textOf returns the texts of a message, each with a line break behind it.
func textOf(raw []byte) string {
	var out strings.Builder
	for block := range esjson.Blocks(esjson.Member(raw, "content")) {
		if text, ok := esjson.GetString(block, "text"); ok && esjson.TextOf(block, "type") == "text" {
			out.WriteString(text + "\n")
		}
	}
	return out.String()
}
