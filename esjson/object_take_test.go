package esjson

import (
	"strings"
	"testing"
)

// Take gives what Bytes gives, and leaves an empty builder whose next object does not
// write into the one that was taken.
func TestTakeIsBytesWithoutACopy(t *testing.T) {
	for _, room := range []int{0, 3, 1 << 12} {
		for _, text := range []string{"", "a", "\u2028\"\n", strings.Repeat("é\t", 700)} {
			var o, same Object
			o.Grow(room)
			for _, b := range []*Object{&o, &same} {
				b.String("text", text)
				b.Int("n", -7)
			}
			want := string(same.Bytes())
			got := o.Take()
			if string(got) != want {
				t.Errorf("room %d: %.80s, want %.80s", room, got, want)
			}
			o.String("other", text)
			if string(got) != want || string(o.Take()) == want {
				t.Errorf("room %d: the next object changed the one before", room)
			}
		}
	}
	var empty Object
	if got := string(empty.Take()); got != "{}" {
		t.Errorf("an empty object is %s", got)
	}
}
