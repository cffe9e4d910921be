package events

import (
	"math"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/store/feed"
	"github.com/roost-dev/roost/task"
)

// Cursor is a place in a stream: behind event Index of commit Seq of a task. In the stream of all tasks, Line is the
// line of the activity log that announced the commit. The zero Cursor is the start. Epoch does not count in the order,
// because Seq grows through all epochs.
type Cursor struct {
	Line feed.Place
	task.Position
}

// wholeCommit is the Index of a cursor behind all events of its commit.
const wholeCommit = math.MaxInt

func at(epoch, seq uint64, index int) Cursor {
	return Cursor{Position: task.Position{Epoch: epoch, Seq: seq, Index: index}}
}

// AfterCommit is the cursor behind all events of a commit of a task.
func AfterCommit(seq uint64) Cursor {
	if seq == 0 {
		return Cursor{}
	}
	return at(0, seq, wholeCommit)
}

// afterLine is the cursor behind all events that a line of the activity log announced.
func afterLine(p feed.Place) Cursor {
	if p == (feed.Place{}) {
		return Cursor{}
	}
	c := at(0, math.MaxUint64, wholeCommit)
	c.Line = p
	return c
}

// cursorOf is the cursor behind an event in the stream of its task.
func cursorOf(e Event) Cursor {
	c, _ := ParseCursor(e.ID)
	return c
}

// IsStart reports whether nothing is before the cursor.
func (c Cursor) IsStart() bool { return c == Cursor{} }

// IsWhole reports whether the cursor is behind all events of its commit.
func (c Cursor) IsWhole() bool { return c.Seq == 0 || c.Index == wholeCommit }

// Before reports whether c comes before d in the same stream.
func (c Cursor) Before(d Cursor) bool {
	switch {
	case c.Line.Segment != d.Line.Segment:
		return c.Line.Segment < d.Line.Segment
	case c.Line.Offset != d.Line.Offset:
		return c.Line.Offset < d.Line.Offset
	case c.Seq != d.Seq:
		return c.Seq < d.Seq
	}
	return c.Index < d.Index
}

// same reports whether neither of two cursors comes before the other.
func (c Cursor) same(d Cursor) bool { return !c.Before(d) && !d.Before(c) }

// String is the id that clients send: "1.7-0" for a task, five parts for all tasks, "0" for the start and "7" for the
// place behind commit 7.
func (c Cursor) String() string {
	switch {
	case c.IsStart():
		return "0"
	case c.Line != feed.Place{}:
		b := append([]byte(c.Line.Feed), '.')
		b = append(strconv.AppendUint(b, c.Line.Segment, 10), '.')
		b = append(strconv.AppendInt(b, c.Line.Offset, 10), '.')
		b = append(strconv.AppendUint(b, uint64(c.Line.Sum), 16), '.')
		if c.Seq == math.MaxUint64 {
			return string(append(b, "0-0"...))
		}
		b = append(strconv.AppendUint(b, c.Seq, 10), '-')
		return string(strconv.AppendInt(b, int64(c.Index), 10))
	case c.Index == wholeCommit:
		return strconv.FormatUint(c.Seq, 10)
	}
	b := append(strconv.AppendUint(nil, c.Epoch, 10), '.')
	b = append(strconv.AppendUint(b, c.Seq, 10), '-')
	return string(strconv.AppendInt(b, int64(c.Index), 10))
}

// ParseCursor reads the id of an event of a task, "0", or the number of a commit. It accepts an id only as String
// prints it, so that one place has one id.
func ParseCursor(text string) (c Cursor, ok bool) {
	if n, ok := parseNumber(text); ok {
		return AfterCommit(n), true
	}
	epoch, rest, ok1 := strings.Cut(text, ".")
	seq, index, ok2 := strings.Cut(rest, "-")
	e, ok3 := parseNumber(epoch)
	s, ok4 := parseNumber(seq)
	i, ok5 := parseNumber(index)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || s == 0 || i > 1<<30 {
		return Cursor{}, false
	}
	return at(e, s, int(i)), true
}

// ParseAllCursor reads the id of an event of the stream of all tasks, or "0" for the oldest event that is kept.
func ParseAllCursor(text string) (c Cursor, ok bool) {
	if text == "0" {
		return Cursor{}, true
	}
	parts := strings.Split(text, ".")
	if len(parts) != 5 || len(text) > 200 {
		return Cursor{}, false
	}
	segment, ok1 := parseNumber(parts[1])
	offset, ok2 := parseNumber(parts[2])
	sum, err := strconv.ParseUint(parts[3], 16, 32)
	seq, index, ok3 := strings.Cut(parts[4], "-")
	n, ok4 := parseNumber(seq)
	i, ok5 := parseNumber(index)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || err != nil || i >= 1<<30 || segment == 0 {
		return Cursor{}, false
	}
	c.Line = feed.Place{Feed: parts[0], Segment: segment, Offset: int64(offset), Sum: uint32(sum)} //nolint:gosec // at most 63 bits
	if c.Seq, c.Index = n, int(i); n == 0 {
		c = afterLine(c.Line)
	}
	return c, c.String() == text
}

// parseNumber reads a number as it is printed: digits without a sign or leading zeros.
func parseNumber(text string) (uint64, bool) {
	n, err := strconv.ParseUint(text, 10, 63)
	return n, err == nil && strconv.FormatUint(n, 10) == text
}
