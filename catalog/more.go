package catalog

import (
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// MoreName is the name of the file of additions: what lists found changed since the
// rows were written. Each list adds one piece at the end, so that a task that changed
// does not have the rows of all others written again. A piece has a checksum and names
// the rows that it belongs to, by the number in their file. One that was cut by a kill,
// or that was written without knowledge of another one that came between, ends what is
// read: what follows is read from the tasks again, and the next list that has
// something to keep writes all rows anew.
const MoreName = "list.more"

// Addition is what is new about a shelf that the rows have.
type Addition struct {
	Shelf *Shelf // as it is now, with the new rows only
	At    []int  // their places among all rows of the shelf, rising
	New   []bool // whether such a row is put in, or replaces the one that stands there
	Gone  []int  // places, before anything is put in, of rows whose tasks are gone; rising
	Moved bool   // more than rows has changed
}

// moreMost is how large the file of additions may get, next to the rows. All of it is
// read by every list.
func (r *Rows) moreMost() int64 { return max(256<<10, r.size/16) }

// moreMagic begins a piece; its length, the number of the rows, the place that it was
// written for, and its checksum follow.
const (
	moreMagic = "moreRow1"
	moreHead  = len(moreMagic) + 4*8
)

// anywhere is the place of a piece that only replaces rows of which no index says
// anything: it does not matter what others have added before it.
const anywhere = ^uint64(0)

func moreSize(dir string) int64 {
	info, err := os.Stat(filepath.Join(dir, MoreName))
	if err != nil {
		return 0
	}
	return info.Size()
}

// Add keeps additions. False: all rows must be written instead, because that is less
// work, or because these are not the rows any more that lie in the folder.
func (r *Rows) Add(dir string, list []Addition) (bool, error) {
	if r == nil || r.file == nil || r.broken || r.replaced(dir) {
		return false, nil
	}
	piece := r.piece(list)
	if r.more+int64(len(piece)) > r.moreMost() {
		return false, nil
	}
	f, err := os.OpenFile(filepath.Join(dir, MoreName), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return false, fmt.Errorf("keep what changed: %w", err)
	}
	_, err = f.Write(piece) // at once: two that add at the same time do not mix
	if failed := f.Close(); err == nil {
		err = failed
	}
	if err != nil {
		return false, fmt.Errorf("keep what changed: %w", err)
	}
	return true, nil
}

func (r *Rows) piece(list []Addition) []byte {
	at := anywhere
	var p packer
	shelves := make([]*Shelf, len(list))
	for i, a := range list {
		shelves[i] = a.Shelf
		// What an index says of a task counts with the digest of the indexes that stands here.
		worded := slices.ContainsFunc(a.Shelf.Rows, func(row Row) bool { return row.Item != 0 })
		if a.Moved || worded || len(a.Gone) > 0 || slices.Contains(a.New, true) {
			at = uint64(r.more)
		}
	}
	p.shelves(shelves)
	for _, a := range list {
		for i, place := range a.At {
			fresh := uint64(0)
			if a.New[i] {
				fresh = 1
			}
			p.unsigned(uint64(place)<<1 | fresh)
		}
		p.unsigned(uint64(len(a.Gone)))
		for _, place := range a.Gone {
			p.unsigned(uint64(place))
		}
		moved := byte(0)
		if a.Moved {
			moved = 1
		}
		p.head = append(p.head, moved)
	}
	var text packer
	text.unsigned(uint64(len(p.head)))
	text.head = append(text.head, p.head...)
	for _, part := range p.body {
		text.head = append(text.head, part...)
	}
	out := packer{head: []byte(moreMagic)}
	for _, n := range []uint64{uint64(len(text.head)), r.base, at} {
		out.fixed(n)
	}
	out.fixed(uint64(moreSum(out.head, text.head)))
	return append(out.head, text.head...)
}

// moreSum is the checksum of a piece: of its head too, whose numbers say where it
// belongs.
func moreSum(head, text []byte) uint32 {
	return crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, text)
}

// readMore puts in what was added to these rows.
func (r *Rows) readMore(dir string) {
	b, ok := readAdditions(dir, r.moreMost())
	if !ok {
		r.broken = true
		return
	}
	r.putIn(b)
}

// readAdditions reads the file of additions; false when it cannot be read or is too long.
func readAdditions(dir string, most int64) ([]byte, bool) {
	f, err := os.Open(filepath.Join(dir, MoreName))
	if err != nil {
		return nil, os.IsNotExist(err)
	}
	defer f.Close()
	most *= 2 // several may have added at the same time
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	return b, err == nil && int64(len(b)) <= most
}

// putIn puts in what stands in the additions behind what was put in before.
func (r *Rows) putIn(b []byte) {
	from := int(r.more)
	r.more, r.moreSum = int64(len(b)), crc32.Checksum(b, castagnoli)
	defer r.settle()
	for from < len(b) {
		n := r.take(b[from:], uint64(from))
		if n == 0 {
			r.broken = true
			return
		}
		from += n
	}
}

func (r *Rows) settle() {
	for _, p := range r.patches {
		p.settle()
	}
	r.patches = nil
}

// take puts in one piece and returns its length, 0 when it cannot be used.
func (r *Rows) take(b []byte, from uint64) int {
	if len(b) < moreHead || string(b[:len(moreMagic)]) != moreMagic {
		return 0
	}
	u := unpacker{text: string(b[len(moreMagic):moreHead])}
	n, base, at, sum := u.fixed(), u.fixed(), u.fixed(), uint32(u.fixed())
	if n > uint64(len(b)-moreHead) {
		return 0
	}
	size := moreHead + int(n)
	text := b[moreHead:size:size]
	switch {
	case moreSum(b[:moreHead-8], text) != sum, base == r.base && at != anywhere && at != from:
		return 0
	case base != r.base:
		return size // added to rows that somebody had already replaced
	case !r.apply(string(text)):
		for _, s := range r.Shelves {
			s.Dirs = nil // which tasks there are is looked up again
		}
		return 0
	}
	return size
}

// apply puts in the text of one piece. When it is false, rows may have changed in
// part: each is still one that was kept.
func (r *Rows) apply(text string) bool {
	whole := unpacker{text: text}
	u := unpacker{text: whole.string()}
	body := whole.text
	if whole.bad {
		return false
	}
	shelves := u.shelves()
	for _, from := range shelves {
		to := r.Shelf(from.Name)
		if u.bad || to == nil || to.Tool != from.Tool || to.Tasks != from.Tasks {
			return false
		}
		places := make([]uint64, len(from.Rows))
		for i := range places {
			places[i] = u.unsigned()
			row := &from.Rows[i]
			if end := row.end(); row.Known && (end > int64(len(body)) || row.take([]byte(body[row.at:end])) != nil) {
				return false
			}
		}
		gone := make([]int, u.count())
		for i := range gone {
			gone[i] = int(min(u.unsigned(), 1<<40))
		}
		moved := u.take(1) == "\x01"
		if r.patches[to] == nil {
			if r.patches == nil {
				r.patches = map[*Shelf]*patch{}
			}
			r.patches[to] = &patch{s: to}
		}
		if p := r.patches[to]; u.bad || !p.remove(gone) || !p.put(from.Rows, places) {
			return false
		}
		if moved {
			to.ByPath, to.Path, to.Problem, to.Seen, to.Indexes, to.Dirs = from.ByPath, from.Path, from.Problem, from.Seen, from.Indexes, from.Dirs
		}
	}
	return !u.bad && u.text == ""
}

// patch are the rows of a shelf while additions are put in. Only the order of their
// numbers is changed for each; the rows themselves, which are large, move once.
type patch struct {
	s     *Shelf
	order []int // numbers of rows, those of the shelf first; nil: as in the shelf
	fresh []Row
}

func (p *patch) count() int {
	if p.order == nil {
		return len(p.s.Rows)
	}
	return len(p.order)
}

func (p *patch) at(place int) *Row {
	if p.order != nil {
		place = p.order[place]
	}
	if place < len(p.s.Rows) {
		return &p.s.Rows[place]
	}
	return &p.fresh[place-len(p.s.Rows)]
}

// numbers makes the order one that can be changed.
func (p *patch) numbers() {
	if p.order != nil {
		return
	}
	p.order = make([]int, len(p.s.Rows), len(p.s.Rows)+16)
	for i := range p.order {
		p.order[i] = i
	}
}

func (p *patch) remove(places []int) bool {
	for i := len(places) - 1; i >= 0; i-- {
		if places[i] >= p.count() || i > 0 && places[i-1] >= places[i] {
			return false
		}
		p.numbers()
		p.order = slices.Delete(p.order, places[i], places[i]+1)
	}
	return true
}

func (p *patch) put(rows []Row, places []uint64) bool {
	for i, row := range rows {
		place := int(min(places[i]>>1, 1<<40))
		if places[i]&1 == 0 {
			continue
		}
		if place > p.count() {
			return false
		}
		p.numbers()
		p.order = slices.Insert(p.order, place, len(p.s.Rows)+len(p.fresh))
		p.fresh = append(p.fresh, row)
	}
	for i, row := range rows {
		place := int(min(places[i]>>1, 1<<40))
		if places[i]&1 != 0 {
			continue
		}
		if place >= p.count() || p.at(place).ID != row.ID {
			return false
		}
		*p.at(place) = row
	}
	return true
}

// settle gives the shelf its rows.
func (p *patch) settle() {
	if p.order == nil {
		return
	}
	all := make([]Row, len(p.order))
	for i := range all {
		all[i] = *p.at(i)
	}
	p.s.Rows, p.order, p.fresh = all, nil, nil
}
