package catalog

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/roost-dev/roost/task/codec"
)

// ErrDamaged is wrapped by errors about a file that does not hold what was written into it.
var ErrDamaged = errors.New("the catalogue is damaged")

// Entry is a task in the form for Put.
type Entry struct {
	Key   string
	Stamp string // of the state of the task that it was derived from

	Parts []Kept
	text  int // of Parts
}

// Entry returns the entry of the task whose messages were added. The builder is empty afterwards.
func (b *Builder) Entry(key, stamp string) Entry {
	b.closePart()
	e := Entry{Key: key, Stamp: stamp, Parts: b.parts, text: b.size}
	*b = Builder{}
	return e
}

// Text returns how many bytes of text the entry holds in memory.
func (e Entry) Text() int { return e.text }

// Digest returns a digest of the entry's text, to compare with Snapshot.Digest.
func (e Entry) Digest() []byte {
	h := sha256.New()
	for _, p := range e.Parts {
		h.Write(p.Body)
	}
	return h.Sum(nil)
}

const (
	partText = 32 << 10 // a part with this much text is closed
	mostText = 64 << 20 // of one task; every search reads a task with more. It bounds the memory
)

// Kept is a part: some messages of a task, and their entries in the index.
type Kept struct {
	First  int      // place of its first message in the task's order
	Body   []byte   // the messages, compressed
	Words  []byte   // its words, each with a line break behind it
	Joints []uint32 // its joints
}

// Builder makes the parts of one task's text. It is for one goroutine.
//
// A text that several messages of a part have, such as what a command printed to both histories, is kept and indexed once.
type Builder struct {
	found features // of the part that is being filled
	draft *draft   // the part that is being filled; nil when there is none
	parts []Kept
	size  int // of the text of parts
}

// Add appends a message. It leaves out a message without text. The places of the messages must ascend.
func (b *Builder) Add(m Message) {
	if len(m.Pieces) == 0 || b.TooLarge() {
		return
	}
	if b.draft == nil {
		b.draft = &draft{first: m.Place, known: map[string]bool{}, out: codec.NewWriter(nil)}
	}
	d := b.draft
	for _, p := range m.Pieces {
		if !d.known[p.Text] {
			d.known[p.Text] = true
			d.text += len(p.Text)
			b.found.text(strings.ToLower(p.Text))
		}
	}
	d.message(m)
	if d.text >= partText {
		b.closePart()
	}
}

// TooLarge reports whether the task has more text than the catalogue keeps of a task.
func (b *Builder) TooLarge() bool { return b.size > mostText }

// closePart ends the part that is being filled, if there is one.
func (b *Builder) closePart() {
	d := b.draft
	if d == nil {
		return
	}
	b.parts = append(b.parts, Kept{
		First:  d.first,
		Body:   coders().enc.EncodeAll(d.out.Out, nil),
		Words:  bytes.Clone(b.found.words),
		Joints: slices.Clone(b.found.joints),
	})
	b.size += d.text
	b.found.reset()
	b.draft = nil
}

// draft is a part that is being filled.
type draft struct {
	first int
	text  int             // bytes of its texts
	known map[string]bool // its texts
	out   codec.Writer
}

// message appends a message: history, number, place in the task's order, time, and for each piece its class, kind and
// text. A text is written once.
func (d *draft) message(m Message) {
	d.out.Word(m.History)
	d.out.Uint(uint64(m.Number))
	d.out.Uint(uint64(m.Place))
	d.out.Int(m.TS)
	d.out.Uint(uint64(len(m.Pieces)))
	for _, p := range m.Pieces {
		d.out.Uint(uint64(p.Class))
		d.out.Word(p.Kind)
		d.out.Word(p.Text)
	}
}

type coder struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

// coders are shared: EncodeAll and DecodeAll keep no state between texts.
var coders = sync.OnceValue(func() (c coder) {
	// Only wrong options are errors.
	c.enc, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2), zstd.WithEncoderLevel(zstd.SpeedDefault))
	c.dec, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(1<<30))
	return c
})

// reader reads parts for one query.
type reader struct {
	q    Query
	data []byte
}

// open decompresses a part.
func (r *reader) open(body []byte) (u codec.Reader, err error) {
	if r.data, err = coders().dec.DecodeAll(body, r.data[:0]); err != nil {
		return u, fmt.Errorf("%w: %v", ErrDamaged, err)
	}
	return codec.Reader{In: r.data}, nil
}

// hits appends the hits in a part.
func (r *reader) hits(to []Hit, body []byte) ([]Hit, error) {
	u, err := r.open(body)
	for err == nil && len(u.Rest()) > 0 {
		m := message(&u)
		if u.Bad {
			err = fmt.Errorf("%w: a message ends early", ErrDamaged)
		} else if hit, ok := r.q.Match(m); ok {
			to = r.q.Collect(to, hit)
		}
	}
	return to, err
}

// message reads what draft.message wrote.
func message(u *codec.Reader) Message {
	m := Message{History: u.Word(), Number: u.Small(), Place: u.Small(), TS: u.Int()}
	for range u.Count() {
		m.Pieces = append(m.Pieces, Piece{Class: Class(u.Uint()), Kind: u.Word(), Text: u.Word()})
	}
	return m
}
