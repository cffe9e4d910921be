package rewind

import (
	"errors"
	"math"
	"strings"

	"github.com/roost-dev/roost/task"
)

// The reasons why one message cannot be removed alone.
var (
	ErrFirstMessage = errors.New("the first message is what the task is about; delete the task instead")
	ErrShared       = errors.New("one message of the model's history holds it together with results of calls; rewind to it " +
		"instead, or edit it")
)

// Message returns the removal of one message. A reply goes with its request, its
// words, its calls and their results; words of the user go alone.
func Message(s *task.State, row int) (task.Rewound, error) {
	if row < 0 || row >= len(s.UI()) {
		return task.Rewound{}, ErrNothingToCut
	}
	if row == 0 {
		return task.Rewound{}, ErrFirstMessage
	}
	gone := map[*task.Message]bool{}
	c := cutting{state: s, since: math.MaxUint64, gone: func(_ int, m *task.Message) bool { return gone[m] }}
	if s.UI()[row].Kind() == "say:user_feedback" {
		said, err := saidIn(s, row)
		if err != nil {
			return task.Rewound{}, err
		}
		if said != nil {
			gone[said] = true
		}
		c.rows = s.UI()[row : row+1]
		return c.event("remove")
	}
	from, to := turnOf(s, row)
	if from < 0 {
		c.rows = s.UI()[row : row+1]
		return c.event("remove")
	}
	c.rows = s.UI()[from:to]
	if reply := replyBetween(s, from, to); reply >= 0 {
		gone[s.API()[reply]] = true
		if next := reply + 1; next < len(s.API()) && answersOnly(s, s.API()[next], s.API()[reply]) && !wordsAt(s, to) {
			gone[s.API()[next]] = true
		}
	}
	return c.event("remove")
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

func wordsAt(s *task.State, row int) bool {
	return row < len(s.UI()) && s.UI()[row].Kind() == "say:user_feedback"
}

// replyBetween is the index of the reply to the request in row from, -1 when it has none.
func replyBetween(s *task.State, from, to int) int {
	request := s.UI()[from]
	var next *task.Message
	for _, m := range s.UI()[to:] {
		if m.Kind() == "say:api_req_started" {
			next = m
			break
		}
	}
	for i, m := range s.API() {
		if m.Kind() != "assistant" || m.Summary() {
			continue
		}
		if m.Foreign && request.Foreign && m.Seq == request.Seq {
			if m.TS() >= request.TS() && (next == nil || !next.Foreign || m.TS() < next.TS()) {
				return i
			}
			continue
		}
		if m.ID > request.ID && (next == nil || m.ID < next.ID) {
			return i
		}
	}
	return -1
}

// answersOnly reports whether a user turn has results of a reply's calls, and no other results.
func answersOnly(s *task.State, m, reply *task.Message) bool {
	if m.Kind() != "user" || m.Summary() || len(m.Results()) == 0 {
		return false
	}
	made := map[string]bool{}
	for _, u := range reply.Uses() {
		made[u.ID] = true
	}
	for _, id := range m.Results() {
		if !made[id] {
			return false
		}
	}
	return true
}

// saidIn returns the user turn that holds the user's words in a row, nil when none does.
func saidIn(s *task.State, row int) (*task.Message, error) {
	text := strings.TrimSpace(s.UI()[row].Text())
	for _, m := range s.API() {
		if m.Kind() != "user" || m.Summary() || !after(s, m, s.UI()[row]) || !strings.Contains(texts0(m.Raw()), text) {
			continue
		}
		if len(m.Results()) > 0 {
			return nil, ErrShared
		}
		return m, nil
	}
	return nil, nil
}

// after reports whether an API message may hold the words of a row: it came with the row or after it.
func after(s *task.State, m, row *task.Message) bool {
	if m.Foreign && row.Foreign && m.Seq == row.Seq {
		return m.TS() == 0 || m.TS() >= row.TS()
	}
	return m.ID > row.ID || m.Seq == row.Seq
}
