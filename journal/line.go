package journal

import (
	"bytes"
	"context"
	"iter"
)

// Line is a commit as the log holds it: its checksum is correct, and its JSON was not parsed.
type Line struct {
	Seq  uint64 // in the log that was read; the text of a log's shared part may hold another number
	Text []byte // without newline; valid until the next line is read
}

// LineReader is a Reader that also yields its commits as lines, for a caller that knows the positions of messages in
// them from an earlier reading: nothing is parsed and nothing copied.
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

// Tight returns what is between the brackets of the line's events: each event and a comma between them, as
// AppendCommit writes it. ok is false when other members than those that AppendCommit writes precede the events, or
// when any follow. White space between events is not looked for: its bytes are more than the events' own.
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
