package rewind

import (
	"cmp"
	"slices"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/task/facts"
)

// Where times are evidence, only so many rows and messages around a cut are compared. The rows of a message are
// nearly always among them.
const (
	rowsAround     = 1024
	messagesAround = 256
)

// shown returns pairs of a row and the message that it shows, in the order of both: only those near a cut, or all of
// them where times are no evidence. A row shows a message by the id of a call, by words with which one of the two
// begins, or by the purpose of a call: its command, question, path or result. A sign that occurs as often in rows as
// in messages pairs them in order; any other sign is no evidence.
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
	whole bool // of a row: the sign is the beginning of its message
}

// signLength is how many bytes of two texts must be equal. A shorter text must be equal as a whole.
const signLength = 12

// under passes the text to give under a key that texts with the same beginning share.
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
		question, _ := esjson.GetString(inside, "question")
		sign{text: question}.under("assistant ", give)
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

// idMembers are the names under which a row may have the id of a call.
var idMembers = []string{"id", "toolUseId", "tool_use_id", "toolCallId", "callId"}

// signsOfMessage passes to give the signs of a message that rows may show.
func signsOfMessage(raw []byte, give func(key, text string)) {
	role, _ := esjson.GetString(raw, "role")
	whose := role + " "
	said := func(text string) {
		if text = strings.TrimSpace(text); !strings.HasPrefix(text, "<environment_details>") {
			sign{text: unwrapped(text)}.under(whose, give)
		}
	}
	if content, ok := esjson.GetString(raw, "content"); ok {
		said(content)
		return
	}
	facts.Blocks(raw, func(typ string, block []byte) {
		text, _ := esjson.GetString(block, "text")
		switch typ {
		case "text":
			said(text)
		case "reasoning":
			sign{text: text}.under("thought ", give)
		case "thinking":
			text, _ = esjson.GetString(block, "thinking")
			sign{text: text}.under("thought ", give)
		case "tool_use":
			if id, ok := esjson.GetString(block, "id"); ok && id != "" {
				give("id "+id, id)
			}
			input, _ := esjson.Get(block, "input")
			for _, key := range []string{"command", "question", "result"} {
				text, _ := esjson.GetString(input, key)
				sign{text: text}.under(whose, give)
			}
			if path, _ := esjson.GetString(input, "path"); path != "" {
				give("path "+path, path)
			}
		}
	})
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

// texts0 returns the text of a message.
func texts0(raw []byte) string {
	if content, ok := esjson.GetString(raw, "content"); ok {
		return content
	}
	var out strings.Builder
	facts.Blocks(raw, func(typ string, block []byte) {
		if text, ok := esjson.GetString(block, "text"); ok && typ == "text" {
			out.WriteString(text)
			out.WriteByte('\n')
		}
	})
	return out.String()
}
