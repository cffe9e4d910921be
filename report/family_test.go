package report_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// A family is a task and all that come from it, also what has said nothing yet; its
// parent and its neighbours are none of it.
func TestAFamilyIsATaskAndItsSubtasks(t *testing.T) {
	s := newToolStore(t, nil)
	row := []task.Event{added(task.UI, 1, `{"ts":1,"type":"say","say":"text","text":"x"}`)}
	for _, c := range []struct{ id, parent, root string }{{"top", "", ""}, {"a", "top", "top"}, {"a1", "a", "top"}, {"a2", "a", "top"}, {"b", "top", "top"}, {"alone", "", ""}} {
		s.now += 1000
		created := task.Created{Task: c.id, Number: 1, CreatedAt: s.now, Parent: c.parent, RootTask: c.root}
		if c.id == "a2" {
			s.task(created)
			continue
		}
		s.task(created, row)
	}
	for id, want := range map[string]string{"top": "top(a(a1 a2) b)", "a": "a(a1 a2)", "a2": "a2", "alone": "alone"} {
		ref, err := s.store.Find(t.Context(), id)
		fixture.NoError(t, err)
		f, err := report.FamilyOf(t.Context(), s.store, ref)
		fixture.NoError(t, err)
		if len(f.Depths) != len(f.Tasks) {
			t.Fatalf("%s: %d depths of %d tasks", id, len(f.Depths), len(f.Tasks))
		}
		if got := spelled(f.Branch()); got != want {
			t.Errorf("the family of %s is %s, want %s", id, got, want)
		}
	}
	ref, err := s.store.Find(t.Context(), "a")
	fixture.NoError(t, err)
	for name, gone := range map[string]store.Ref{"another folder": {ID: ref.ID, Source: ref.Source, Dir: ref.Dir + "x"}, "another id": {ID: "zz", Source: ref.Source, Dir: ref.Dir}} {
		if f, err := report.FamilyOf(t.Context(), s.store, gone); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: got %v, %v, want errors.Is(err, store.ErrNotFound)", name, f, err)
		}
	}
}

func spelled(b api.Branch) string {
	var below []string
	for _, c := range b.Children {
		below = append(below, spelled(c))
	}
	if len(below) == 0 {
		return b.Task.ID
	}
	return b.Task.ID + "(" + strings.Join(below, " ") + ")"
}
