package task

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/task/codec"
)

// snapshotHead names the format and the fold that made it. A reader ignores a snapshot of another version and folds
// the log from its beginning.
const snapshotHead = "roost state 18\n"

// ErrSnapshot: the bytes are no snapshot of this version.
var ErrSnapshot = errors.New("task: not a snapshot of this version")

// Snapshot encodes the state without the bytes of its messages and the results of its calls: it keeps their facts and
// their places in the log. It is derived and may be deleted.
func (s *State) Snapshot() ([]byte, error) {
	if s.runsOnly {
		return nil, fmt.Errorf("snapshot of task %s: only its runs were folded", s.ID)
	}
	p := codec.NewWriter([]byte(snapshotHead))
	p.Value(*s)
	p.Value(s.last)
	p.Value(s.Runs)
	p.Value(s.Restoring)
	p.Value(s.Checkpoints)
	p.Value(s.Files)
	p.Value(s.filed)
	p.Value(Ranges(s.fileAt))
	p.Uint(uint64(len(s.messages)))
	for _, m := range s.messages {
		p.Value(*m)
	}
	for _, list := range [][]*Message{s.ui, s.api} {
		p.Uint(uint64(len(list)))
		var last uint64
		for _, m := range list {
			p.Int(int64(m.ID - last))
			last = m.ID
		}
	}
	p.Uint(uint64(len(s.order)))
	for _, c := range s.order {
		p.Value(*c)
		p.Flags(s.calls[c.ID] == c)
	}
	return p.Out, nil
}

// Restore makes the state from which the snapshot was made. Its messages are read from src on demand, and stay in
// memory up to room bytes.
func Restore(data []byte, src Source, room int) (*State, error) {
	s := New(src)
	s.source, s.room = src, room
	u, err := restoreRuns(data, s)
	if err != nil {
		return nil, err
	}
	u.checkpoints(s)
	u.Value(&s.Files)
	for i, f := range s.Files {
		s.noteRecord(i, f)
	}
	var at []Run64
	u.Value(&s.filed)
	u.Value(&at)
	s.fileAt = numbersIn(at, len(s.filed))
	u.messages(s)
	s.ui, s.api = u.order(s), u.order(s)
	u.calls(s)
	if u.Bad || len(u.Rest()) > 0 {
		return nil, ErrSnapshot
	}
	return s, nil
}

// RestoreRuns is Restore for a reader that wants only the runs: see NewRuns. It reads only the part of the snapshot
// with the runs, and not the messages.
func RestoreRuns(data []byte, src Source) (*State, error) {
	s := NewRuns(src)
	if _, err := restoreRuns(data, s); err != nil {
		return nil, err
	}
	s.Touched = nil // there are no calls that a branch could keep an outcome of
	return s, nil
}

// restoreRuns reads the parts whose size does not grow with the task, the position of the newest event, and the runs.
func restoreRuns(data []byte, s *State) (*unpacker, error) {
	rest, ok := bytes.CutPrefix(data, []byte(snapshotHead))
	u := &unpacker{codec.Reader{In: rest}}
	s.Number = 0 // what is 0 in the snapshot is not in it
	u.Value(s)
	u.Value(&s.last)
	u.Value(&s.Runs)
	h := &s.Runs
	if !ok || u.Bad || slices.Contains(s.Questions, nil) || slices.Contains(h.All, nil) ||
		h.Inputs == nil && len(h.Unclaimed) > 0 {
		return nil, ErrSnapshot
	}
	runs := h.All
	h.All = nil
	for _, r := range runs {
		h.index(r)
		s.Run = r
	}
	for _, b := range s.Branches {
		if slices.Contains(b.Leaf.Questions, nil) {
			return nil, ErrSnapshot
		}
	}
	return u, nil
}

func (u *unpacker) messages(s *State) {
	const atOnce = 64 // the count may be false, and one allocation for each message is slow
	n := u.Count()
	s.messages = make([]*Message, 0, n)
	for room := []Message(nil); n > 0 && !u.Bad; n-- {
		if len(room) == 0 {
			room = make([]Message, min(n, atOnce))
		}
		m := &room[0]
		room, m.state = room[1:], s
		u.Value(m)
		if m.ID != s.NextMessage() || m.SavedFrom < 0 || m.SavedFrom > len(m.Texts) ||
			slices.ContainsFunc(m.Covers, func(n int) bool { return n < 0 || n >= len(s.Covers) }) {
			u.Fail()
		}
		m.rawAway, m.textAway = true, true
		s.messages = append(s.messages, m)
	}
}

func (u *unpacker) order(s *State) []*Message {
	n := u.Count()
	list := make([]*Message, 0, n)
	var last uint64
	for range n {
		last += uint64(u.Int())
		m := s.Message(last)
		if m == nil {
			u.Fail()
			return nil
		}
		list = append(list, m)
	}
	return list
}

func (u *unpacker) calls(s *State) {
	for n := u.Count(); n > 0 && !u.Bad; n-- {
		c := &Call{state: s}
		u.Value(c)
		var current bool
		u.Flags(&current)
		c.away = c.Finished != nil
		if current {
			s.calls[c.ID] = c
		}
		s.order = append(s.order, c)
	}
}

func (u *unpacker) checkpoints(s *State) {
	u.Value(&s.Restoring)
	u.Value(&s.Checkpoints)
	for i := range s.Checkpoints {
		if i > 0 && s.Checkpoints[i].Number <= s.Checkpoints[i-1].Number {
			u.Fail()
			return
		}
	}
}

// unpacker reads a snapshot.
type unpacker struct{ codec.Reader }
