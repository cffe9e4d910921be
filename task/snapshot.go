package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/usage"
)

// snapshotHead names the format and the fold that made it. A snapshot of another
// version is not read: the log is folded anew.
const snapshotHead = "roost state 11\n"

// ErrSnapshot: the bytes are no snapshot of this version.
var ErrSnapshot = errors.New("task: not a snapshot of this version")

// Snapshot is the state without the bytes of its messages: what they say is kept,
// and where they stand in the log. It is derived and may be thrown away.
func (s *State) Snapshot() ([]byte, error) {
	if s.runsOnly {
		return nil, fmt.Errorf("snapshot of task %s: only its runs were folded", s.ID)
	}
	p := packer{out: []byte(snapshotHead), index: map[string]uint64{}}
	if err := p.head(s); err != nil {
		return nil, fmt.Errorf("snapshot of task %s: %w", s.ID, err)
	}
	p.position(s.last)
	if err := p.runHistory(&s.Runs); err != nil {
		return nil, fmt.Errorf("snapshot of task %s, runs: %w", s.ID, err)
	}
	if err := p.checkpoints(s); err != nil {
		return nil, fmt.Errorf("snapshot of task %s, checkpoints: %w", s.ID, err)
	}
	p.files(s.Files)
	p.files(s.filed)
	p.ranges(packed(s.fileAt))
	p.uint(uint64(len(s.messages)))
	for _, m := range s.messages {
		if err := p.message(m); err != nil {
			return nil, fmt.Errorf("snapshot of task %s, message %d: %w", s.ID, m.ID, err)
		}
	}
	p.order(s.ui)
	p.order(s.api)
	p.uint(uint64(len(s.order)))
	for _, c := range s.order {
		if err := p.call(s, c); err != nil {
			return nil, fmt.Errorf("snapshot of task %s, call %s: %w", s.ID, c.ID, err)
		}
	}
	return p.out, nil
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
	p.bytes(head)
	p.bytes(item)
	return nil
}

func (p *packer) files(list []FileRecord) {
	p.uint(uint64(len(list)))
	for _, f := range list {
		p.word(f.Path)
		p.word(f.State)
		p.word(f.Source)
		p.word(f.By)
		p.word(f.Task)
		p.word(f.Hash)
		for _, v := range []int64{f.RooRead, f.RooEdit, f.UserEdit, f.Size, f.MTime, f.CTime, f.RecordedAt} {
			p.int(v)
		}
		p.uint(f.Inode)
		p.uint(f.Device)
		p.uint(f.Seq)
	}
}

func (p *packer) message(m *Message) error {
	p.word(string(m.History))
	p.uint(m.Seq)
	p.word(m.Hidden)
	p.flags(m.Missing, m.Foreign, m.facts.partial, m.facts.summary, m.facts.spent != nil, m.facts.tags != nil)
	if t := m.facts.tags; t != nil {
		for _, id := range []string{t.condensed, t.truncated, t.summary, t.marker} {
			p.word(id)
		}
		p.flags(t.marks, m.lifted&noSummary != 0, m.lifted&noMarker != 0)
	}
	p.word(m.facts.kind)
	p.int(m.facts.ts)
	p.uint(uint64(len(m.facts.uses)))
	for _, u := range m.facts.uses {
		p.word(u.id)
		p.word(u.name)
	}
	p.uint(uint64(len(m.facts.results)))
	for _, id := range m.facts.results {
		p.word(id)
	}
	if m.facts.spent != nil {
		var err error
		if p.out, err = m.facts.spent.AppendBinary(p.out); err != nil {
			return err
		}
	}
	p.place(m.body)
	p.span(m)
	p.uint(uint64(len(m.pieces)))
	for _, list := range m.pieces {
		p.places(list)
	}
	p.places(m.texts)
	p.uint(uint64(m.savedFrom))
	p.uint(uint64(len(m.covers)))
	for _, n := range m.covers {
		p.uint(uint64(n))
	}
	return nil
}

func (p *packer) span(m *Message) {
	if m.body.Seq == 0 {
		return
	}
	p.uint(uint64(m.span.size))
	if m.span.size > 0 {
		p.uint(uint64(m.span.front))
		p.uint(uint64(m.span.back))
	}
}

func (u *unpacker) span(m *Message) {
	if m.body.Seq == 0 {
		return
	}
	if m.span.size = uint32(u.small()); m.span.size > 0 {
		m.span.front, m.span.back = uint32(u.small()), uint32(u.small())
	}
}

func (p *packer) order(list []*Message) {
	p.uint(uint64(len(list)))
	var last uint64
	for _, m := range list {
		p.int(int64(m.ID - last))
		last = m.ID
	}
}

// rare is what few calls have, or have only for a moment.
type rare struct {
	Before   map[string]string `json:",omitempty"`
	Process  *ToolProcess      `json:",omitempty"`
	Finished *ToolFinished     `json:",omitempty"`
}

func (p *packer) call(s *State, c *Call) error {
	p.word(c.ID)
	p.word(c.Name)
	p.uint(c.Message)
	p.word(c.Replay)
	p.uint(c.UI)
	p.flags(c.Started, c.Answered, c.Foreign, s.calls[c.ID] == c, c.Rewound)
	p.place(c.finished)
	r := rare{Before: c.Before, Process: c.Process}
	if c.Finished != nil {
		done := *c.Finished
		done.Result = nil
		r.Finished = &done
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	p.bytes(raw)
	return nil
}

// Restore makes the state that gave the snapshot. Its messages are read from src
// when they are asked for, and stay in memory up to room bytes.
func Restore(data []byte, src Source, room int) (*State, error) {
	rest, ok := bytes.CutPrefix(data, []byte(snapshotHead))
	if !ok {
		return nil, ErrSnapshot
	}
	u := &unpacker{in: rest}
	s := New(src)
	s.source, s.room = src, room
	u.head(s)
	u.history(s)
	u.checkpoints(s)
	s.Files = u.files()
	for i, f := range s.Files {
		s.noteRecord(i, f)
	}
	s.filed = u.files()
	s.fileAt = unpacked(u.ranges(), len(s.filed))
	u.messages(s)
	s.ui, s.api = u.order(s), u.order(s)
	u.calls(s)
	if u.bad || len(u.in) > 0 {
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
	u, s := &unpacker{in: rest}, NewRuns(src)
	u.head(s)
	u.history(s)
	if u.bad {
		return nil, ErrSnapshot
	}
	return s, nil
}

func (u *unpacker) head(s *State) {
	head, item := u.bytes(), u.bytes()
	if u.bad || json.Unmarshal(head, s) != nil || slices.Contains(s.Questions, nil) {
		u.fail()
		return
	}
	if s.Adopted != nil && len(item) > 0 {
		s.Adopted.Item = bytes.Clone(item)
	}
}

func (p *packer) ranges(list []Run64) {
	p.uint(uint64(len(list)))
	for _, r := range list {
		p.uint(r[0])
		p.uint(r[1])
	}
}

func (u *unpacker) ranges() (list []Run64) {
	for range u.count() {
		list = append(list, Run64{u.uint(), u.uint()})
	}
	return list
}

// leastFile is fewer bytes than any file record takes in a snapshot.
const leastFile = 16

func (u *unpacker) files() (list []FileRecord) {
	n := u.count()
	if n > len(u.in)/leastFile {
		u.fail()
		return nil
	}
	for range n {
		f := FileRecord{Path: u.word(), State: u.word(), Source: u.word(), By: u.word(), Task: u.word(), Hash: u.word()}
		for _, v := range []*int64{&f.RooRead, &f.RooEdit, &f.UserEdit, &f.Size, &f.MTime, &f.CTime, &f.RecordedAt} {
			*v = u.int()
		}
		f.Inode, f.Device, f.Seq = u.uint(), u.uint(), u.uint()
		list = append(list, f)
	}
	return list
}

// leastMessage is fewer bytes than any message takes in a snapshot.
const leastMessage = 13

func (u *unpacker) messages(s *State) {
	n := u.count()
	if n > len(u.in)/leastMessage {
		u.fail()
		return
	}
	all := make([]Message, n)
	s.messages = make([]*Message, n)
	for i := range all {
		m := &all[i]
		s.messages[i] = m
		m.ID, m.state = uint64(i+1), s
		m.History, m.Seq, m.Hidden = History(u.word()), u.uint(), u.word()
		var spent, tagged bool
		u.flags(&m.Missing, &m.Foreign, &m.facts.partial, &m.facts.summary, &spent, &tagged)
		if tagged {
			u.tags(m)
		}
		m.facts.kind, m.facts.ts = u.word(), u.int()
		s.kinds[m.facts.kind] = m.facts.kind
		for range u.count() {
			m.facts.uses = append(m.facts.uses, use{u.word(), u.word()})
		}
		for range u.count() {
			m.facts.results = append(m.facts.results, u.word())
		}
		if spent {
			u.spent(m)
		}
		m.body = u.place()
		u.span(m)
		for range u.count() {
			m.pieces = append(m.pieces, u.places())
		}
		m.texts, m.savedFrom = u.places(), u.small()
		if m.savedFrom > len(m.texts) {
			u.fail()
		}
		for range u.count() {
			n := u.small()
			if n >= len(s.Covers) {
				u.fail()
				break
			}
			m.covers = append(m.covers, n)
		}
		if u.bad {
			return
		}
		m.drop()
	}
}

func (u *unpacker) tags(m *Message) {
	t := tags{condensed: u.word(), truncated: u.word(), summary: u.word(), marker: u.word()}
	var noS, noM bool
	u.flags(&t.marks, &noS, &noM)
	if noS {
		m.lifted |= noSummary
	}
	if noM {
		m.lifted |= noMarker
	}
	m.facts.tags = &t
}

func (u *unpacker) spent(m *Message) {
	spent, rest, err := usage.ReadSpent(u.in)
	if err != nil {
		u.fail()
		return
	}
	m.facts.spent, u.in = &spent, rest
}

func (u *unpacker) order(s *State) []*Message {
	n := u.count()
	list := make([]*Message, 0, n)
	var last uint64
	for range n {
		last += uint64(u.int())
		m := s.Message(last)
		if m == nil {
			u.fail()
			return nil
		}
		list = append(list, m)
	}
	return list
}

func (u *unpacker) calls(s *State) {
	for range u.count() {
		c := &Call{ID: u.word(), Name: u.word(), Message: u.uint(), Replay: u.word(), UI: u.uint(), state: s}
		var current bool
		u.flags(&c.Started, &c.Answered, &c.Foreign, &current, &c.Rewound)
		c.finished = u.place()
		var r rare
		if raw := u.bytes(); u.bad || json.Unmarshal(raw, &r) != nil {
			u.fail()
			return
		}
		c.Before, c.Process, c.Finished = r.Before, r.Process, r.Finished
		c.away = c.Finished != nil
		if current {
			s.calls[c.ID] = c
		}
		s.order = append(s.order, c)
	}
}
