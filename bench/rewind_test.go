package main

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/store"
)

// The long task has as many messages as it says, on both sides, and the rows measure it.
func TestRewindRows(t *testing.T) {
	s, err := store.Open(store.Options{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := makeLong(t.Context(), s, 250)
	if err != nil {
		t.Fatal(err)
	}
	m := moves{ctx: t.Context(), store: s, ref: ref, took: map[string]times{}}
	for range 2 {
		if err := m.round("#60"); err != nil {
			t.Fatal(err)
		}
	}
	v, err := s.Read(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if len(v.State.UI()) != 125 || len(v.State.API()) != 125 {
		t.Errorf("after taking back it has %d and %d messages", len(v.State.UI()), len(v.State.API()))
	}
	for _, what := range []string{"read", "rewind", "undo", "fork", "open", "effective history"} {
		if len(m.took[what]) != 2 {
			t.Errorf("%s was measured %d times", what, len(m.took[what]))
		}
	}
	rows, err := rewinds(t.Context(), options{dir: t.TempDir(), quick: true})
	if err != nil || len(rows) != 5 || !strings.Contains(rows[0].what, "2000 messages") || rows[4].bar != "< 20 ms" {
		t.Errorf(`got %v, %+v, want no error and len(rows) = 5 and strings.Contains(rows[0].what, "2000 messages") and rows[4].bar = "< 20 ms"`,
			err, rows)
	}
}
