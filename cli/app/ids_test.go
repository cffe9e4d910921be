package app

import (
	"testing"

	"github.com/roost-dev/roost/api"
)

func TestShortID(t *testing.T) {
	t.Parallel()
	var names []api.Name
	for _, id := range []string{"01a21882-9fdb-132ce3", "01a21882-9fdc-132ce3", "132ce3ff-other", "short", "a-fa7939-fa7939", "Aufgabe-xößüe"} {
		names = append(names, api.Name{ID: id}, api.Name{ID: id, Source: "copy"})
	}
	for id, want := range map[string]string{
		"01a21882-9fdb-132ce3": "b-132ce3", "01a21882-9fdc-132ce3": "c-132ce3", "132ce3ff-other": "f-other", "short": "short",
		"a-fa7939-fa7939": "fa7939", "0198-new-77aa00": "77aa00", "Aufgabe-xößüe": "ößüe",
	} {
		if got := shortID(names, id); got != want {
			t.Errorf("%s: got %s, want %s", id, got, want)
		}
	}
}
