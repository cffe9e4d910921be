package roofmt

import (
	"context"
	"io"
	"os"

	"github.com/roost-dev/roost/esjson"
)

// scan is what one file of messages gave.
type scan struct {
	name     string
	file     *os.File
	print    Fingerprint
	spans    []esjson.Element
	tail     esjson.Tail
	state    State
	unstable bool
	extra    int // elements found behind damage
	overlong overlong
	notes    Noter // of all spans, nil when the caller wants none or not all could be read
	err      error
}

// noteLevels is how deep into a message notes look: its content's blocks, and their members.
const noteLevels = 3

// noteRoom is how long a message may be to be noted while its file is split; longer ones are read again.
const noteRoom = 1 << 20

// note shows an element to the one who takes notes. x is nil when its bytes are not at hand.
func (s *scan) note(e esjson.Element, x *esjson.Index) {
	if s.notes == nil {
		return
	}
	if x != nil {
		s.notes.Note(x)
		return
	}
	valid := false
	err := lookAt(s.file, e, func(raw []byte) {
		x := new(esjson.Index)
		if valid = x.Read(raw, noteLevels); valid {
			s.notes.Note(x)
		}
	})
	if err != nil || !valid {
		s.notes = nil // it is being changed
	}
}

// ContextReader ends a long read when its context does.
func ContextReader(ctx context.Context, r io.Reader) io.Reader { return contextReader{ctx, r} }

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// take adds a message that was found; false when it is too long to be looked at, or has too
// many parts.
func (s *scan) take(e esjson.Element) bool {
	if e.Len > messageRoom {
		s.overlong.count++
		s.overlong.longest = max(s.overlong.longest, e.Len)
		return false
	}
	if crowded(s.file, e) {
		s.overlong.crowded++
		return false
	}
	s.spans = append(s.spans, e)
	return true
}
