package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/testing/pgtest"
)

// Each of these parts runs once and prints its rows. No time is asserted.
func TestParts(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	defer pgtest.StopShared()
	for part, want := range map[string][]string{
		"t": {"overhead per turn, 6 tasks at once", "alone"},
		"e": {"roost version", "roost list", "size of the program", "hello world"},
		"w": {"turn in PostgreSQL, 10 turns", "p99", "files"},
		"x": {"1 kills, 1 of 3 servers", "to the next request", "worst"},
	} {
		t.Run(part, func(t *testing.T) {
			if part == "w" || part == "x" {
				pgtest.Shared(t) // it skips where there is no PostgreSQL
			}
			var out bytes.Buffer
			if err := run(t.Context(), options{dir: t.TempDir(), parts: part, quick: true, out: &out}); err != nil {
				t.Fatalf("got %v\n%s, want no error", err, out.String())
			}
			for _, w := range want {
				if !strings.Contains(out.String(), w) {
					t.Errorf("got a table without %q, want it there:\n%s", w, out.String())
				}
			}
		})
	}
}
