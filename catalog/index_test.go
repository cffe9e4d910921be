package catalog

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWordsWith(t *testing.T) {
	lists := Vocabulary{{1, []byte("\nab\nabc\nbc\n")}, {2, []byte("\nx\nxab\n")}}
	for _, c := range []struct {
		stretch string
		want    []string
	}{
		{"ab", []string{"ab", "abc", "xab"}}, {"\nab", []string{"ab", "abc"}}, {"ab\n", []string{"ab", "xab"}}, {"\nab\n", []string{"ab"}},
		{"\nx\n", []string{"x"}}, {"c", []string{"abc", "bc"}}, {"nowhere", nil}, {"b", []string{"ab", "abc", "bc", "xab"}}, {"\nxab\n", []string{"xab"}},
	} {
		got, ok := lists.with(c.stretch)
		if diff := cmp.Diff(c.want, got); diff != "" || !ok {
			t.Errorf("%q: -want +got\n%s", c.stretch, diff)
		}
	}
	if got, ok := Vocabulary(nil).with("a"); len(got) > 0 || !ok {
		t.Errorf("of no words: got %q, %v", got, ok)
	}
	if _, ok := (Vocabulary{{1, append(bytes.Repeat([]byte("\na"), manyWords+2), '\n')}}).with("a"); ok {
		t.Error("a letter that is in every word narrows nothing, and was followed")
	}
}
