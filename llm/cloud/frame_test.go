package cloud

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/llmtest"
	"github.com/roost-dev/roost/llm/wire"
)

// read gives the events of a stream, and how it ends.
func read(stream []byte) (events []string, err error) {
	f := &frames{from: bytes.NewReader(stream)}
	for {
		e, err := f.Next()
		if err != nil {
			return events, err
		}
		events = append(events, string(e))
	}
}

func TestFrames(t *testing.T) {
	chunk := llmtest.Frame(`{"bytes":"eyJhIjoxfQ=="}`, ":event-type", "chunk", ":message-type", "event")
	flip := func(i int) []byte { b := bytes.Clone(chunk); b[i] ^= 1; return b }
	unreadable := append(prelude(19, 3)[:12], 200, 0, 0)
	unreadable = binary.BigEndian.AppendUint32(unreadable, crc32.ChecksumIEEE(unreadable))
	for name, c := range map[string]struct {
		stream []byte
		want   string
		end    error
	}{
		"one":                           {chunk, `{"a":1}`, io.EOF},
		"none":                          {nil, "", io.EOF},
		"one without its end":           {chunk[:len(chunk)-1], "", io.ErrUnexpectedEOF},
		"one without its prelude's end": {chunk[:7], "", io.ErrUnexpectedEOF},
		"nothing but a prelude":         {chunk[:12], "", io.ErrUnexpectedEOF},
		"a flipped bit of the length":   {flip(3), "", wire.ErrDamaged},
		"a flipped bit of a header":     {flip(14), "", wire.ErrDamaged},
		"a flipped bit of the payload":  {flip(len(chunk) - 10), "", wire.ErrDamaged},
		"a flipped bit of the checksum": {flip(len(chunk) - 1), "", wire.ErrDamaged},
		"no base64":                     {llmtest.Frame(`{"bytes":"%"}`, ":message-type", "event"), "", wire.ErrDamaged},
		"a frame of another kind":       {append(llmtest.Frame(`{}`, ":event-type", "novel"), chunk...), `{"a":1}`, io.EOF},
		"an exception":                  {llmtest.Frame(`{"message":"m"}`, ":message-type", "exception", ":exception-type", "x"), `{"type":"error","error":{"type":"x","message":"m"}}`, io.EOF},
		"an error":                      {llmtest.Frame("", ":message-type", "error", ":error-code", "x", ":error-message", "m"), `{"type":"error","error":{"type":"x","message":"m"}}`, io.EOF},
		"headers that cannot be read":   {unreadable, "", wire.ErrDamaged},
		"headers beyond the frame":      {prelude(20, 5), "", wire.ErrDamaged},
		"a frame that is too large":     {prelude(maxFrame+1, 0), "", wire.ErrTooLarge},
		"a frame without room":          {prelude(15, 0), "", wire.ErrDamaged},
	} {
		got, err := read(c.stream)
		joined := ""
		for _, e := range got {
			joined += e
		}
		if joined != c.want || !errors.Is(err, c.end) {
			t.Errorf("%s: got %q and %v, want %q and %v", name, joined, err, c.want, c.end)
		}
	}
}

// prelude is the beginning of a frame of that size with headers of that size, and some bytes after it.
func prelude(size, headers uint32) []byte {
	b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, size), headers)
	return append(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)), make([]byte, 32)...)
}

// An error of the connection is the connection's own, at the beginning of a frame and in it.
func TestFramesEndWithTheReadersError(t *testing.T) {
	broken := errors.New("broken")
	for _, n := range []int{0, 5, 12, 20} {
		f := &frames{from: io.MultiReader(bytes.NewReader(llmtest.Frame(`{"bytes":""}`)[:n]), iotest.ErrReader(broken))}
		if _, err := f.Next(); !errors.Is(err, broken) {
			t.Errorf("after %d bytes: got %v, want %v", n, err, broken)
		}
	}
}

// Headers of every kind are passed over; those that are texts are read.
func TestHeaders(t *testing.T) {
	all := "\x01a\x00" + "\x01b\x01" + "\x01c\x02x" + "\x01d\x03xx" + "\x01e\x04xxxx" + "\x01f\x05xxxxxxxx" + "\x01g\x06\x00\x02xx" +
		"\x01h\x07\x00\x03abc" + "\x01i\x08xxxxxxxx" + "\x01j\x09xxxxxxxxxxxxxxxx" + "\x00\x07\x00\x00"
	got, ok := readHeaders([]byte(all))
	if d := cmp.Diff(map[string]string{"h": "abc", "": ""}, got); !ok || d != "" {
		t.Errorf("%v %s", ok, d)
	}
	for _, part := range []string{"\x01", "\x01a", "\x05ab", "\x01a\x02", "\x01a\x07\x00", "\x01a\x07\x00\x02x", "\x01a\x0a", "\x01a\x07\xff\xff"} {
		if got, ok := readHeaders([]byte(part)); ok {
			t.Errorf("%q is read as %q", part, got)
		}
	}
}

// Hostile bytes: no panic, no endless loop.
func FuzzFrames(f *testing.F) {
	f.Add(llmtest.Frame(`{"bytes":"eyJhIjoxfQ=="}`, ":event-type", "chunk"))
	f.Add(llmtest.Frame("", "a", ""))
	f.Fuzz(func(t *testing.T, in []byte) {
		if events, err := read(in); err == nil || len(events) > len(in)/16 {
			t.Fatalf("%d bytes gave %d events and %v", len(in), len(events), err)
		}
		// The headers alone, without the checksums that keep most inputs from them.
		readHeaders(in)
	})
}
