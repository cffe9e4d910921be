package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// ErrTooLarge is returned for an event over the reader's limit. Such a stream is
// broken or hostile; a model's largest honest event is a few megabytes.
var ErrTooLarge = errors.New("event is too large")

// MaxEvent is the largest event that Events accepts, in bytes.
const MaxEvent = 64 << 20

// Event is one server-sent event.
type Event struct {
	Type string // "" when the stream named none
	Data []byte // data lines joined by a line feed; valid until the next call
}

// Events reads server-sent events. Lines end in LF or CRLF; a lone CR does not
// end a line (the standard would allow it, no provider sends it, and supporting it
// would delay a line that ends exactly where a packet ends).
type Events struct {
	r    *bufio.Reader
	data []byte
	line []byte
	max  int
	bom  bool
}

// NewEvents reads from r.
func NewEvents(r io.Reader) *Events {
	return &Events{r: bufio.NewReaderSize(r, 8<<10), max: MaxEvent}
}

// Next returns the next event that has data. At the end of the stream it returns
// io.EOF. An event without its closing empty line is still returned when its last
// line is complete, because some proxies drop the last byte. Other errors are the
// reader's own.
func (e *Events) Next() (Event, error) {
	var typ string
	e.data = e.data[:0]
	any := false
	for {
		line, err := e.readLine()
		if err != nil {
			if errors.Is(err, io.EOF) && any {
				return Event{Type: typ, Data: e.data}, nil
			}
			return Event{}, err
		}
		if len(line) == 0 {
			if any {
				return Event{Type: typ, Data: e.data}, nil
			}
			typ = ""
			continue
		}
		name, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(name) {
		case "event":
			typ = string(value)
		case "data":
			if any {
				e.data = append(e.data, '\n')
			}
			e.data = append(e.data, value...)
			any = true
			if len(e.data) > e.max {
				return Event{}, fmt.Errorf("read event: %w (over %d bytes)", ErrTooLarge, e.max)
			}
		}
	}
}

// readLine returns a line without its end. An unfinished last line is dropped: it
// was cut.
func (e *Events) readLine() ([]byte, error) {
	e.line = e.line[:0]
	for {
		part, err := e.r.ReadSlice('\n')
		if err == nil && len(e.line) == 0 {
			return e.trimLine(part), nil // the usual case: no copy
		}
		e.line = append(e.line, part...)
		switch {
		case err == nil:
			return e.trimLine(e.line), nil
		case errors.Is(err, bufio.ErrBufferFull):
			if len(e.line) > e.max {
				return nil, fmt.Errorf("read event: %w (over %d bytes)", ErrTooLarge, e.max)
			}
		default:
			return nil, err
		}
	}
}

func (e *Events) trimLine(line []byte) []byte {
	line = line[:len(line)-1]
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	if !e.bom {
		e.bom = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return line
}
