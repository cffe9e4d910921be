package roofmt

import (
	"bytes"
	"io"

	"github.com/roost-dev/roost/esjson"
)

// crowdRoom is how many parts a message may have in its first three levels (members, content
// blocks, their members). To look at one takes some fifty bytes for each part, which for a
// message of nothing but {"a":1,"a":1,...} is ten times its length. No program writes a
// hundredth of that many.
const crowdRoom = 512 << 10

// crowdedLong is as crowdRoom, of a message of more than longFrom bytes: what it is itself is in
// memory beside its parts.
const (
	crowdedLong = crowdRoom / 8
	longFrom    = 8 << 20
)

// crowdFrom is from which length on, in bytes, the parts of a message are counted before it is
// looked at: in a shorter one there is no room for too many that matter.
const crowdFrom = noteRoom

// crowded reports whether an element that is valid JSON has more parts than a message may have. It is false for an
// element that cannot be read: reading it gives the reason.
func crowded(file io.ReaderAt, e esjson.Element) bool {
	if e.Len <= crowdFrom {
		return false
	}
	room := crowdRoom
	if e.Len > longFrom {
		room = crowdedLong
	}
	var c crowd
	buf := make([]byte, 64<<10)
	for r := io.NewSectionReader(file, e.Off, e.Len); c.parts <= room; {
		n, err := r.Read(buf)
		c.feed(buf[:n])
		if err != nil {
			break
		}
	}
	return c.parts > room
}

// crowd counts the parts of one value, piece by piece: each bracket and comma in its upper
// levels begins one. The text is known to be valid, so nothing else need be looked at, and in
// a string only its end.
type crowd struct {
	parts, depth    int
	inside, escaped bool // of a string; behind a backslash in it
}

func (c *crowd) feed(p []byte) {
	for len(p) > 0 {
		if c.inside {
			p = c.text(p)
			continue
		}
		switch p[0] {
		case '"':
			c.inside = true
		case '{', '[':
			if c.depth++; c.depth <= noteLevels {
				c.parts++
			}
		case '}', ']':
			c.depth--
		case ',':
			if c.depth <= noteLevels {
				c.parts++
			}
		}
		p = p[1:]
	}
}

// text skips to the end of the string, or of the piece.
func (c *crowd) text(p []byte) []byte {
	if c.escaped {
		c.escaped = false
		return p[1:]
	}
	switch i := bytes.IndexByte(p, '"'); {
	case i == 0:
		c.inside = false
		return p[1:]
	case i > 0:
		end := i // an odd number of backslashes before it escapes it
		for end > 0 && p[end-1] == '\\' {
			end--
		}
		c.escaped = (i-end)%2 == 1
		return p[i:]
	}
	end := len(p)
	for end > 0 && p[end-1] == '\\' {
		end--
	}
	c.escaped = (len(p)-end)%2 == 1
	return nil
}
