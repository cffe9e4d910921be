package esjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Element is the position of one element of a top-level array, in bytes from the start of the stream.
type Element struct{ Off, Len int64 }

// End is the way in which an array in a file ended.
type End uint8

// The ways an array can end. Elements that were reported are whole in each case.
const (
	EndComplete End = iota // the closing bracket was there, and nothing but blanks after it
	EndTorn                // the text stops before the closing bracket: a write was cut
	EndBroken              // the next byte is not allowed there: damage inside the array
	EndAfter               // the array is complete, but something other than blanks follows it
	EndNotArray            // no array begins here
	EndEmpty               // no byte, or only blanks, NULs and a byte order mark
)

var endNames = [...]string{"complete", "torn", "broken", "garbage after the end", "not an array", "empty"}

// String describes the end in a few words.
func (e End) String() string {
	if int(e) < len(endNames) {
		return endNames[e]
	}
	return "unknown"
}

// Tail describes the text that Split read.
type Tail struct {
	End      End
	Elements int   // whole elements reported
	Start    int64 // offset of '['; -1 when there is none
	Lead     int64 // bytes before '[' that JSON.parse would refuse there (a byte order mark, NULs, garbage)
	Last     int64 // offset after the last whole element (after '[' when there is none)
	Off      int64 // where it ended or broke: after ']', at the bad byte, at the first byte of garbage, or the size
	Size     int64 // bytes read; all of the stream
	InElem   bool  // torn or broken inside an element, which is lost (it begins after Last)
}

// Clean reports whether JSON.parse accepts the text as an array.
func (t Tail) Clean() bool { return t.End == EndComplete && t.Lead == 0 }

// The function given to Split may return ErrStop to end the split early without an error.
var ErrStop = errors.New("stop splitting")

const chunkSize = 256 << 10

// chunks are read buffers for reuse: with ten thousand small files, clearing a new buffer for each took longer than
// reading the files.
var chunks = sync.Pool{New: func() any { b := make([]byte, chunkSize); return &b }}

// Split finds the elements of the top-level array in r and calls fn for each as soon as it has been read whole. Every
// reported element is valid JSON, even if the text is cut or damaged later; a text cut at any byte still yields all
// its whole elements. Split skips and counts blanks, a byte order mark, NULs and other garbage before the array, and
// reads only the first of several arrays. Memory is one buffer of 256 KiB for any size.
//
// The error is that of r or fn, with the Tail so far. Damage is not an error: see Tail.
func Split(r io.Reader, fn func(e Element) error) (Tail, error) {
	sp := splitter{report: fn}
	return sp.split(r)
}

// SplitIndex is Split for callers that look into each element: one pass over the bytes finds the elements and the
// upper levels of each, as Index.Read does. x is valid during the call; it is nil when the element is longer than
// room bytes, because its bytes are no longer in memory. Memory is a buffer of at most 256 KiB and four times room,
// and the index.
func SplitIndex(r io.Reader, levels, room int, fn func(e Element, x *Index) error) (Tail, error) {
	sp := splitter{levels: levels, room: room, index: new(Index)}
	sp.report = func(e Element) error { return fn(e, sp.indexed(e.Off+e.Len)) }
	return sp.split(r)
}

func (sp *splitter) split(r io.Reader) (Tail, error) {
	sp.tail = Tail{Start: -1, End: EndEmpty}
	chunk := chunks.Get().(*[]byte) //nolint:errcheck,forcetypeassert // it makes no others
	defer chunks.Put(chunk)
	buf := *chunk
	held := 0 // bytes at the start of buf that were read before: the beginning of an element
	for {
		n, err := io.ReadFull(r, buf[held:])
		sp.window, sp.from = buf[:held+n], sp.tail.Size-int64(held)
		if ferr := sp.feed(buf[held : held+n]); ferr != nil {
			sp.finish()
			if errors.Is(ferr, ErrStop) {
				return sp.tail, nil
			}
			return sp.tail, ferr
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			sp.finish()
			return sp.tail, nil
		}
		if err != nil {
			sp.finish()
			return sp.tail, fmt.Errorf("reading a JSON array at offset %d: %w", sp.tail.Size, err)
		}
		buf, held = sp.hold(buf)
	}
}

type phase uint8

const (
	beforeArray phase = iota
	maybeArray        // a '[' was seen after garbage; it counts only if an object, a bracket or blanks follow
	inArray
	afterArray
	over
)

type splitter struct {
	report func(Element) error
	tail   Tail
	sc     scanner
	phase  phase
	elem   int64 // offset of the element being read, if inside one
	in     bool
	junk   bool // something other than blanks, mark and NULs came before '['

	index  *Index // of the element being read; nil for callers that only want its position
	levels int
	room   int
	window []byte // the part of the stream that is in memory
	from   int64  // offset of the window's first byte
}

// hold moves the beginning of an unfinished element to the start of the buffer, unless it is too long. When it fills
// most of the buffer, the buffer grows: otherwise each read would move the same bytes again.
func (sp *splitter) hold(buf []byte) ([]byte, int) {
	if sp.index == nil || !sp.in || sp.elem < sp.from {
		return buf, 0
	}
	part := sp.window[sp.elem-sp.from:]
	if len(part) > sp.room {
		sp.sc.index = nil // the element may be of any length
		return buf, 0
	}
	if len(part) > len(buf)/2 {
		buf = make([]byte, 2*len(buf))
	}
	return buf, copy(buf, part)
}

// begun records that an element begins at the offset.
func (sp *splitter) begun(at int64) {
	sp.in, sp.elem = true, at
	if sp.index != nil {
		sp.index.begin(sp.sc.depth, sp.levels)
		sp.sc.index = sp.index
	}
}

// indexed returns the index of the element that ends at end, nil when part of it is no longer in memory.
func (sp *splitter) indexed(end int64) *Index {
	if sp.elem < sp.from {
		return nil
	}
	sp.index.src = sp.window[sp.elem-sp.from : end-sp.from : end-sp.from]
	return sp.index
}

// feed processes the next piece of the stream.
func (sp *splitter) feed(p []byte) error {
	base := sp.tail.Size
	sp.tail.Size += int64(len(p))
	i := 0
	for i < len(p) {
		switch sp.phase {
		case beforeArray, maybeArray:
			i += sp.lead(p[i:], base+int64(i))
		case inArray:
			n, err := sp.array(p[i:], base+int64(i))
			if err != nil {
				return err
			}
			i += n
		case afterArray:
			if i = skipSpace(p, i); i < len(p) {
				sp.tail.End, sp.tail.Off = EndAfter, base+int64(i)
				sp.phase = over
			}
		case over:
			return nil
		}
	}
	return nil
}

// lead looks for the bracket that opens the array. A text that begins like an object or a string is no array file and
// lead does not search it: arrays inside it belong to that value.
func (sp *splitter) lead(p []byte, at int64) int {
	t := &sp.tail
	if sp.phase == maybeArray {
		n := skipSpace(p, 0)
		if n == len(p) {
			return n
		}
		if p[n] == '{' || p[n] == ']' {
			sp.phase = inArray
		} else {
			sp.phase = beforeArray
			t.Start = -1
		}
		return n
	}
	c := p[0]
	switch {
	case isSpace(c):
	case c == '[':
		t.Start, t.Last, t.Off = at, at+1, at+1
		t.End = EndTorn
		sp.sc = scanner{}
		sp.sc.push(false)
		sp.sc.st = wantValueOrEnd
		sp.phase = inArray
		if sp.junk {
			sp.phase = maybeArray
		}
	case c == '{' || c == '"':
		if !sp.junk {
			t.End, t.Off = EndNotArray, at
			sp.phase = over
			return 1
		}
		t.Lead++
	case c == 0 || c == 0xEF || c == 0xBB || c == 0xBF:
		t.Lead++
	default:
		t.Lead++
		sp.junk = true
	}
	if sp.junk && sp.phase == beforeArray {
		n := bytes.IndexByte(p[1:], '[')
		if n < 0 {
			n = len(p) - 1
		}
		t.Lead += int64(n)
		return n + 1
	}
	return 1
}

// array continues inside the array and reports each element when it ends.
func (sp *splitter) array(p []byte, at int64) (int, error) {
	t, sc := &sp.tail, &sp.sc
	i := 0
	for i < len(p) {
		if !sp.in {
			if isSpace(p[i]) {
				i++
				continue
			}
			if c := p[i]; sc.st != afterValue && !(c == ']' && sc.st == wantValueOrEnd) {
				sp.begun(at + int64(i))
			} else {
				if !sc.token(c) {
					sp.broken(at + int64(i))
					return i, nil
				}
				i++
				if sc.depth == 0 {
					t.End, t.Off = EndComplete, at+int64(i)
					sp.phase = afterArray
					return i, nil
				}
				continue
			}
		}
		if sc.index != nil {
			sc.index.base = int(at + int64(i) - sp.elem)
		}
		i += sc.feed(p[i:], true)
		if sc.st == broken {
			sp.broken(at + int64(i))
			return i, nil
		}
		if sc.st == afterValue && sc.depth == 1 {
			sp.in = false
			end := at + int64(i)
			t.Elements++
			t.Last = end
			if err := sp.report(Element{sp.elem, end - sp.elem}); err != nil {
				return i, err
			}
		}
	}
	return i, nil
}

func (sp *splitter) broken(at int64) {
	sp.tail.End, sp.tail.Off, sp.tail.InElem = EndBroken, at, sp.in
	sp.phase = over
}

// finish records how the text ended, at the end of the stream.
func (sp *splitter) finish() {
	t := &sp.tail
	switch sp.phase {
	case beforeArray:
		t.Off = t.Size
		if t.End = EndEmpty; sp.junk {
			t.End = EndNotArray
		}
	case maybeArray, inArray:
		t.Off, t.InElem = t.Size, sp.in
	}
}
