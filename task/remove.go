package task

import (
	"errors"
	"math"
	"strings"
)

// Why one message cannot be taken out alone.
var (
	ErrFirstMessage = errors.New("it is what the task is about; delete the task instead")
	ErrShared       = errors.New("the model has it in one message with results of its calls; rewind to it instead, or edit it")
)

// CutMessage is what taking one message out takes. A reply goes with its request, its
// words, its calls and their results; words of a person go alone.
func (s *State) CutMessage(row int) (Rewound, error) {
	if row < 0 || row >= len(s.ui) {
		return Rewound{}, ErrNothingToCut
	}
	if row == 0 {
		return Rewound{}, ErrFirstMessage
	}
	gone := map[*Message]bool{}
	c := cutting{state: s, since: math.MaxUint64, gone: func(_ int, m *Message) bool { return gone[m] }}
	if s.ui[row].Kind() == "say:user_feedback" {
		said, err := s.saidIn(row)
		if err != nil {
			return Rewound{}, err
		}
		if said != nil {
			gone[said] = true
		}
		c.rows = s.ui[row : row+1]
		return c.event("remove")
	}
	from, to := s.turnOf(row)
	if from < 0 {
		c.rows = s.ui[row : row+1]
		return c.event("remove")
	}
	c.rows = s.ui[from:to]
	if reply := s.replyBetween(from, to); reply >= 0 {
		gone[s.api[reply]] = true
		if next := reply + 1; next < len(s.api) && s.answersOnly(s.api[next], s.api[reply]) && !s.wordsAt(to) {
			gone[s.api[next]] = true
		}
	}
	return c.event("remove")
}

// turnOf are the rows of the turn that a row belongs to: from its request to before the
// next one, or before what the person said. -1 when it belongs to none.
func (s *State) turnOf(row int) (from, to int) {
	for from = row; from >= 0; from-- {
		kind := s.ui[from].Kind()
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
	for to = from + 1; to < len(s.ui); to++ {
		if kind := s.ui[to].Kind(); kind == "say:api_req_started" || kind == "say:user_feedback" {
			break
		}
	}
	return from, to
}

func (s *State) wordsAt(row int) bool {
	return row < len(s.ui) && s.ui[row].Kind() == "say:user_feedback"
}

// replyBetween is the place of the reply whose request is a row, -1 when it brought
// none.
func (s *State) replyBetween(from, to int) int {
	request := s.ui[from]
	var next *Message
	for _, m := range s.ui[to:] {
		if m.Kind() == "say:api_req_started" {
			next = m
			break
		}
	}
	for i, m := range s.api {
		if m.Kind() != "assistant" || m.facts.summary {
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

// answersOnly reports whether a user turn has results of a reply's calls, and no others.
func (s *State) answersOnly(m, reply *Message) bool {
	if m.Kind() != "user" || m.facts.summary || len(m.facts.results) == 0 {
		return false
	}
	made := map[string]bool{}
	for _, u := range reply.facts.uses {
		made[u.id] = true
	}
	for _, id := range m.facts.results {
		if !made[id] {
			return false
		}
	}
	return true
}

// saidIn is the user turn that has a person's words, nil when none has.
func (s *State) saidIn(row int) (*Message, error) {
	text := strings.TrimSpace(s.ui[row].Text())
	for _, m := range s.api {
		if m.Kind() != "user" || m.facts.summary || !s.after(m, s.ui[row]) || !strings.Contains(texts0(m.Raw()), text) {
			continue
		}
		if len(m.facts.results) > 0 {
			return nil, ErrShared
		}
		return m, nil
	}
	return nil, nil
}

// after reports whether an API message may hold what a row says: it came with it or
// behind it.
func (s *State) after(m, row *Message) bool {
	if m.Foreign && row.Foreign && m.Seq == row.Seq {
		return m.TS() == 0 || m.TS() >= row.TS()
	}
	return m.ID > row.ID || m.Seq == row.Seq
}
