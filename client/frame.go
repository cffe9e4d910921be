package client

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
)

// frame is the text between two blank lines of an event stream.
type frame struct {
	id    string
	hasID bool
	typ   string
	data  []byte
	event bool          // it has data; without data it is not an event, but its id counts
	retry time.Duration // 0 = not given
}

// frameBytes bounds one event: a server that never ends one must not fill the memory.
const frameBytes = 128 << 20

var errFrame = errors.New("an event has too many bytes")

// readFrame reads up to the next blank line, as the EventSource specification requires. A frame that is cut off
// before its blank line is not an event.
func readFrame(in *bufio.Reader) (f frame, err error) {
	size := 0
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if size += len(part); size > frameBytes {
			return frame{}, errFrame
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			if errors.Is(err, io.EOF) && size > 0 {
				err = io.ErrUnexpectedEOF
			}
			return frame{}, err
		}
		text := bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if len(text) == 0 {
			if f.event {
				f.data = bytes.TrimSuffix(f.data, []byte("\n"))
			}
			return f, nil
		}
		f.take(text)
		line = line[:0]
	}
}

func (f *frame) take(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			f.id, f.hasID = string(value), true
		}
	case "event":
		f.typ = string(value)
	case "data":
		f.data, f.event = append(append(f.data, value...), '\n'), true
	case "retry":
		if n, err := strconv.Atoi(string(value)); err == nil && n >= 0 && strings.Trim(string(value), "0123456789") == "" {
			f.retry = time.Duration(min(n, 60_000)) * time.Millisecond
		}
	}
}
