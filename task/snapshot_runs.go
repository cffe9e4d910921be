package task

import (
	"encoding/json"
	"maps"
	"slices"
)

// runHistory packs the runs by hand: a task may have ten thousand of them, and most of their bytes are settings
// that come again from one to the next.
func (p *packer) runHistory(h *RunHistory) error {
	p.Uint(uint64(len(h.All)))
	for _, r := range h.All {
		if err := p.run(r); err != nil {
			return err
		}
	}
	p.Uint(uint64(len(h.Inputs)))
	for _, input := range slices.Sorted(maps.Keys(h.Inputs)) {
		p.Word(input)
		p.Word(h.Inputs[input])
	}
	p.Uint(uint64(len(h.Unclaimed)))
	for _, input := range h.Unclaimed {
		p.Word(input)
	}
	p.Uint(uint64(len(h.Answers)))
	for _, question := range slices.Sorted(maps.Keys(h.Answers)) {
		past := h.Answers[question]
		raw, err := json.Marshal(past.QuestionClosed)
		if err != nil {
			return err
		}
		p.Bytes(raw)
		p.position(past.At)
		p.Flags(past.Long)
	}
	p.Uint(uint64(len(h.Replies)))
	for _, input := range slices.Sorted(maps.Keys(h.Replies)) {
		p.Word(input)
		p.Word(h.Replies[input].Question)
		p.Word(h.Replies[input].Run)
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
	n := u.Count()
	if n > len(u.In)/leastRun {
		u.Fail()
		return h
	}
	if n > 0 {
		h.All, h.byID = make([]*Run, 0, n), make(map[string]*Run, n)
	}
	known := map[string]Settings{}
	for range n {
		r := u.run(known)
		if u.Bad {
			return h
		}
		h.index(r)
	}
	if n := u.Count(); n > 0 {
		h.Inputs = map[string]string{}
		for range n {
			input := u.Word()
			h.Inputs[input] = u.Word()
			if u.Bad {
				return h
			}
		}
	}
	for range u.Count() {
		h.Unclaimed = append(h.Unclaimed, u.Word())
	}
	if n := u.Count(); n > 0 {
		h.Answers = map[string]PastAnswer{}
		for range n {
			var past PastAnswer
			if raw := u.Bytes(); u.Bad || json.Unmarshal(raw, &past.QuestionClosed) != nil {
				u.Fail()
				return h
			}
			past.At = u.position()
			u.Flags(&past.Long)
			h.Answers[past.Question] = past
		}
	}
	if n := u.Count(); n > 0 {
		h.Replies = map[string]InputAnswer{}
		for range n {
			input := u.Word()
			h.Replies[input] = InputAnswer{Question: u.Word(), Run: u.Word()}
			if u.Bad {
				return h
			}
		}
	}
	if h.Inputs == nil && len(h.Unclaimed) > 0 {
		u.Fail()
	}
	return h
}

func (p *packer) run(r *Run) error {
	settings, err := json.Marshal(r.Settings)
	if err != nil {
		return err
	}
	for _, s := range []string{r.ID, string(settings), r.Head, r.Outcome, r.Reason, r.Code, r.Waiting, r.ChildQuestion, r.After} {
		p.Word(s)
	}
	for _, v := range []int64{r.Queued, r.Started, r.Ended, int64(r.Turns), r.CostMicros, r.WorkedMS, int64(r.OwnTurns), r.OwnCostMicros} {
		p.Int(v)
	}
	p.position(r.Before)
	p.position(r.ReasonAt)
	p.Flags(r.Rewound, r.Yes, r.CostUnknown)
	return nil
}

// run unpacks a run. known has the settings that were decoded before: runs share them.
func (u *unpacker) run(known map[string]Settings) *Run {
	r := &Run{ID: u.Word()}
	raw := u.Word()
	settings, ok := known[raw]
	if !ok {
		if u.Bad || json.Unmarshal([]byte(raw), &settings) != nil {
			u.Fail()
			return r
		}
		known[raw] = settings
	}
	r.Settings = settings
	for _, s := range []*string{&r.Head, &r.Outcome, &r.Reason, &r.Code, &r.Waiting, &r.ChildQuestion, &r.After} {
		*s = u.Word()
	}
	var turns, own int64
	for _, v := range []*int64{&r.Queued, &r.Started, &r.Ended, &turns, &r.CostMicros, &r.WorkedMS, &own, &r.OwnCostMicros} {
		*v = u.Int()
	}
	r.Turns, r.OwnTurns = int(turns), int(own)
	r.Before, r.ReasonAt = u.position(), u.position()
	u.Flags(&r.Rewound, &r.Yes, &r.CostUnknown)
	return r
}

func (p *packer) position(at Position) {
	p.Uint(at.Epoch)
	p.Uint(at.Seq)
	p.Uint(uint64(at.Index))
}

func (u *unpacker) position() Position {
	return Position{Epoch: u.Uint(), Seq: u.Uint(), Index: u.Small()}
}
