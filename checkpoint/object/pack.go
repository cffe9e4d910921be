package object

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"sync"
)

// pack is one pack with its index. The file is opened for each use: thousands of
// packs would be thousands of handles, and Windows cannot remove what is open.
type pack struct {
	name string // "pack-" and 40 hex digits
	path string // of the .pack file
	size int64
	idx  *index

	once  sync.Once
	order []int64 // where entries begin, ascending, and where the last one ends
}

// header is what stands before an entry's compressed bytes.
type header struct {
	kind byte
	size int64 // of the object; of a difference its own
	data int64 // where the compressed bytes begin
	back int64 // packOffset: where the base lies
	base sum   // packRef: which object the base is
}

// parseHeader reads a header at off from what stands there.
func parseHeader(b []byte, off int64) (h header, err error) {
	bad := func(why string) (header, error) { return header{}, fmt.Errorf("%w: %s", ErrDamaged, why) }
	if len(b) == 0 {
		return bad("an entry begins behind the end of its pack")
	}
	c, at := b[0], 1
	h.kind, h.size = c>>4&7, int64(c&15)
	for shift := 4; c&0x80 != 0; shift += 7 {
		if at >= len(b) || shift > 53 {
			return bad("an entry's size cannot be")
		}
		c = b[at]
		at++
		h.size |= int64(c&0x7f) << shift
	}
	switch h.kind {
	case packCommit, packTree, packBlob, packTag:
	case packOffset:
		var back int64
		for i := 0; ; i++ {
			if at >= len(b) || i > 7 {
				return bad("where a difference's base lies cannot be")
			}
			c = b[at]
			at++
			if i > 0 {
				back++
			}
			back = back<<7 | int64(c&0x7f)
			if c&0x80 == 0 {
				break
			}
		}
		if back <= 0 || off-back < packHead {
			return bad("a difference's base lies outside the pack")
		}
		h.back = off - back
	case packRef:
		if at+len(h.base) > len(b) {
			return bad("an entry is cut off")
		}
		copy(h.base[:], b[at:])
		at += len(h.base)
	default:
		return bad(fmt.Sprintf("an entry is of the unknown kind %d", h.kind))
	}
	h.data = off + int64(at)
	return h, nil
}

// kindOf names a whole entry's kind; "" of a difference.
func kindOf(k byte) Kind {
	return [8]Kind{packCommit: KindCommit, packTree: KindTree, packBlob: KindBlob, packTag: KindTag}[k]
}

// open opens the pack's file and looks at how it begins.
func (p *pack) open() (*os.File, error) {
	f, err := os.Open(p.path)
	if err != nil {
		return nil, err
	}
	var b [packHead]byte
	if _, err = f.ReadAt(b[:], 0); err != nil {
		err = fmt.Errorf("%s %w: %v", p.name, ErrDamaged, err)
	} else if v := binary.BigEndian.Uint32(b[4:]); string(b[:4]) != "PACK" || v != 2 && v != 3 || int64(binary.BigEndian.Uint32(b[8:])) != int64(p.idx.n) {
		err = fmt.Errorf("%s %w: it does not begin as its index says", p.name, ErrDamaged)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// end is where entries must have ended.
func (p *pack) end() int64 { return p.size - packTail }

// header reads the header of the entry at off.
func (p *pack) header(f io.ReaderAt, off int64) (header, error) {
	if off < packHead || off >= p.end() {
		return header{}, fmt.Errorf("%s %w: an entry lies outside", p.name, ErrDamaged)
	}
	var b [48]byte
	n, err := f.ReadAt(b[:min(int64(len(b)), p.end()-off)], off)
	if err != nil && !errors.Is(err, io.EOF) {
		return header{}, fmt.Errorf("%s %w: %v", p.name, ErrDamaged, err)
	}
	h, err := parseHeader(b[:n], off)
	if err != nil {
		err = fmt.Errorf("%s %w", p.name, err)
	}
	return h, err
}

// inflate reads the content of an entry, or a difference.
func (p *pack) inflate(ctx context.Context, f io.ReaderAt, h header) (data []byte, err error) {
	err = inflate(io.NewSectionReader(f, h.data, max(p.end()-h.data, 0)), func(r io.Reader) error {
		data, err = take(ctx, r, h.size)
		return err
	})
	return data, err
}

// chain follows differences from the entry at off down to a whole object: the last
// header is of that one, or of a difference whose base is not in this pack.
func (p *pack) chain(ctx context.Context, f io.ReaderAt, off int64) (list []header, err error) {
	for {
		h, err := p.header(f, off)
		if err != nil {
			return nil, err
		}
		list = append(list, h)
		if h.kind == packOffset {
			off = h.back
		} else if i, ok := p.idx.find(h.base); h.kind == packRef && ok {
			off = p.idx.offset(i)
		} else {
			return list, nil
		}
		if len(list) > maxChain {
			return nil, fmt.Errorf("%s %w: differences stand on each other without end", p.name, ErrDamaged)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// put puts an object together whose base lies at the end of a chain.
func (p *pack) put(ctx context.Context, f io.ReaderAt, list []header, limit int64, other func(sum) (Kind, []byte, error)) (kind Kind, data []byte, err error) {
	for i, h := range slices.Backward(list) {
		if limit > 0 && i == 0 && kindOf(h.kind) != "" && h.size > limit {
			return "", nil, ErrTooLarge
		}
		if len(list) > 1 && h.size > maxDelta || kindOf(h.kind) == "" && h.size > maxDelta {
			return "", nil, fmt.Errorf("%w: a difference is larger than %d bytes", ErrTooLarge, maxDelta)
		}
		part, err := p.inflate(ctx, f, h)
		if err != nil {
			return "", nil, err
		}
		if k := kindOf(h.kind); k != "" {
			kind, data = k, part
			continue
		}
		if kind == "" {
			if kind, data, err = other(h.base); err != nil {
				return "", nil, err
			}
		}
		if data, err = applyDelta(data, part); err != nil {
			return "", nil, err
		}
	}
	if limit > 0 && int64(len(data)) > limit {
		return "", nil, ErrTooLarge
	}
	return kind, data, nil
}

// length is how many bytes the entry at off takes in the pack.
func (p *pack) length(off int64) int64 {
	p.once.Do(func() {
		p.order = make([]int64, 0, p.idx.n+1)
		for i := range p.idx.n {
			p.order = append(p.order, p.idx.offset(i))
		}
		slices.Sort(p.order)
		p.order = append(p.order, p.end())
	})
	i := sort.Search(len(p.order), func(i int) bool { return p.order[i] > off })
	if i == len(p.order) {
		return 0
	}
	return max(p.order[i]-off, 0)
}

// verify compares a whole entry with its id: what is copied must not take the place of
// a better copy.
func (p *pack) verify(ctx context.Context, f io.ReaderAt, i int) error {
	h, err := p.header(f, p.idx.offset(i))
	if err != nil {
		return err
	}
	return inflate(io.NewSectionReader(f, h.data, max(p.end()-h.data, 0)), func(r io.Reader) error {
		return checked(ctx, p.idx.id(i).ID(), kindOf(h.kind), h.size, io.Discard, r)
	})
}
