package editing

import (
	"slices"
	"strings"
	"testing"
)

// -TAG takes a tag away; what is a flag everywhere else stays one.
func TestRemovals(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"id +a -b":              "id +a --remove=b",
		"-b id":                 "--remove=b id",
		"id -q -v -h -qv":       "id -q -v -h -qv",
		"id -quick":             "id --remove=quick",
		"id --json -json":       "id --json --remove=json",
		"id - --":               "id - --",
		"id -a -- -a --json":    "id --remove=a -- -a --json",
		"id --remove q -ä":      "id --remove q --remove=ä",
		"":                      "",
		"--root /r id -a --b=c": "--root /r id --remove=a --b=c",
	} {
		if got := removals(strings.Fields(given)); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}
