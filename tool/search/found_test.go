package search

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFoundPlacesInWords(t *testing.T) {
	lines := func(numbers ...int) (out []foundLine) {
		for _, n := range numbers {
			out = append(out, foundLine{n, fmt.Sprintf("line %d\n", n)})
		}
		return out
	}
	for _, tt := range []struct {
		name  string
		files []foundFile
		total int
		want  string
	}{
		{"nothing", nil, 0, "Found 0 results."},
		{"one", []foundFile{{"a", lines(1, 2)}}, 1, "Found 1 result.\n\n# a\n  1 | line 1\n  2 | line 2\n----"},
		{"two places of a file", []foundFile{{"a", lines(1, 2, 9)}}, 2, "Found 2 results.\n\n# a\n  1 | line 1\n  2 | line 2\n----\n  9 | line 9\n----"},
		{"two files", []foundFile{{"a", lines(1)}, {"b", lines(1000)}}, 2, "Found 2 results.\n\n# a\n  1 | line 1\n----\n\n# b\n1000 | line 1000\n----"},
		{"a name of two lines", []foundFile{{"a\n# b", lines(1)}}, 1, "Found 1 result.\n\n# \"a\\n# b\"\n  1 | line 1\n----"},
		{"bytes that are no text", []foundFile{{"a", []foundLine{{1, "\xff\xed\xa0\x80x\r\n"}}}}, 1, "Found 1 result.\n\n# a\n  1 | \ufffdx\n----"},
	} {
		if got := formatFound(tt.files, tt.total); got != tt.want {
			t.Errorf("%s: %s", tt.name, cmp.Diff(tt.want, got))
		}
	}
	var many []foundFile
	for i := range maxResults + 5 {
		many = append(many, foundFile{fmt.Sprint("f", i), lines(1)})
	}
	if got := formatFound(many, maxResults+5); !strings.HasPrefix(got, "Showing first 300 of 300+ results.") || strings.Count(got, "\n# ") != maxResults {
		t.Errorf("%.100q", got)
	}
}
