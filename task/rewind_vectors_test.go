package task_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/conformance"
	"github.com/roost-dev/roost/task"
)

// fromRoo is a task that another program's two files hold.
func fromRoo(t testing.TB, ui, api [][]byte) *story {
	t.Helper()
	text := func(list [][]byte) (out []string) {
		for _, e := range list {
			out = append(out, string(e))
		}
		return out
	}
	uiFile, uiSpans := list(text(ui)...)
	apiFile, apiSpans := list(text(api)...)
	return tellWith(t, blobMap{"u": uiFile, "a": apiFile}, task.Adopted{Task: "t", Tool: "roo", Files: []task.Original{
		original(task.UI, "u", uiSpans...), original(task.API, "a", apiSpans...),
	}})
}

// rising reports whether all messages have a time and none an earlier one than the
// message before: Roo cuts by them.
func rising(list [][]byte) bool {
	var last int64
	for _, raw := range list {
		ts, _ := esjson.GetInt(raw, "ts")
		if ts <= 0 || ts < last {
			return false
		}
		last = ts
	}
	return true
}

// cutAsRoo is the rewind of a case; errNoRow when Roo finds no row of that time.
func cutAsRoo(c conformance.Case, s *task.State) (task.Rewound, error) {
	in := c.Input
	row, keep := int(in.Int("index", 0)), in.Bool("include_target", false)
	if in.Str("op") == "to_timestamp" {
		row = slices.IndexFunc(in.Get("ui").List(), func(m []byte) bool {
			ts, ok := esjson.GetFloat(m, "ts")
			return ok && ts == in.Float("ts")
		})
		if row < 0 {
			return task.Rewound{}, errNoRow
		}
	}
	e, err := s.CutAt(row, keep)
	if in.Bool("skip_cleanup", false) {
		e.Lift = nil
	}
	return e, err
}

var errNoRow = errors.New("no row of that time")

// withoutTags is a message as two lists can be compared by it.
func withoutTags(raw []byte) string {
	return string(esjson.Remove(esjson.Remove(raw, "condenseParent"), "truncationParent"))
}

func TestVectorsRewind(t *testing.T) {
	conformance.Run(t, "rewind", func(t *testing.T, c conformance.Case) (choice bool) {
		ui, api := c.Input.Get("ui").List(), c.Input.Get("api").List()
		w := fromRoo(t, ui, api)
		e, err := cutAsRoo(c, w.State)
		switch {
		case errors.Is(err, errNoRow):
			c.Same(t, "error", []byte(`"not_found"`), c.Want.Get("error"))
			return false
		case errors.Is(err, task.ErrNothingToCut):
		case err != nil:
			t.Fatal(err)
		default:
			w.then(e)
		}
		gotUI, gotAPI := stored(t, w.State, w.UI()), stored(t, w.State, w.API())
		c.Same(t, "ui", conformance.Array(gotUI), c.Want.Get("ui"))
		if c.Bug != "" || !rising(api) {
			// Whatever we take that Roo keeps, we keep nothing that Roo takes.
			left := map[string]int{}
			for _, m := range c.Want.Get("api").List() {
				left[withoutTags(m)]++
			}
			for _, m := range gotAPI {
				if left[withoutTags(m)]--; left[withoutTags(m)] < 0 {
					t.Errorf("Roo takes %.200s", m)
				}
			}
			choice = !esjson.Equal(conformance.Array(gotAPI), c.Want.Get("api"))
		} else {
			c.Same(t, "api", conformance.Array(gotAPI), c.Want.Get("api"))
			changed := !esjson.Equal(conformance.Array(gotAPI), c.Input.Get("api"))
			if changed != c.Want.Bool("api_written", false) {
				t.Errorf("api changed %t, Roo wrote it %t", changed, !changed)
			}
		}
		if c.Want.Has("artifacts") && !choice {
			left := c.Input.Get("artifacts").Strings()
			if !c.Input.Bool("skip_cleanup", false) {
				left = w.OutputsLeft(left)
			}
			slices.Sort(left)
			text, err := json.Marshal(append([]string{}, slices.Compact(left)...))
			if err != nil {
				t.Fatal(err)
			}
			c.Same(t, "artifacts", text, c.Want.Get("artifacts"))
		}
		// What went comes back as it was, byte for byte.
		if err == nil {
			w.then(task.Undone{Undoes: w.Seq})
			for i, m := range stored(t, w.State, w.API()) {
				if string(m) != string(api[i]) {
					t.Errorf("message %d came back as %s", i, m)
				}
			}
		}
		return choice
	})
}

// stored are messages as their files hold them.
func stored(t testing.TB, s *task.State, list []*task.Message) [][]byte {
	t.Helper()
	all, err := s.Raws(list)
	if err != nil {
		t.Fatal(err)
	}
	out := make([][]byte, len(all))
	for i, raw := range all {
		out[i] = raw
	}
	return out
}
