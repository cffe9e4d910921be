package rewind

import (
	"math"
	"slices"

	"github.com/roost-dev/roost/task"
)

// cutPlace is where the API history is cut: messages from index at on go. unmatched is how many messages around it
// neither ids nor words nor times could match to a row.
type cutPlace struct{ at, unmatched int }

// aligned is the place in the API history from which messages go when another program's row goes. It counts among the
// messages that came together with that row.
//
// Roo's own cut is the rule, with these differences. A message that a remaining row shows is never taken, nor are the
// messages before it. A message goes when no remaining row shows any of it, and everything behind it goes as well:
// Roo keeps replies and messages without a time for ever. A message is never later than the message that follows it,
// whichever time it has. Where times are no evidence, because the clock went back or there are none, replies are
// counted by their request rows.
func aligned(s *task.State, row int) cutPlace { return align(s, s.UI()[row].Seq).place(s, s.UI()[row]) }

// alignment relates the rows and messages that came from another program in one commit.
type alignment struct {
	rows, group []*task.Message
	start       int     // of the group in the API history
	rowTimes    []int64 // when each row came, none later than the rows behind it; unknown where no row behind it has a time
	times       []int64 // the same of the messages
	state       *task.State

	whole  bool      // all rows are compared with all messages, once
	paired bool      // that was done
	pairs  []showing // and gave these
}

const unknown = int64(math.MaxInt64)

func align(s *task.State, seq uint64) *alignment {
	a := &alignment{state: s, start: len(s.API())}
	for _, m := range s.UI() {
		if m.Foreign && m.Seq == seq {
			a.rows = append(a.rows, m)
		}
	}
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

// place is the cut for the row that is the first to go.
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

// behind is the index after the last message of a group.
func behind(s *task.State, group []*task.Message, start int) int {
	if len(group) == 0 {
		return start
	}
	for i := len(s.API()) - 1; i >= 0; i-- {
		if s.API()[i] == group[len(group)-1] {
			return i + 1
		}
	}
	return len(s.API())
}

// cut returns the index in the group from which messages go when the rows from at on go.
func (a *alignment) cut(at int) (j, unmatched int) {
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

// words reports whether the row holds words of the user. The reply before them led to them and stays.
func (a *alignment) words(at int) bool { return a.rows[at].Kind() == "say:user_feedback" }

// wentBack reports whether a row before the target has a later time. Then times do not order what is before and
// after.
func (a *alignment) wentBack(at int) bool {
	if a.rowTimes[at] == unknown {
		return true
	}
	return slices.ContainsFunc(a.rows[:at], func(m *task.Message) bool { return m.TS() > a.rowTimes[at] })
}

// byTime cuts by Roo's rule, which compares times.
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
