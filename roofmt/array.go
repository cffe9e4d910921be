package roofmt

import (
	"fmt"
	"io"
	"iter"

	"github.com/roost-dev/roost/esjson"
)

// Element is a message to be written.
type Element struct {
	Raw []byte
	// Made means that we made or changed the element: it then gets Roo's spelling. Otherwise only the blanks between
	// its tokens go, and every string and number keeps its spelling.
	Made bool
}

// WriteArray writes a list the way Roo does: [a,b,c], compact, without a newline at the end. It holds one element at a
// time, and writes it with one call: a file wants a buffer before it. The error names the element, and wraps
// esjson.ErrSyntax for one that is not JSON, or is seq's own.
func WriteArray(w io.Writer, seq iter.Seq2[Element, error]) error {
	buf := []byte{'['}
	n := 0
	for e, err := range seq {
		if err != nil {
			return fmt.Errorf("writing message %d: %w", n, err)
		}
		encode := esjson.Compact
		if e.Made {
			encode = esjson.Stringify
		}
		if buf, err = encode(buf, e.Raw); err != nil {
			return fmt.Errorf("writing message %d: %w", n, err)
		}
		if _, err := w.Write(buf); err != nil {
			return fmt.Errorf("writing message %d: %w", n, err)
		}
		buf = append(buf[:0], ',')
		n++
	}
	if n > 0 {
		buf = buf[:0]
	}
	if _, err := w.Write(append(buf, ']')); err != nil {
		return fmt.Errorf("writing a list of %d messages: %w", n, err)
	}
	return nil
}
