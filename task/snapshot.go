package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/task/codec"
	"github.com/roost-dev/roost/task/facts"
	"github.com/roost-dev/roost/usage"
)

// snapshotHead names the format and the fold that made it. A reader ignores a snapshot of another version and folds
// the log from its beginning.
const snapshotHead = "roost state 13\n"

// ErrSnapshot: the bytes are no snapshot of this version.
var ErrSnapshot = errors.New("task: not a snapshot of this version")

// Snapshot is the state without the bytes of its messages: it keeps their facts and their places in the log. It is
// derived and may be deleted.
func (s *State) Snapshot() ([]byte, error) {
	if s.runsOnly {
		return nil, fmt.Errorf("snapshot of task %s: only its runs were folded", s.ID)
	}
	p := packer{codec.NewWriter([]byte(snapshotHead))}
	if err := p.head(s); err != nil {
		return nil, fmt.Errorf("snapshot of task %s: %w", s.ID, err)
	}
	p.Value(s.last)
	p.Value(s.Runs)
	p.Value(s.Restoring)
	p.Value(s.Checkpoints)
	p.Value(s.Files)
	p.Value(s.filed)
	p.Value(packed(s.fileAt))
	p.Uint(uint64(len(s.messages)))
	for _, m := range s.messages {
		if err := p.message(m); err != nil {
			return nil, fmt.Errorf("snapshot of task %s, message %d: %w", s.ID, m.ID, err)
		}
	}
	p.order(s.ui)
	p.order(s.api)
	p.Uint(uint64(len(s.order)))
	for _, c := range s.order {
		p.call(c, s.calls[c.ID] == c)
	}
	return p.Out, nil
}

// head is everything that does not grow with the task.
func (p *packer) head(s *State) error {
	brief := *s
	brief.Files, brief.Run, brief.Runs = nil, nil, RunHistory{}
	var item []byte
	if s.Adopted != nil {
		adopted := *s.Adopted
		item, adopted.Item = adopted.Item, nil // encoding/json would respell it
		brief.Adopted = &adopted
	}
	head, err := json.Marshal(brief)
	if err != nil {
		return err
	}
	p.Bytes(head)
	p.Bytes(item)
	return nil
}

func (p *packer) message(m *Message) error {
	p.Word(string(m.History))
	p.Uint(m.Seq)
	p.Word(m.Hidden)
	p.Flags(m.Missing, m.Foreign, m.facts.Partial, m.facts.Summary, m.facts.Spent != nil, m.facts.Tags != nil)
	if t := m.facts.Tags; t != nil {
		for _, id := range []string{t.Condensed, t.Truncated, t.Summary, t.Marker} {
			p.Word(id)
		}
		p.Flags(t.Marks, m.lifted&noSummary != 0, m.lifted&noMarker != 0)
	}
	p.Word(m.facts.Kind)
	p.Int(m.facts.TS)
	p.Uint(uint64(len(m.facts.Uses)))
	for _, u := range m.facts.Uses {
		p.Word(u.ID)
		p.Word(u.Name)
	}
	p.Uint(uint64(len(m.facts.Results)))
	for _, id := range m.facts.Results {
		p.Word(id)
	}
	if m.facts.Spent != nil {
		var err error
		if p.Out, err = m.facts.Spent.AppendBinary(p.Out); err != nil {
			return err
		}
	}
	p.place(m.body)
	p.Uint(uint64(len(m.pieces)))
	for _, list := range m.pieces {
		p.places(list)
	}
	p.places(m.texts)
	p.Uint(uint64(m.savedFrom))
	p.Uint(uint64(len(m.covers)))
	for _, n := range m.covers {
		p.Uint(uint64(n))
	}
	return nil
}

func (p *packer) order(list []*Message) {
	p.Uint(uint64(len(list)))
	var last uint64
	for _, m := range list {
		p.Int(int64(m.ID - last))
		last = m.ID
	}
}

// call writes a call without its result, which stays in the log.
func (p *packer) call(c *Call, current bool) {
	brief := *c
	if c.Finished != nil {
		done := *c.Finished
		done.Result = nil
		brief.Finished = &done
	}
	p.Value(brief)
	p.Flags(current)
	p.place(c.finished)
}

// Restore makes the state that gave the snapshot. Its messages are read from src
// when they are asked for, and stay in memory up to room bytes.
func Restore(data []byte, src Source, room int) (*State, error) {
	rest, ok := bytes.CutPrefix(data, []byte(snapshotHead))
	if !ok {
		return nil, ErrSnapshot
	}
	u := &unpacker{codec.Reader{In: rest}}
	s := New(src)
	s.source, s.room = src, room
	u.head(s)
	u.history(s)
	u.checkpoints(s)
	u.Value(&s.Files)
	for i, f := range s.Files {
		s.noteRecord(i, f)
	}
	var at []Run64
	u.Value(&s.filed)
	u.Value(&at)
	s.fileAt = unpacked(at, len(s.filed))
	u.messages(s)
	s.ui, s.api = u.order(s), u.order(s)
	u.calls(s)
	if u.Bad || len(u.In) > 0 {
		return nil, ErrSnapshot
	}
	return s, nil
}

// RestoreRuns is Restore for a reader that wants the runs alone: see NewRuns. It costs what the runs take in the
// snapshot, and not what the messages take.
func RestoreRuns(data []byte, src Source) (*State, error) {
	rest, ok := bytes.CutPrefix(data, []byte(snapshotHead))
	if !ok {
		return nil, ErrSnapshot
	}
	u, s := &unpacker{codec.Reader{In: rest}}, NewRuns(src)
	u.head(s)
	u.history(s)
	if u.Bad {
		return nil, ErrSnapshot
	}
	return s, nil
}

func (u *unpacker) head(s *State) {
	head, item := u.Bytes(), u.Bytes()
	if u.Bad || json.Unmarshal(head, s) != nil || slices.Contains(s.Questions, nil) {
		u.Fail()
		return
	}
	if s.Adopted != nil && len(item) > 0 {
		s.Adopted.Item = bytes.Clone(item)
	}
}

// leastMessage is fewer bytes than any message takes in a snapshot.
const leastMessage = 13

func (u *unpacker) messages(s *State) {
	n := u.Count()
	if n > len(u.In)/leastMessage {
		u.Fail()
		return
	}
	all := make([]Message, n)
	s.messages = make([]*Message, n)
	for i := range all {
		m := &all[i]
		s.messages[i] = m
		m.ID, m.state = uint64(i+1), s
		m.History, m.Seq, m.Hidden = History(u.Word()), u.Uint(), u.Word()
		var spent, tagged bool
		u.Flags(&m.Missing, &m.Foreign, &m.facts.Partial, &m.facts.Summary, &spent, &tagged)
		if tagged {
			u.tags(m)
		}
		m.facts.Kind, m.facts.TS = u.Word(), u.Int()
		s.kinds[m.facts.Kind] = m.facts.Kind
		for range u.Count() {
			m.facts.Uses = append(m.facts.Uses, facts.Use{ID: u.Word(), Name: u.Word()})
		}
		for range u.Count() {
			m.facts.Results = append(m.facts.Results, u.Word())
		}
		if spent {
			u.spent(m)
		}
		m.body = u.place()
		for range u.Count() {
			m.pieces = append(m.pieces, u.places())
		}
		m.texts, m.savedFrom = u.places(), u.Small()
		if m.savedFrom > len(m.texts) {
			u.Fail()
		}
		for range u.Count() {
			n := u.Small()
			if n >= len(s.Covers) {
				u.Fail()
				break
			}
			m.covers = append(m.covers, n)
		}
		if u.Bad {
			return
		}
		m.drop()
	}
}

func (u *unpacker) tags(m *Message) {
	t := facts.Tags{Condensed: u.Word(), Truncated: u.Word(), Summary: u.Word(), Marker: u.Word()}
	var noS, noM bool
	u.Flags(&t.Marks, &noS, &noM)
	if noS {
		m.lifted |= noSummary
	}
	if noM {
		m.lifted |= noMarker
	}
	m.facts.Tags = &t
}

func (u *unpacker) spent(m *Message) {
	spent, rest, err := usage.ReadSpent(u.In)
	if err != nil {
		u.Fail()
		return
	}
	m.facts.Spent, u.In = &spent, rest
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
		c.finished = u.place()
		c.away = c.Finished != nil
		if current {
			s.calls[c.ID] = c
		}
		s.order = append(s.order, c)
	}
}

// history reads the runs and the position of the newest event.
func (u *unpacker) history(s *State) {
	u.Value(&s.last)
	u.Value(&s.Runs)
	h := &s.Runs
	if h.Inputs == nil && len(h.Unclaimed) > 0 || slices.Contains(h.All, nil) {
		u.Fail()
		return
	}
	runs := h.All
	h.All, s.Run = runs[:0], nil
	for _, r := range runs {
		h.index(r)
		s.Run = r
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

// packer writes a snapshot.
type packer struct{ codec.Writer }

// unpacker reads a snapshot.
type unpacker struct{ codec.Reader }

func (p *packer) place(at place) {
	p.Word(at.Blob)
	if at.Blob != "" {
		p.Int(at.Off)
		p.Int(at.Len)
		return
	}
	p.Uint(at.Seq)
	p.Uint(uint64(at.Event))
}

func (p *packer) places(list []place) {
	p.Uint(uint64(len(list)))
	for _, at := range list {
		p.place(at)
	}
}

func (u *unpacker) place() (at place) {
	if at.Blob = u.Word(); at.Blob != "" {
		at.Off, at.Len = u.Int(), u.Int()
		return at
	}
	at.Seq, at.Event = u.Uint(), u.Small()
	return at
}

func (u *unpacker) places() []place {
	n := u.Count()
	if n == 0 {
		return nil
	}
	list := make([]place, n)
	for i := range list {
		list[i] = u.place()
	}
	return list
}
