package task

import (
	"math"
	"slices"
)

// cutPlace is where the model's side is cut: messages from a place on go. unmatched is how many messages before or behind that place
// neither ids nor words nor times could match to a row.
type cutPlace struct{ at, unmatched int }

// aligned is the place in the API history from which on messages go when another
// program's row goes, among those that came together with it.
//
// What Roo cuts is the rule, with these differences. A message that a row which stays shows is never taken, nor what stands before it. A
// message goes of which nothing is shown any more, and everything behind it: Roo keeps replies and messages without a time for ever. A
// message is never later than what follows it, whatever its own time says. And where times say nothing, because the clock went back or
// there are none, replies are counted by their request rows.
func (s *State) aligned(row int) cutPlace { return s.align(s.ui[row].Seq).place(s, s.ui[row]) }

// alignment relates the rows and messages that came from another program in one commit.
type alignment struct {
	rows, group []*Message
	start       int     // of the group in the API history
	rowTimes    []int64 // when each row came: none is later than what follows it; unknown where no row behind it has a time
	times       []int64 // the same of the messages
	state       *State

	whole  bool      // all rows are compared with all messages, once
	paired bool      // that was done
	pairs  []showing // and gave these
}

const unknown = int64(math.MaxInt64)

func (s *State) align(seq uint64) *alignment {
	a := &alignment{state: s, start: len(s.api)}
	for _, m := range s.ui {
		if m.Foreign && m.Seq == seq {
			a.rows = append(a.rows, m)
		}
	}
	for i, m := range s.api {
		if m.Foreign && m.Seq == seq {
			a.start = min(a.start, i)
			a.group = append(a.group, m)
		}
	}
	a.rowTimes, a.times = risingTimes(a.rows), risingTimes(a.group)
	return a
}

// risingTimes are the times of messages, each lowered to that of a later message which has an earlier one. A message without a time has
// that of the next one.
func risingTimes(list []*Message) []int64 {
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

// place is the cut for the row that is the first to go.
func (a *alignment) place(s *State, row *Message) cutPlace {
	at := slices.Index(a.rows, row)
	if at == 0 && len(a.group) > 0 {
		return cutPlace{at: a.start}
	}
	j, unmatched := a.cut(at)
	if j == len(a.group) {
		return cutPlace{s.behind(a.group, a.start), unmatched}
	}
	// What other steps put between them does not count here.
	if i := slices.Index(s.api, a.group[j]); i >= 0 {
		return cutPlace{i, unmatched}
	}
	return cutPlace{len(s.api), unmatched}
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

// cut is the place in the group from which on messages go when the rows from at on do.
func (a *alignment) cut(at int) (j, unmatched int) {
	sound := !a.wentBack(at)
	told := false
	if !sound {
		j, told = a.counted(at)
	}
	if !told {
		j = a.byTime(at)
	}
	stay, gone := 0, len(a.group)
	for _, p := range a.shown(at, j, sound) {
		switch {
		case p.row < at:
			stay = max(stay, p.message+1)
		case p.message >= stay && (p.text || !sound || a.group[p.message].TS() == 0):
			// A reply begins with its text. That one of its calls goes does not tell of what came before the call.
			gone = min(gone, p.message)
		}
	}
	if !told {
		unmatched = a.unmatched(at, j, stay, gone, sound)
	}
	return min(max(j, stay), gone), unmatched
}

// unmatched are the messages of which nothing says where they belong: no row shows them, and they or the rows have no times that do.
func (a *alignment) unmatched(at, j, stay, gone int, sound bool) (n int) {
	for i := stay; i < gone; i++ {
		between := a.group[i].TS() == 0 && i < j && a.times[i] >= a.rowTimes[at]
		if between || !sound {
			n++
		}
	}
	return n
}

// words: the person said it; the reply before it led to it and stays.
func (a *alignment) words(at int) bool { return a.rows[at].Kind() == "say:user_feedback" }

// wentBack reports whether a row before the target is of a later time: then times
// say nothing of before and after.
func (a *alignment) wentBack(at int) bool {
	if a.rowTimes[at] == unknown {
		return true
	}
	return slices.ContainsFunc(a.rows[:at], func(m *Message) bool { return m.TS() > a.rowTimes[at] })
}

// byTime is Roo's rule.
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
	if a.words(at) && !exact && older && user >= 0 {
		return user
	}
	return j
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
		if m.Kind() != "assistant" || m.facts.summary {
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
		return reply + 2, true // what the request sends was there before it
	}
	return reply + 1, true
}
