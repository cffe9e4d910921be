package catalog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// ErrDamaged is wrapped when the file does not hold what was written into it.
var ErrDamaged = errors.New("the catalogue is damaged")

// draft is a part that is being filled: texts, each once, and messages that name
// theirs by number.
type draft struct {
	first    int
	full     bool // words and joints are those of its texts
	kinds    []string
	ends     []int // of each text
	texts    []byte
	messages []byte
	words    []byte
	joints   []uint32
}

func (d *draft) textAt(i int) []byte {
	from := 0
	if i > 0 {
		from = d.ends[i-1]
	}
	return d.texts[from:d.ends[i]]
}

func (d *draft) kind(name string) int {
	for i, k := range d.kinds {
		if k == name {
			return i
		}
	}
	d.kinds = append(d.kinds, name)
	return len(d.kinds) - 1
}

// body spells a part: its kinds, the lengths of its texts, the texts, the messages.
// Counts and lengths come before what they count.
func (d *draft) body() []byte {
	out := make([]byte, 0, len(d.texts)+len(d.messages)+4*len(d.ends)+256)
	out = binary.AppendUvarint(out, uint64(len(d.kinds)))
	for _, k := range d.kinds {
		out = append(binary.AppendUvarint(out, uint64(len(k))), k...)
	}
	out = binary.AppendUvarint(out, uint64(len(d.ends)))
	from := 0
	for _, end := range d.ends {
		out = binary.AppendUvarint(out, uint64(end-from))
		from = end
	}
	return append(append(out, d.texts...), d.messages...)
}

// message appends a message: history, number, place in the task's order, time, and of
// each piece class, kind and text.
func (d *draft) message(m Message, texts []int) {
	to := append(d.messages, m.History[0])
	to = binary.AppendUvarint(to, uint64(m.Number))
	to = binary.AppendUvarint(to, uint64(m.Place))
	to = binary.AppendVarint(to, m.TS)
	to = binary.AppendUvarint(to, uint64(len(m.Pieces)))
	for i, p := range m.Pieces {
		to = append(to, byte(p.Class))
		to = binary.AppendUvarint(to, uint64(d.kind(p.Kind)))
		to = binary.AppendUvarint(to, uint64(texts[i]))
	}
	d.messages = to
}

type coder struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

// coders are shared: both calls in use here keep no state between texts.
var coders = sync.OnceValue(func() coder {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2), zstd.WithEncoderLevel(zstd.SpeedDefault))
	if err != nil {
		panic("catalog: " + err.Error()) // only wrong options fail
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(1<<30))
	if err != nil {
		panic("catalog: " + err.Error())
	}
	return coder{enc, dec}
})

// reader reads parts for one query. Each text is searched once, however many
// messages have it, and most messages are passed over without being put together.
type reader struct {
	q           Query
	data, lower []byte
	kinds       []string
	texts       [][]byte
	holds       []uint64 // of each text, which plain terms it has
}

// open takes a part apart, up to its messages, which it returns.
func (r *reader) open(body []byte) (decoder, error) {
	var err error
	if r.data, err = coders().dec.DecodeAll(body, r.data[:0]); err != nil {
		return decoder{}, fmt.Errorf("%w: %v", ErrDamaged, err)
	}
	d := decoder{data: r.data}
	r.kinds, r.texts = r.kinds[:0], r.texts[:0]
	for n := d.uvarint(); n > 0 && !d.bad; n-- {
		r.kinds = append(r.kinds, string(d.bytes()))
	}
	var lengths []uint64
	for n := d.uvarint(); n > 0 && !d.bad; n-- {
		lengths = append(lengths, d.uvarint())
	}
	for _, n := range lengths {
		r.texts = append(r.texts, d.take(n))
	}
	if d.bad {
		return d, fmt.Errorf("%w: a part ends early", ErrDamaged)
	}
	return d, nil
}

// hits appends the hits of a part.
func (r *reader) hits(to []Hit, body []byte) ([]Hit, error) {
	d, err := r.open(body)
	if err != nil {
		return nil, err
	}
	all := r.mark()
	for len(d.data) > 0 {
		before := d
		var has uint64
		d.skip(1)
		d.uvarint()
		d.uvarint()
		d.varint()
		for n := d.uvarint(); n > 0 && !d.bad; n-- {
			d.skip(1)
			kind, text := d.uvarint(), d.uvarint()
			if kind >= uint64(len(r.kinds)) || text >= uint64(len(r.texts)) {
				d.bad = true
				break
			}
			has |= r.holds[text]
		}
		if d.bad {
			return nil, fmt.Errorf("%w: a message ends early", ErrDamaged)
		}
		if has&all != all {
			continue
		}
		if hit, ok := r.q.Match(r.message(&before)); ok {
			to = append(to, hit)
		}
	}
	return to, nil
}

// mark looks for the plain terms in each text; all has a bit for each term.
func (r *reader) mark() (all uint64) {
	plain := r.q.plain[:min(len(r.q.plain), 64)]
	for i := range plain {
		all |= 1 << i
	}
	r.holds = r.holds[:0]
	for _, text := range r.texts {
		r.lower = append(r.lower[:0], text...)
		for i, c := range r.lower {
			if c-'A' < 26 {
				r.lower[i] = c + 'a' - 'A'
			}
		}
		r.holds = append(r.holds, holding(r.lower, plain))
	}
	return all
}

// message puts a message together. That it can be done was seen before.
func (r *reader) message(d *decoder) Message {
	m := Message{History: HistoryUI}
	if d.byte() == HistoryAPI[0] {
		m.History = HistoryAPI
	}
	m.Number, m.Place, m.TS = int(d.uvarint()), int(d.uvarint()), d.varint()
	for n := d.uvarint(); n > 0; n-- {
		class := Class(d.byte())
		kind, text := d.uvarint(), d.uvarint()
		m.Pieces = append(m.Pieces, Piece{Class: class, Kind: r.kinds[kind], Text: string(r.texts[text])})
	}
	return m
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
	if n <= 0 || n > len(d.data) {
		d.bad, d.data = true, nil
		return
	}
	d.data = d.data[n:]
}

// bytes are some bytes with their length before them.
func (d *decoder) bytes() []byte { return d.take(d.uvarint()) }

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.data)) {
		d.bad, d.data = true, nil
		return nil
	}
	out := d.data[:n]
	d.data = d.data[n:]
	return out
}
