package catalog

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// packer writes the columns of rows. Words that stand in many rows are written once.
type packer struct {
	head  []byte
	body  [][]byte // title and whole row of each
	at    int64
	words map[string]int
	known map[string]int // traits that were written, by their words
}

func (p *packer) fixed(n uint64)    { p.head = binary.LittleEndian.AppendUint64(p.head, n) }
func (p *packer) number(n int64)    { p.head = binary.AppendVarint(p.head, n) }
func (p *packer) unsigned(n uint64) { p.head = binary.AppendUvarint(p.head, n) }

func (p *packer) text(s string) {
	p.unsigned(uint64(len(s)))
	p.head = append(p.head, s...)
}

// word writes a text that probably was written before: its number, or 0 and itself.
func (p *packer) word(s string) {
	if n, ok := p.words[s]; ok {
		p.unsigned(uint64(n))
		return
	}
	p.words[s] = len(p.words) + 1
	p.unsigned(0)
	p.text(s)
}

func (p *packer) shelves(list []*Shelf) {
	p.unsigned(uint64(len(list)))
	for _, s := range list {
		for _, text := range []string{s.Name, s.Tool, s.ByPath, s.Path, s.Tasks, s.Problem} {
			p.text(text)
		}
		p.number(s.Seen)
		p.fixed(s.Indexes)
		p.unsigned(uint64(len(s.Dirs)))
		for _, d := range s.Dirs {
			p.text(d.Path)
			p.fixed(d.Digest)
		}
		p.unsigned(uint64(len(s.Rows)))
		for rows := s.Rows; len(rows) > 0; {
			n := min(blockRows, len(rows))
			p.block(rows[:n])
			rows = rows[n:]
		}
	}
}

// blockRows are how many rows are decoded in one piece. Each has its own words, so that
// all cores decode.
const blockRows = 1024

func (p *packer) block(rows []Row) {
	one := packer{body: p.body, at: p.at, words: map[string]int{}, known: map[string]int{}}
	for i := range rows {
		one.row(&rows[i])
	}
	p.unsigned(uint64(p.at))
	p.unsigned(uint64(len(one.head)))
	p.head = append(p.head, one.head...)
	p.body, p.at = one.body, one.at
}

// mostOwn is how long a title, or a whole row, may be to be kept.
const mostOwn = 1 << 30

// The bits of a row's flags.
const (
	flagKnown = 1 << iota
	flagEmpty
	flagDamaged
	flagPinned
	flagPriced
	flagLogged
	flagUnfinished
	flagContent
)

func (row *Row) flags() (out byte) {
	for i, on := range []bool{row.Known, row.Empty, row.Damaged, row.Pinned, row.Priced, row.Logged, row.Unfinished, row.Content != [16]byte{}} {
		if on {
			out |= 1 << i
		}
	}
	return out
}

func (p *packer) row(row *Row) {
	p.text(row.ID)
	if !row.Known || row.Whole == nil || len(row.Title) > mostOwn || len(row.Whole) > mostOwn {
		p.head = append(p.head, 0)
		return
	}
	flags := row.flags()
	p.head = append(p.head, flags)
	p.fixed(row.Digest)
	p.fixed(row.Near)
	p.fixed(row.Item)
	p.fixed(row.Sizes)
	if flags&flagContent != 0 {
		p.head = append(p.head, row.Content[:]...)
	}
	p.traits(row.Traits)
	for _, n := range []int64{row.TS, row.Cost, row.Tokens, row.Size, row.Wrote} {
		p.number(n)
	}
	p.unsigned(uint64(len(row.Title)))
	p.unsigned(uint64(len(row.Whole)))
	title := []byte(row.Title)
	p.fixed(uint64(crc32.Update(crc32.Checksum(title, castagnoli), castagnoli, row.Whole)))
	p.body = append(p.body, title, row.Whole) // not copied: of ten thousand long titles that would be 70 MB
	p.at += int64(len(title) + len(row.Whole))
}

// traits writes the number of traits that were written before, or 0 and themselves.
func (p *packer) traits(t *Traits) {
	if t == nil {
		t = noTraits
	}
	list := []string{t.Watch, t.Tool, t.Status, t.Workspace, t.Model, t.Parent, strings.Join(t.Tags, "\x00")}
	key := ""
	for _, word := range list {
		key += strconv.Itoa(len(word)) + " " + word
	}
	if n, ok := p.known[key]; ok {
		p.unsigned(uint64(n))
		return
	}
	p.known[key] = len(p.known) + 1
	p.unsigned(0)
	for _, word := range list {
		p.word(word)
	}
}

// unpacker reads what a packer wrote. Texts are parts of one string: nothing is
// copied. A text that no packer wrote makes it bad, and never fails otherwise.
type unpacker struct {
	text  string
	bad   bool
	at    int64
	words []string
	known []*Traits
}

func (u *unpacker) take(n uint64) string {
	if n > uint64(len(u.text)) {
		u.bad, u.text = true, ""
		return ""
	}
	out := u.text[:n]
	u.text = u.text[n:]
	return out
}

func (u *unpacker) fixed() uint64 {
	b := u.take(8)
	if u.bad {
		return 0
	}
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 | // one load, says the compiler
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

func (u *unpacker) unsigned() (out uint64) {
	if len(u.text) > 0 && u.text[0] < 0x80 { // most are small
		out, u.text = uint64(u.text[0]), u.text[1:]
		return out
	}
	for i := 0; i < len(u.text) && i < 10; i++ {
		b := u.text[i]
		if out |= uint64(b&0x7f) << (7 * i); b < 0x80 {
			u.text = u.text[i+1:]
			return out
		}
	}
	u.bad, u.text = true, ""
	return 0
}

func (u *unpacker) number() int64 {
	n := u.unsigned()
	return int64(n>>1) ^ -int64(n&1)
}

func (u *unpacker) string() string { return u.take(u.unsigned()) }

func (u *unpacker) word() string {
	n := u.unsigned()
	if n == 0 {
		u.words = append(u.words, u.string())
		n = uint64(len(u.words))
	}
	if n > uint64(len(u.words)) {
		u.bad, u.text = true, ""
		return ""
	}
	return u.words[n-1]
}

// count reads how many follow; each takes a byte at least.
func (u *unpacker) count() int {
	n := u.unsigned()
	if n > uint64(len(u.text)) {
		u.bad, u.text = true, ""
		return 0
	}
	return int(n)
}

func (u *unpacker) shelves() []*Shelf {
	var out []*Shelf
	var blocks []block
	for range u.count() {
		s := &Shelf{Name: u.string(), Tool: u.string(), ByPath: u.string(), Path: u.string(), Tasks: u.string(), Problem: u.string()}
		s.Seen, s.Indexes = u.number(), u.fixed()
		for range u.count() {
			s.Dirs = append(s.Dirs, Dir{u.string(), u.fixed()})
		}
		s.Rows = make([]Row, u.count())
		for rows := s.Rows; len(rows) > 0 && !u.bad; {
			n := min(blockRows, len(rows))
			at, text := u.unsigned(), u.string()
			if at > 1<<60 {
				u.bad, u.text = true, ""
			}
			blocks = append(blocks, block{unpacker{at: int64(at), text: text}, rows[:n]})
			rows = rows[n:]
		}
		out = append(out, s)
	}
	if !unpackAll(blocks) {
		u.bad, u.text = true, ""
	}
	return out
}

// block are rows that are to be decoded.
type block struct {
	from unpacker
	rows []Row
}

func (b block) unpack() bool {
	for i := range b.rows {
		b.from.row(&b.rows[i])
	}
	return !b.from.bad && b.from.text == ""
}

// unpackAll decodes blocks on all cores; false when one cannot be understood.
func unpackAll(blocks []block) bool {
	workers := min(runtime.GOMAXPROCS(0), len(blocks))
	if workers < 2 {
		return !slices.ContainsFunc(blocks, func(b block) bool { return !b.unpack() })
	}
	var next atomic.Int64
	var bad atomic.Bool
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := next.Add(1); i <= int64(len(blocks)) && !bad.Load(); i = next.Add(1) {
				if !blocks[i-1].unpack() {
					bad.Store(true)
				}
			}
		})
	}
	all.Wait()
	return !bad.Load()
}

func (u *unpacker) row(row *Row) {
	row.ID, row.Traits = u.string(), noTraits
	b := u.take(1)
	if u.bad || b[0]&flagKnown == 0 {
		return
	}
	flags := b[0]
	row.Known, row.Empty, row.Damaged, row.Pinned = true, flags&flagEmpty != 0, flags&flagDamaged != 0, flags&flagPinned != 0
	row.Priced, row.Logged, row.Unfinished = flags&flagPriced != 0, flags&flagLogged != 0, flags&flagUnfinished != 0
	row.Digest, row.Near, row.Item, row.Sizes = u.fixed(), u.fixed(), u.fixed(), u.fixed()
	if flags&flagContent != 0 {
		copy(row.Content[:], u.take(16))
	}
	row.Traits = u.traits()
	row.TS, row.Cost, row.Tokens, row.Size, row.Wrote = u.number(), u.number(), u.number(), u.number(), u.number()
	title, n := u.unsigned(), u.unsigned()
	row.sum = uint32(u.fixed())
	if title > mostOwn || n > mostOwn {
		u.bad, u.text = true, ""
		return
	}
	row.at, row.title, row.n = u.at, uint32(title), uint32(n)
	u.at += int64(title + n)
}

func (u *unpacker) traits() *Traits {
	n := u.unsigned()
	if n == 0 {
		t := &Traits{Watch: u.word(), Tool: u.word(), Status: u.word(), Workspace: u.word(), Model: u.word(), Parent: u.word()}
		if tags := u.word(); tags != "" {
			t.Tags = strings.Split(tags, "\x00")
		}
		u.known = append(u.known, t)
		return t
	}
	if n > uint64(len(u.known)) {
		u.bad, u.text = true, ""
		return noTraits
	}
	return u.known[n-1]
}

// Mix adds a number to a digest. It is one step of a permutation, so two that differ
// in one number always differ; it is no defence against somebody who wants two to be
// equal.
func Mix(digest, n uint64) uint64 {
	return bits.RotateLeft64(digest^n*0x9e3779b97f4a7c15, 29) * 0xbf58476d1ce4e5b9
}

// MixText adds a text.
func MixText(digest uint64, s string) uint64 {
	digest = Mix(digest, uint64(len(s)))
	for ; len(s) >= 8; s = s[8:] {
		digest = Mix(digest, binary.LittleEndian.Uint64([]byte(s[:8])))
	}
	var last [8]byte
	copy(last[:], s)
	return Mix(digest, binary.LittleEndian.Uint64(last[:]))
}
