package wire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// A reader whose buffer was given back leaves nothing in the next one.
func TestFreedEventsLeaveNothing(t *testing.T) {
	for i := range 3 {
		e := NewEvents(strings.NewReader("data: one\n\ndata: rest that nobody reads " + strings.Repeat("x", 100*i)))
		if ev, err := e.Next(); err != nil || !bytes.Equal(ev.Data, []byte("one")) {
			t.Fatal(ev, err)
		}
		e.Free()
		e = NewEvents(strings.NewReader("data: two\n\n"))
		if ev, err := e.Next(); err != nil || string(ev.Data) != "two" {
			t.Fatal(ev, err)
		}
		if _, err := e.Next(); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		e.Free()
	}
}
