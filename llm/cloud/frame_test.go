package cloud

import (
	"bytes"
	"errors"
	"io"
	"testing"

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
		events = append(events, string(e.Data))
	}
}

func TestFrames(t *testing.T) {
	chunk := llmtest.Frame(`{"bytes":"eyJhIjoxfQ=="}`, ":event-type", "chunk", ":message-type", "event")
	flip := func(i int) []byte { b := bytes.Clone(chunk); b[i] ^= 1; return b }
	for name, c := range map[string]struct {
		stream []byte
		want   string
		end    error
	}{
		"one":                            {chunk, `{"a":1}`, io.EOF},
		"none":                           {nil, "", io.EOF},
		"one without its end":            {chunk[:len(chunk)-1], "", io.ErrUnexpectedEOF},
		"one without its prelude's end":  {chunk[:7], "", io.ErrUnexpectedEOF},
		"nothing but a prelude":          {chunk[:12], "", io.ErrUnexpectedEOF},
		"a flipped bit of the length":    {flip(3), "", wire.ErrDamaged},
		"a flipped bit of a header":      {flip(14), "", wire.ErrDamaged},
		"a flipped bit of the payload":   {flip(len(chunk) - 10), "", wire.ErrDamaged},
		"a flipped bit of the checksum":  {flip(len(chunk) - 1), "", wire.ErrDamaged},
		"no base64":                      {llmtest.Frame(`{"bytes":"%"}`, ":message-type", "event"), "", wire.ErrDamaged},
		"a frame of another kind":        {append(llmtest.Frame(`{}`, ":event-type", "novel"), chunk...), `{"a":1}`, io.EOF},
		"an exception":                   {llmtest.Frame(`{"message":"m"}`, ":message-type", "exception", ":exception-type", "x"), `{"type":"error","error":{"type":"x","message":"m"}}`, io.EOF},
		"an error":                       {llmtest.Frame("", ":message-type", "error", ":error-code", "x", ":error-message", "m"), `{"type":"error","error":{"type":"x","message":"m"}}`, io.EOF},
		"headers that end in the middle": {llmtest.Frame("", "\x03a", "x"), "", io.EOF},
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
