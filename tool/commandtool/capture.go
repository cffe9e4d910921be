package commandtool

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"unicode/utf8"

	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/linetext"
)

// capture keeps head and tail of an output in memory and, once it is longer than
// both together, all of it in a file.
type capture struct {
	dir   string
	limit int // head and tail together
	head  []byte
	tail  []byte // at least as much as is shown of the end
	size  int64
	file  *os.File
	err   error
}

func (c *capture) headLimit() int { return c.limit / 2 }
func (c *capture) tailLimit() int { return c.limit - c.limit/2 }

// Write takes the next bytes. A full disk is an error: an output that cannot be
// kept must not look whole.
func (c *capture) Write(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	if c.file == nil && c.size+int64(len(p)) > int64(c.limit) {
		if c.err = c.spill(); c.err != nil {
			return 0, c.err
		}
	}
	if c.file != nil {
		if _, err := c.file.Write(p); err != nil {
			c.err = fmt.Errorf("keep output in %s: %w", c.file.Name(), err)
			return 0, c.err
		}
	}
	c.size += int64(len(p))
	n := len(p)
	if room := c.headLimit() - len(c.head); room > 0 {
		take := min(room, len(p))
		c.head = append(c.head, p[:take]...)
		p = p[take:]
	}
	c.keepTail(p)
	return n, nil
}

func (c *capture) keepTail(p []byte) {
	c.tail = append(c.tail, p...)
	if len(c.tail) > 4*c.limit {
		c.tail = append(c.tail[:0], c.lastOfTail()...)
	}
}

func (c *capture) lastOfTail() []byte { return c.tail[max(0, len(c.tail)-c.tailLimit()):] }

// spill begins the file with what is in memory, which is everything so far.
func (c *capture) spill() error {
	f, err := os.CreateTemp(c.dir, "output-*.txt") // mode 0600
	if err != nil {
		return fmt.Errorf("keep long output in %s: %w", c.dir, err)
	}
	c.file = f
	if _, err := f.Write(slices.Concat(c.head, c.tail)); err != nil {
		return fmt.Errorf("keep output in %s: %w", f.Name(), err)
	}
	return nil
}

// whole reports whether memory holds everything.
func (c *capture) whole() bool { return c.size <= int64(c.limit) }

// parts returns the kept beginning and end. When bytes between them are missing they are cut back to whole lines,
// where a line end is near, or else to whole characters: half a line may be half a secret, which masking does not
// recognise.
func (c *capture) parts() (head, tail []byte) {
	if c.whole() {
		return slices.Concat(c.head, c.tail), nil
	}
	head, tail = c.head, c.lastOfTail()
	if i := bytes.LastIndexByte(head, '\n'); i >= len(head)/2 {
		head = head[:i+1]
	} else {
		head = linetext.WholeEnd(head)
	}
	if i := bytes.IndexByte(tail, '\n'); i >= 0 && i < len(tail)/2 {
		tail = tail[i+1:]
	} else {
		tail = wholeStart(tail)
	}
	return head, tail
}

func wholeStart(b []byte) []byte {
	for i := 0; i < utf8.UTFMax && i < len(b); i++ {
		if utf8.RuneStart(b[i]) {
			return b[i:]
		}
	}
	return b
}

// close ends the file and hands it over, nil when there is none. With discard
// the file is removed.
func (c *capture) close(discard bool) (*tool.Spool, error) {
	if c.file == nil {
		return nil, nil
	}
	name := c.file.Name()
	err := c.err
	if err == nil {
		err = c.file.Sync() // the result that names it is committed after this
	}
	err = errors.Join(err, c.file.Close())
	if err != nil || discard {
		return nil, errors.Join(err, os.Remove(name))
	}
	return &tool.Spool{Path: name, Size: c.size}, nil
}
