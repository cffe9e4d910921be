package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/roost-dev/roost/redact"
)

// maxMessage is the longest message that a server may send.
const maxMessage = 16 << 20

var errLong = fmt.Errorf("it sent a message of more than %d MB", maxMessage>>20)

// jsonLines reads the lines of a server's stdout that are JSON. Many servers print a
// greeting or a log there, which must not end the connection; errors quote the other
// lines.
type jsonLines struct {
	r    *bufio.Reader
	from io.Closer
	rest []byte
	junk *tail
	over *atomic.Bool // set when the output has ended
}

func newLines(from io.ReadCloser, junk *tail, over *atomic.Bool) *jsonLines {
	return &jsonLines{r: bufio.NewReaderSize(from, 64<<10), from: from, junk: junk, over: over}
}

func (l *jsonLines) Close() error { return l.from.Close() }

func (l *jsonLines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		line, err := l.line()
		if len(line) > 0 && err == nil {
			l.rest = line
			break
		}
		if err != nil {
			l.over.Store(!errors.Is(err, errLong))
			return 0, err
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// line is the next line if it is JSON, with its end; nil for another one.
func (l *jsonLines) line() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxMessage:
			return nil, errLong
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && len(bytes.TrimSpace(line)) == 0:
			return nil, err
		case err != nil: // a last line without a line feed
			line = append(line, '\n')
		}
		text := bytes.TrimSpace(line)
		if len(text) > 0 && (text[0] == '{' || text[0] == '[') && json.Valid(text) {
			return append(text, '\n'), nil
		}
		if len(text) > 0 {
			_, _ = l.junk.Write(line)
		}
		return nil, nil
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	data []byte
}

const (
	tailBytes = 4 << 10
	tailLines = 5
)

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(p); n > tailBytes {
		t.data = append(t.data[:0], p[n-tailBytes:]...)
		return n, nil
	}
	t.data = append(t.data, p...)
	if over := len(t.data) - tailBytes; over > 0 {
		t.data = append(t.data[:0], t.data[over:]...)
	}
	return len(p), nil
}

// lastLines are the last lines, safe for a terminal; "" when there are none.
func (t *tail) lastLines() string {
	t.mu.Lock()
	text := string(t.data)
	t.mu.Unlock()
	var keep []string
	for line := range strings.Lines(strings.ToValidUTF8(text, "\uFFFD")) {
		if line = strings.TrimSpace(redact.Terminal(line)); line != "" {
			keep = append(keep, cut(line, 300))
		}
	}
	if len(keep) > tailLines {
		keep = keep[len(keep)-tailLines:]
	}
	return strings.Join(keep, "\n")
}

// cut shortens a text to so many bytes, at a character.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	most -= len("…")
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
