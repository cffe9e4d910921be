package task

import (
	"bytes"
	"strings"

	"github.com/roost-dev/roost/esjson"
)

// aligned is the place in the API history from which on messages go when another
// program's row goes, among those that came together with it.
//
// What Roo cuts is the rule, with three differences. A reply goes with its rows: Roo
// moves the cut to the next user turn and keeps a reply of which nothing is shown any
// more. Everything behind the cut goes: Roo keeps messages without a time for ever.
// And where times say nothing, because the clock went back or there are none, replies
// are counted by their request rows and messages are known by their words.
func (s *State) aligned(row int) int {
	target := s.ui[row]
	var rows, group []*Message
	at, start := 0, len(s.api)
	for i, m := range s.ui {
		if i == row {
			at = len(rows)
		}
		if m.Foreign && m.Seq == target.Seq {
			rows = append(rows, m)
		}
	}
	for i, m := range s.api {
		if m.Foreign && m.Seq == target.Seq {
			start = min(start, i)
			group = append(group, m)
		}
	}
	a := alignment{rows: rows, at: at, group: group}
	if at == 0 && len(group) > 0 {
		return start
	}
	j := a.cut()
	if j == len(group) {
		return s.behind(group, start)
	}
	// What other steps put between them does not count here.
	for i, m := range s.api {
		if m == group[j] {
			return i
		}
	}
	return len(s.api)
}

// behind is the place behind the last message of a group.
func (s *State) behind(group []*Message, start int) int {
	if len(group) == 0 {
		return start
	}
	for i := len(s.api) - 1; i >= 0; i-- {
		if s.api[i] == group[len(group)-1] {
			return i + 1
		}
	}
	return len(s.api)
}

// alignment is one row to find the place of.
type alignment struct {
	rows  []*Message
	at    int
	group []*Message // of the API history
}

func (a alignment) target() *Message { return a.rows[a.at] }

// words: the person said it; the reply before it led to it and stays.
func (a alignment) words() bool { return a.target().Kind() == "say:user_feedback" }

// cut is the place in the group from which on messages go.
func (a alignment) cut() int {
	if a.wentBack() {
		if j, ok := a.counted(); ok {
			return j
		}
	}
	j := a.byTime()
	// A message without a time goes with the rows that show it.
	for j > 0 && a.group[j-1].TS() == 0 && a.shown(a.group[j-1]) {
		j--
	}
	if a.timeless() {
		for i, m := range a.group {
			if a.shown(m) {
				return i
			}
		}
	}
	return j
}

// timeless: no message of the model's side has a time.
func (a alignment) timeless() bool {
	for _, m := range a.group {
		if m.TS() != 0 {
			return false
		}
	}
	return true
}

// wentBack reports whether a row before the target is of a later time: then times
// say nothing of before and after.
func (a alignment) wentBack() bool {
	ts := a.target().TS()
	if ts == 0 {
		return true
	}
	for _, m := range a.rows[:a.at] {
		if m.TS() > ts {
			return true
		}
	}
	return false
}

// byTime is Roo's rule.
func (a alignment) byTime() int {
	ts := a.target().TS()
	exact, older := false, false
	j, user := len(a.group), -1
	for i, m := range a.group {
		t := m.TS()
		if t == 0 {
			continue
		}
		exact, older = exact || t == ts, older || t < ts
		if t < ts {
			continue
		}
		j = min(j, i)
		if user < 0 && m.Kind() == "user" {
			user = i
		}
	}
	if a.words() && !exact && older && user >= 0 {
		return user
	}
	return j
}

// counted pairs replies with the request rows that brought them, when there are as
// many of both.
func (a alignment) counted() (int, bool) {
	requests, replies, before := 0, 0, 0
	last := -1 // the request row that the target belongs to
	for i, m := range a.rows {
		if m.Kind() != "say:api_req_started" {
			continue
		}
		if _, brought := m.Spent(); !brought {
			continue
		}
		if requests++; i < a.at {
			before, last = requests, i
		}
	}
	at := -1 // of the reply before the target
	for i, m := range a.group {
		if m.Kind() != "assistant" || m.facts.summary {
			continue
		}
		if replies++; replies == before {
			at = i
		}
	}
	if requests == 0 || requests != replies {
		return 0, false
	}
	switch kind := a.target().Kind(); {
	case last < 0:
		return 0, true
	case kind == "say:text" || kind == "say:reasoning":
		return at, true
	case kind == "say:api_req_started" && at+1 < len(a.group) && a.group[at+1].Kind() == "user":
		return at + 2, true // what the request sends was there before it
	}
	return at + 1, true
}

// shown reports whether a row that goes shows the message, and none that stays.
func (a alignment) shown(m *Message) bool {
	raw := m.Raw()
	said := texts0(raw)
	for i, row := range a.rows {
		kind := row.Kind()
		if m.Kind() == "assistant" && kind != "say:text" || m.Kind() == "user" && kind != "say:user_feedback" {
			continue
		}
		text := strings.TrimSpace(row.Text())
		if text == "" || !strings.Contains(said, text) {
			continue
		}
		return i >= a.at
	}
	// A call's row has its input's words in other JSON; its name is all that is alike.
	return false
}

// texts0 are the words of a message.
func texts0(raw []byte) string {
	if content, ok := esjson.GetString(raw, "content"); ok {
		return content
	}
	var out bytes.Buffer
	eachBlock(raw, func(typ string, block []byte) {
		if text, ok := esjson.GetString(block, "text"); ok && typ == "text" {
			out.WriteString(text)
			out.WriteByte('\n')
		}
	})
	return out.String()
}
