package task

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"

	"github.com/roost-dev/roost/journal"
)

// Annals stand at the end of a snapshot, and behind them how many bytes they take: who asks
// for them alone does not unpack a state, and who reads a state does not unpack them.
const sizeLen = 4

// annalsRoom bounds what annals take in a snapshot, which every reader of the task reads.
// Larger ones are left out, and the log is gone through for them.
const annalsRoom = 4 << 20

// kept is a state's annals.
type kept struct {
	annals *Annals // nil until they are asked for
	packed []byte  // what a snapshot says, until then
	lost   bool    // what it says cannot be used, or it says nothing
	last   Mark
	at     int64
}

// RestoreAnnals are the annals in a snapshot; an error says that it has none to be used.
func RestoreAnnals(snapshot []byte) (*Annals, error) {
	rest, ok := bytes.CutPrefix(snapshot, []byte(snapshotHead))
	if !ok || len(rest) < sizeLen {
		return nil, ErrSnapshot
	}
	n := binary.LittleEndian.Uint32(rest[len(rest)-sizeLen:])
	if rest = rest[:len(rest)-sizeLen]; uint64(n) > uint64(len(rest)) {
		return nil, ErrSnapshot
	}
	u := &unpacker{in: rest[len(rest)-int(n):]}
	k := u.kept()
	if u.bad || len(u.in) > 0 || k.lost {
		return nil, ErrSnapshot
	}
	if a := k.get(); a != nil {
		return a, nil
	}
	return nil, ErrSnapshot
}

// Annals are those of everything that was folded; nil when they are not known. They change
// with the next commit, and nobody else changes them.
func (s *State) Annals() *Annals { return s.kept.get() }

func (k *kept) get() *Annals {
	switch {
	case k.annals == nil && k.packed != nil:
		u := &unpacker{in: k.packed}
		k.annals = u.annals()
		k.lost, k.packed = u.bad || len(u.in) > 0, nil
	case k.annals == nil:
		k.annals = NewAnnals()
	}
	if k.lost {
		return nil
	}
	k.annals.Last, k.annals.At = k.last, k.at
	return k.annals
}

// tell notes an event of a commit, decoded if it could be.
func (k *kept) tell(e Event, err error, c journal.Commit, i int) {
	if err == nil && told(c.Events[i]) {
		if a := k.get(); a != nil {
			a.fold(e, c, i)
		}
	}
	k.last = Mark{Epoch: c.Epoch, Seq: c.Seq, Index: i}
}

// pack is what Snapshot says of them.
func (k *kept) pack(out []byte) ([]byte, error) {
	from := len(out)
	p := packer{out: out, index: map[string]uint64{}}
	if !k.lost {
		p.flags(true)
		p.mark(k.last)
		p.int(k.at)
		body := k.packed
		if body == nil {
			b := packer{index: map[string]uint64{}}
			if err := b.annals(k.get()); err != nil {
				return nil, err
			}
			body = b.out
		}
		p.bytes(body)
	}
	if k.lost || len(p.out)-from > annalsRoom {
		p.out = p.out[:from]
		p.flags(false)
	}
	return binary.LittleEndian.AppendUint32(p.out, uint32(len(p.out)-from)), nil
}

func (u *unpacker) kept() kept {
	var known bool
	if u.flags(&known); !known {
		return kept{lost: true}
	}
	return kept{last: u.mark(), at: u.int(), packed: bytes.Clone(u.bytes())}
}

func (p *packer) mark(m Mark) {
	p.uint(m.Epoch)
	p.uint(m.Seq)
	p.uint(uint64(m.Index))
}

func (u *unpacker) mark() Mark { return Mark{Epoch: u.uint(), Seq: u.uint(), Index: u.small()} }

func (p *packer) annals(a *Annals) error {
	at := map[*Chapter]uint64{}
	p.uint(uint64(len(a.Runs)))
	for i, c := range a.Runs {
		at[c] = uint64(i + 1)
		if err := p.chapter(c); err != nil {
			return err
		}
	}
	p.pairs(a.Words)
	p.pairs(a.By)
	p.uint(uint64(len(a.early)))
	for _, input := range a.early {
		p.word(input)
	}
	p.uint(uint64(len(a.Said)))
	for _, q := range slices.Sorted(maps.Keys(a.Said)) {
		if err := p.json(a.Said[q]); err != nil {
			return err
		}
	}
	p.uint(uint64(len(a.Open)))
	for _, q := range slices.Sorted(maps.Keys(a.Open)) {
		p.mark(a.Open[q].At)
		if err := p.json(a.Open[q].QuestionOpened); err != nil {
			return err
		}
	}
	p.uint(uint64(len(a.Asked)))
	for _, q := range slices.Sorted(maps.Keys(a.Asked)) {
		p.word(q)
		p.uint(at[a.Asked[q]])
	}
	return nil
}

func (u *unpacker) annals() *Annals {
	a := NewAnnals()
	for range u.count() {
		c := u.chapter()
		a.Runs, a.known[c.ID] = append(a.Runs, c), c
	}
	a.Words, a.By = u.pairs(), u.pairs()
	for range u.count() {
		a.early = append(a.early, u.word())
	}
	for range u.count() {
		var q QuestionClosed
		u.json(&q)
		a.Said[q.Question] = q
	}
	for range u.count() {
		q := Unanswered{At: u.mark()}
		u.json(&q.QuestionOpened)
		a.Open[q.Question] = q
	}
	for range u.count() {
		q, of := u.word(), u.small()
		if of > len(a.Runs) {
			u.fail()
			break
		}
		a.Asked[q] = nil
		if of > 0 {
			a.Asked[q] = a.Runs[of-1]
		}
	}
	return a
}

func (p *packer) chapter(c *Chapter) error {
	p.word(c.ID)
	settings, err := json.Marshal(c.Settings)
	if err != nil {
		return err
	}
	p.word(string(settings)) // nearly always those of the run before
	p.mark(c.Before)
	for _, v := range []int64{c.Queued, c.Started, c.Ended, int64(c.Turns), c.CostMicros} {
		p.int(v)
	}
	for _, s := range []string{c.Outcome, c.Code, c.Reason, c.Waiting, c.Child} {
		p.word(s)
	}
	p.flags(c.Waits, c.CostKnown)
	return nil
}

func (u *unpacker) chapter() *Chapter {
	c := &Chapter{ID: u.word()}
	if settings := u.word(); !u.bad && json.Unmarshal([]byte(settings), &c.Settings) != nil {
		u.fail()
	}
	c.Before = u.mark()
	var turns int64
	for _, v := range []*int64{&c.Queued, &c.Started, &c.Ended, &turns, &c.CostMicros} {
		*v = u.int()
	}
	c.Turns = int(turns)
	for _, s := range []*string{&c.Outcome, &c.Code, &c.Reason, &c.Waiting, &c.Child} {
		*s = u.word()
	}
	u.flags(&c.Waits, &c.CostKnown)
	return c
}

func (p *packer) pairs(m map[string]string) {
	p.uint(uint64(len(m)))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		p.word(k)
		p.word(m[k])
	}
}

func (u *unpacker) pairs() map[string]string {
	m := map[string]string{}
	for range u.count() {
		k := u.word()
		m[k] = u.word()
	}
	return m
}

func (p *packer) json(v any) error {
	raw, err := json.Marshal(v)
	p.bytes(raw)
	return err
}

func (u *unpacker) json(v any) {
	if raw := u.bytes(); u.bad || json.Unmarshal(raw, v) != nil {
		u.fail()
	}
}
