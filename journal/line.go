package journal

import (
	"bytes"
	"context"
	"iter"
)

// Line is a commit as it stands in the log: its checksum holds, and its JSON was not
// looked at.
type Line struct {
	Seq  uint64 // in the log that was asked, which the text of a log's shared part need not say
	Text []byte // without newline; good until the next one is asked for
}

// LineReader is a Reader that also gives its commits as lines, for who knows from an
// earlier reading what stands where in them: nothing is taken apart and nothing copied.
type LineReader interface {
	// Lines yields what Read does, as lines. A line that Read would find damaged only
	// when it takes it apart is yielded here.
	Lines(ctx context.Context, from uint64) iter.Seq2[Line, error]
}

// Events takes the line apart.
func (l Line) Events() ([]Event, error) {
	c, err := DecodeChecked(l.Text)
	return c.Events, err
}

// Tight is what stands between the brackets of the line's events: each event and a comma
// between them, as AppendCommit writes it. ok is false when something else stands in front
// of the events than the members it writes, or something behind them. White space between
// events is not looked for: its bytes are more than the events' own.
func (l Line) Tight() (events []byte, ok bool) {
	n := len(l.Text) - trailerLen
	if n <= 0 || l.Text[n-1] != ']' {
		return nil, false
	}
	body := l.Text[:n-1]
	_, _, i, ok := placeOf(body)
	for ok && i < len(body) && body[i] == ',' {
		key := body[i+1:]
		if bytes.HasPrefix(key, []byte(`"events":[`)) {
			return key[len(`"events":[`):], true
		}
		end := skipString(body, i+1)
		if end < 0 || end >= len(body) || body[i+1] != '"' || body[end] != ':' {
			break
		}
		if i = skipValue(body, end+1, 0); i < 0 {
			break
		}
	}
	return nil, false
}
