package codec

import (
	"math"
	"testing"
)

// A number that is cut off is bad, and so is one that is too large for an index.
func TestNumbersThatAreBad(t *testing.T) {
	for name, read := range map[string]func(*Reader){
		"Uint": func(u *Reader) { u.Uint() },
		"Int":  func(u *Reader) { u.Int() },
	} {
		for _, in := range []string{"", "\x80"} {
			u := Reader{In: []byte(in)}
			if read(&u); !u.Bad {
				t.Errorf("%s of %q: got a number, want bad input", name, in)
			}
		}
	}
	w := NewWriter(nil)
	w.Uint(math.MaxInt32 + 1)
	u := Reader{In: w.Out}
	if got := u.Small(); got != 0 || !u.Bad {
		t.Errorf("2^31 as a small number: got %d, bad %t, want 0 and bad input", got, u.Bad)
	}
}
