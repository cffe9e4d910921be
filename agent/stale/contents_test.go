package stale

import (
	"bytes"
	"fmt"
	"testing"
)

// Contents are given back as they were, each once and up to a bound.
func TestContents(t *testing.T) {
	var kept contents
	for i := range 300 {
		kept.keep(fmt.Sprint(i), bytes.Repeat([]byte{byte(i)}, i%7))
		kept.keep(fmt.Sprint(i), []byte("not the same again"))
	}
	kept.keep("", []byte("nameless"))
	kept.keep("nothing", nil)
	for i := range 300 {
		if got, want := kept.data[fmt.Sprint(i)], bytes.Repeat([]byte{byte(i)}, i%7); got == nil || !bytes.Equal(got, want) {
			t.Fatalf("content %d is %q, want %q", i, got, want)
		}
	}
	if n := len(kept.data); n != 300 {
		t.Errorf("got %d contents, want 300", n)
	}
	for i := range 2 * contentsLimit / contentLimit {
		kept.keep(fmt.Sprint("large", i), make([]byte, contentLimit))
	}
	if kept.size > contentsLimit {
		t.Errorf("got %d bytes, want %d at most", kept.size, contentsLimit)
	}
}
