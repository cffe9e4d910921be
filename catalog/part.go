package catalog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	partText = 24 << 10  // a part is closed when it holds so much text
	mostText = 256 << 20 // of one task; a larger one is not kept, and always read
)

// part is some messages, compressed, and which grams stand in them.
type part struct {
	body   []byte
	tokens string
}

// Builder makes the parts of one task's text. To be used by one goroutine.
type Builder struct {
	grams gramSet
	open  []byte // messages of the part that is being filled
	parts []part
	size  int
}

// Add appends a message. One without text is left out.
func (b *Builder) Add(m Message) {
	if len(m.Pieces) == 0 || b.TooLarge() {
		return
	}
	before := len(b.open)
	b.open = m.append(b.open)
	b.size += len(b.open) - before
	for _, p := range m.Pieces {
		b.grams.text(fold(p.Text))
	}
	if len(b.open) >= partText {
		b.close()
	}
}

// TooLarge reports whether the task has more text than the catalogue keeps of one.
func (b *Builder) TooLarge() bool { return b.size > mostText }

// Text is how many bytes were added.
func (b *Builder) Text() int { return b.size }

func (b *Builder) close() {
	if len(b.open) == 0 {
		return
	}
	b.parts = append(b.parts, part{body: coders().enc.EncodeAll(b.open, nil), tokens: b.grams.tokens()})
	b.open = b.open[:0]
	b.grams.reset()
}

// take returns the parts and empties the builder.
func (b *Builder) take() []part {
	b.close()
	parts := b.parts
	b.parts, b.size = nil, 0
	return parts
}

type coder struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

// coders are shared: both calls in use here keep no state between texts.
var coders = sync.OnceValue(func() coder {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		panic("catalog: " + err.Error()) // only wrong options fail
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(1<<30))
	if err != nil {
		panic("catalog: " + err.Error())
	}
	return coder{enc, dec}
})

// append spells a message as: its length, history, number, time, then each piece with
// class, kind and text. Lengths stand before strings.
func (m Message) append(to []byte) []byte {
	size := 1 + 3*binary.MaxVarintLen64
	for _, p := range m.Pieces {
		size += 1 + 2*binary.MaxVarintLen64 + len(p.Kind) + len(p.Text)
	}
	one := make([]byte, 0, size)
	one = append(one, m.History[0])
	one = binary.AppendUvarint(one, uint64(m.Number))
	one = binary.AppendVarint(one, m.TS)
	one = binary.AppendUvarint(one, uint64(len(m.Pieces)))
	for _, p := range m.Pieces {
		one = append(one, byte(p.Class))
		one = binary.AppendUvarint(one, uint64(len(p.Kind)))
		one = append(one, p.Kind...)
		one = binary.AppendUvarint(one, uint64(len(p.Text)))
		one = append(one, p.Text...)
	}
	return append(binary.AppendUvarint(to, uint64(len(one))), one...)
}

// ErrDamaged is wrapped when the file does not hold what was written into it.
var ErrDamaged = errors.New("the catalogue is damaged")

// reader reads parts for one query. Most messages of a part that has the grams of a
// query do not hold it: those are passed over as bytes, without being taken apart.
type reader struct {
	q           Query
	data, lower []byte
}

// hits appends the hits of a part.
func (r *reader) hits(to []Hit, body []byte) ([]Hit, error) {
	var err error
	if r.data, err = coders().dec.DecodeAll(body, r.data[:0]); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrDamaged, err)
	}
	r.lower = append(r.lower[:0], r.data...)
	for i, c := range r.lower {
		if c-'A' < 26 {
			r.lower[i] = c + 'a' - 'A'
		}
	}
	if !r.q.mayHold(r.lower) {
		return to, nil
	}
	for at := 0; at < len(r.data); {
		n, head := binary.Uvarint(r.data[at:])
		if head <= 0 || n > uint64(len(r.data)-at-head) {
			return nil, fmt.Errorf("%w: a part ends early", ErrDamaged)
		}
		from := at + head
		at = from + int(n)
		if !r.q.mayHold(r.lower[from:at]) {
			continue
		}
		m, err := message(r.data[from:at])
		if err != nil {
			return nil, err
		}
		if hit, ok := r.q.Match(m); ok {
			to = append(to, hit)
		}
	}
	return to, nil
}

// message reads what append wrote behind the length.
func message(data []byte) (Message, error) {
	r := decoder{data: data}
	m := Message{History: HistoryUI}
	if r.byte() == HistoryAPI[0] {
		m.History = HistoryAPI
	}
	m.Number, m.TS = int(r.uvarint()), r.varint()
	for n := r.uvarint(); n > 0 && !r.bad; n-- {
		m.Pieces = append(m.Pieces, Piece{Class: Class(r.byte()), Kind: r.string(), Text: r.string()})
	}
	if r.bad || len(r.data) > 0 {
		return m, fmt.Errorf("%w: a message is not as long as it says", ErrDamaged)
	}
	return m, nil
}

type decoder struct {
	data []byte
	bad  bool
}

func (d *decoder) byte() byte {
	if len(d.data) == 0 {
		d.bad = true
		return 0
	}
	c := d.data[0]
	d.data = d.data[1:]
	return c
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.data)
	d.skip(n)
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.data)
	d.skip(n)
	return v
}

func (d *decoder) skip(n int) {
	if n <= 0 {
		d.bad, d.data = true, nil
		return
	}
	d.data = d.data[n:]
}

func (d *decoder) string() string {
	n := d.uvarint()
	if n > uint64(len(d.data)) {
		d.bad, d.data = true, nil
		return ""
	}
	s := string(d.data[:n])
	d.data = d.data[n:]
	return s
}
