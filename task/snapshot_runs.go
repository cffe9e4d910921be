package task

import (
	"encoding/json"
	"maps"
	"slices"
)

// runHistory packs the runs by hand: a task may have ten thousand of them, and most of their bytes are settings
// that come again from one to the next.
func (p *packer) runHistory(h *RunHistory) error {
	p.uint(uint64(len(h.All)))
	for _, r := range h.All {
		if err := p.run(r); err != nil {
			return err
		}
	}
	p.uint(uint64(len(h.Inputs)))
	for _, input := range slices.Sorted(maps.Keys(h.Inputs)) {
		p.word(input)
		p.word(h.Inputs[input])
	}
	p.uint(uint64(len(h.Unclaimed)))
	for _, input := range h.Unclaimed {
		p.word(input)
	}
	p.uint(uint64(len(h.Answers)))
	for _, question := range slices.Sorted(maps.Keys(h.Answers)) {
		past := h.Answers[question]
		raw, err := json.Marshal(past.QuestionClosed)
		if err != nil {
			return err
		}
		p.bytes(raw)
		p.position(past.At)
		p.flags(past.Long)
	}
	p.uint(uint64(len(h.Replies)))
	for _, input := range slices.Sorted(maps.Keys(h.Replies)) {
		p.word(input)
		p.word(h.Replies[input].Question)
		p.word(h.Replies[input].Run)
	}
	return nil
}

func (u *unpacker) history(s *State) {
	s.last = u.position()
	s.Runs = u.runHistory()
	if s.Run = nil; len(s.Runs.All) > 0 {
		s.Run = s.Runs.All[len(s.Runs.All)-1]
	}
}

// leastRun is fewer bytes than any run takes in a snapshot.
const leastRun = 20

func (u *unpacker) runHistory() (h RunHistory) {
	n := u.count()
	if n > len(u.in)/leastRun {
		u.fail()
		return h
	}
	if n > 0 {
		h.All, h.byID = make([]*Run, 0, n), make(map[string]*Run, n)
	}
	known := map[string]Settings{}
	for range n {
		r := u.run(known)
		if u.bad {
			return h
		}
		h.index(r)
	}
	if n := u.count(); n > 0 {
		h.Inputs = map[string]string{}
		for range n {
			input := u.word()
			h.Inputs[input] = u.word()
			if u.bad {
				return h
			}
		}
	}
	for range u.count() {
		h.Unclaimed = append(h.Unclaimed, u.word())
	}
	if n := u.count(); n > 0 {
		h.Answers = map[string]PastAnswer{}
		for range n {
			var past PastAnswer
			if raw := u.bytes(); u.bad || json.Unmarshal(raw, &past.QuestionClosed) != nil {
				u.fail()
				return h
			}
			past.At = u.position()
			u.flags(&past.Long)
			h.Answers[past.Question] = past
		}
	}
	if n := u.count(); n > 0 {
		h.Replies = map[string]InputAnswer{}
		for range n {
			input := u.word()
			h.Replies[input] = InputAnswer{Question: u.word(), Run: u.word()}
			if u.bad {
				return h
			}
		}
	}
	if h.Inputs == nil && len(h.Unclaimed) > 0 {
		u.fail()
	}
	return h
}

func (p *packer) run(r *Run) error {
	settings, err := json.Marshal(r.Settings)
	if err != nil {
		return err
	}
	for _, s := range []string{r.ID, string(settings), r.Head, r.Outcome, r.Reason, r.Code, r.Waiting, r.ChildQuestion, r.After} {
		p.word(s)
	}
	for _, v := range []int64{r.Queued, r.Started, r.Ended, int64(r.Turns), r.CostMicros, r.WorkedMS, int64(r.OwnTurns), r.OwnCostMicros} {
		p.int(v)
	}
	p.position(r.Before)
	p.position(r.ReasonAt)
	p.flags(r.Rewound, r.Yes, r.CostUnknown)
	return nil
}

// run unpacks a run. known has the settings that were decoded before: runs share them.
func (u *unpacker) run(known map[string]Settings) *Run {
	r := &Run{ID: u.word()}
	raw := u.word()
	settings, ok := known[raw]
	if !ok {
		if u.bad || json.Unmarshal([]byte(raw), &settings) != nil {
			u.fail()
			return r
		}
		known[raw] = settings
	}
	r.Settings = settings
	for _, s := range []*string{&r.Head, &r.Outcome, &r.Reason, &r.Code, &r.Waiting, &r.ChildQuestion, &r.After} {
		*s = u.word()
	}
	var turns, own int64
	for _, v := range []*int64{&r.Queued, &r.Started, &r.Ended, &turns, &r.CostMicros, &r.WorkedMS, &own, &r.OwnCostMicros} {
		*v = u.int()
	}
	r.Turns, r.OwnTurns = int(turns), int(own)
	r.Before, r.ReasonAt = u.position(), u.position()
	u.flags(&r.Rewound, &r.Yes, &r.CostUnknown)
	return r
}

func (p *packer) position(at Position) {
	p.uint(at.Epoch)
	p.uint(at.Seq)
	p.uint(uint64(at.Index))
}

func (u *unpacker) position() Position {
	return Position{Epoch: u.uint(), Seq: u.uint(), Index: u.small()}
}
