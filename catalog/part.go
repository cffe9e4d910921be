package catalog

import (
	"bytes"
	"hash"
	"hash/maphash"
	"slices"
)

const (
	partText = 32 << 10  // a part is closed when it holds so much text
	mostText = 256 << 20 // of one task; a larger one is not kept, and always read
	repeat   = 200       // bytes; shorter texts are not looked for among earlier ones
	openMost = 256       // parts that later messages can still be put into
)

// part is some messages, compressed, and what the index keeps of them.
type part struct {
	first  int // place of its first message in the task's order
	text   int
	body   []byte
	words  []byte // each with a line break behind it
	joints []uint32
}

// Builder makes the parts of one task's text. To be used by one goroutine.
//
// A text that several messages have, as a file that was read again or what a
// command printed to both histories, is kept and indexed once: the later message goes
// into the part that has it. A text more than openMost parts back is kept again.
type Builder struct {
	found features // of the part that is being filled
	more  features // of a message that goes into an earlier part
	open  []*draft // the last one is being filled
	known map[uint64]place
	parts []part
	size  int   // of all text, also of what was put ahead
	ahead int64 // the row that has the parts which are not held any more
	held  int   // text of parts
	shed  hash.Hash
	small int // divides heavyText and openMost, for tests; 0 is 1
}

// place is where a text is.
type place struct {
	draft *draft
	text  int
}

var seed = maphash.MakeSeed()

// Add appends a message. One without text is left out. Places rise.
func (b *Builder) Add(m Message) {
	if len(m.Pieces) == 0 || b.TooLarge() {
		return
	}
	earlier := b.earlier(m)
	if earlier != nil {
		b.more.reset()
		b.put(earlier, m, &b.more)
		earlier.words = append(earlier.words, b.more.words...)
		earlier.joints = append(earlier.joints, b.more.joints...)
		return
	}
	if b.filling() == nil {
		b.open = append(b.open, &draft{first: m.Place})
	}
	d := b.filling()
	b.put(d, m, &b.found)
	if len(d.texts) >= partText {
		b.full()
	}
}

// filling is the part that is being filled, nil when the last one is full.
func (b *Builder) filling() *draft {
	if len(b.open) == 0 || b.open[len(b.open)-1].full {
		return nil
	}
	return b.open[len(b.open)-1]
}

// earlier is the part that has most of a message's text already, nil when none has.
func (b *Builder) earlier(m Message) *draft {
	var best *draft
	all, most := 0, 0
	for _, p := range m.Pieces {
		all += len(p.Text)
		if len(p.Text) < repeat || len(p.Text) <= most {
			continue
		}
		if at, ok := b.where(p.Text); ok && at.draft != b.filling() {
			best, most = at.draft, len(p.Text)
		}
	}
	if most*2 < all || best != nil && len(best.texts)+all-most > 2*partText {
		return nil
	}
	return best
}

// where finds a text in the parts that are open.
func (b *Builder) where(text string) (place, bool) {
	at, ok := b.known[maphash.String(seed, text)]
	return at, ok && string(at.draft.textAt(at.text)) == text
}

// put adds a message to a part, and what is new of it to its features.
func (b *Builder) put(d *draft, m Message, f *features) {
	texts := make([]int, len(m.Pieces))
	for i, p := range m.Pieces {
		if len(p.Text) >= repeat {
			if at, ok := b.where(p.Text); ok && at.draft == d {
				texts[i] = at.text
				continue
			}
		}
		texts[i] = len(d.ends)
		d.texts = append(d.texts, p.Text...)
		d.ends = append(d.ends, len(d.texts))
		b.size += len(p.Text)
		f.text(fold(p.Text))
		if len(p.Text) >= repeat {
			if b.known == nil {
				b.known = map[uint64]place{}
			}
			b.known[maphash.String(seed, p.Text)] = place{d, texts[i]}
		}
	}
	d.message(m, texts)
}

// TooLarge reports whether the task has more text than the catalogue keeps of one.
func (b *Builder) TooLarge() bool { return b.size > mostText }

// full ends the filling of a part. The oldest of too many is closed.
func (b *Builder) full() {
	d := b.filling()
	if d == nil {
		return
	}
	d.full, d.words, d.joints = true, bytes.Clone(b.found.words), slices.Clone(b.found.joints)
	b.found.reset()
	if len(b.open) > openMost/max(b.small, 1) {
		b.close(b.open[0])
		b.open = b.open[1:]
	}
}

func (b *Builder) close(d *draft) {
	for i := range d.ends {
		if text := d.textAt(i); len(text) >= repeat {
			if h := maphash.Bytes(seed, text); b.known[h].draft == d {
				delete(b.known, h)
			}
		}
	}
	b.held += len(d.texts)
	b.parts = append(b.parts, part{
		first: d.first, text: len(d.texts), words: d.words, joints: d.joints, body: coders().enc.EncodeAll(d.body(), nil),
	})
}

// take returns the parts and empties the builder.
func (b *Builder) take() []part {
	b.full()
	for _, d := range b.open {
		b.close(d)
	}
	parts := b.parts
	*b = Builder{small: b.small}
	return parts
}
