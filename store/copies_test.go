package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

func listing(t testing.TB, s *Store, f Filter) Listing {
	t.Helper()
	return fixture.Must[Listing](t)(s.List(context.Background(), f))
}

// A task that was copied is one task, until one of the two goes on.
func TestCopiesAreOneTask(t *testing.T) {
	first, dir := rooStorage(t, "same")
	second, other := rooStorage(t, "same")
	root := t.TempDir()
	s := open(t, root, first, second)
	before := tree(t, first)
	one := listing(t, s, Filter{})
	if len(one.Items) != 1 || one.Items[0].Path != dir || !slices.Equal(one.Items[0].Copies, []string{other}) || one.Copies != 1 {
		t.Fatalf("%+v, %d copies", one.Items, one.Copies)
	}
	for _, src := range one.Sources[1:] {
		if src.Tasks != 1 {
			t.Errorf("each storage holds its copy: %+v", src)
		}
	}
	if ref := fixture.Must[Ref](t)(s.Find(context.Background(), "same")); ref.Dir != dir {
		t.Errorf("got %+v, want ref.Dir = dir", ref)
	}
	if ref := fixture.Must[Ref](t)(s.Find(context.Background(), one.Sources[2].Name+":same")); ref.Dir != other {
		t.Errorf("by its source: %+v", ref)
	}
	// Asked for one source only, its copy is the row, and names the other place.
	only := listing(t, s, Filter{TaskFilter: api.TaskFilter{Source: one.Sources[2].Name}})
	if len(only.Items) != 1 || only.Items[0].Path != other || !slices.Equal(only.Items[0].Copies, []string{dir}) {
		t.Errorf("got %+v, want len(only.Items) = 1 and only.Items[0].Path = other and slices.Equal(only.Items[0].Copies, []string{dir})",
			only.Items)
	}
	copies := func(name string) []string {
		ref, copies, err := s.FindWithCopies(context.Background(), name)
		if found := fixture.Must[Ref](t)(s.Find(context.Background(), name)); err != nil || ref != found {
			t.Errorf("%s is %+v with its copies, and %+v, %v", name, ref, found, err)
		}
		return copies
	}
	if here, there := copies("same"), copies(one.Sources[2].Name+":same"); !slices.Equal(here, []string{other}) || !slices.Equal(there, []string{dir}) {
		t.Errorf("copies of the task itself: %q and %q", here, there)
	}
	if d := cmp.Diff(before, tree(t, first)); d != "" {
		t.Errorf("looking changed the storage: %s", d)
	}

	k := own(t, s, one.Sources[2].Name+":same").Task
	commit(t, k, task.UI, uiRow(9, "on"))
	closeTask(t, k)
	two := listing(t, s, Filter{})
	if len(two.Items) != 2 || len(two.Items[0].Copies)+len(two.Items[1].Copies)+two.Copies != 0 {
		t.Errorf("got %+v, want len(two.Items) = 2 and len(two.Items[0].Copies)+len(two.Items[1].Copies)+two.Copies = 0",
			two.Items)
	}
	for _, src := range two.Sources[1:] {
		if got := copies(src.Name + ":same"); got == nil || len(got) > 0 {
			t.Errorf("two tasks, and %q are copies of the one in %s", got, src.Path)
		}
	}
	var many *AmbiguousError
	if _, err := s.Find(context.Background(), "same"); !errors.As(err, &many) || len(many.Candidates) != 2 {
		t.Errorf("got %v, want errors.As(err, &many) and len(many.Candidates) = 2", err)
	}
}

func TestWhatIsNoCopy(t *testing.T) {
	for name, change := range map[string]map[string]string{
		"other words":         {roofmt.UIName: array(uiRow(1, "do it"), uiRow(2, "done so fan"))},
		"one message more":    {roofmt.APIName: array(apiRow(1, "user", "do it"), apiRow(2, "assistant", "done so far"), apiRow(3, "user", "x"))},
		"a history that left": {roofmt.APIName: ""},
	} {
		t.Run(name, func(t *testing.T) {
			first, _ := rooStorage(t, "same")
			second, other := rooStorage(t, "same")
			for file, text := range change {
				write(t, other, file, text)
			}
			if got := listing(t, open(t, t.TempDir(), first, second), Filter{}); len(got.Items) != 2 {
				t.Errorf("got %+v, want len(got.Items) = 2", got.Items)
			}
		})
	}
	// Folders without a message have nothing in common but that.
	first, second := t.TempDir(), t.TempDir()
	for _, dir := range []string{first, second} {
		fixture.NoError(t, os.MkdirAll(filepath.Join(dir, "tasks", "same"), 0o700))
	}
	if got := listing(t, open(t, t.TempDir(), first, second), Filter{TaskFilter: api.TaskFilter{Empty: true}}); len(got.Items) != 2 {
		t.Errorf("got %+v, want len(got.Items) = 2", got.Items)
	}
}

// What differs beside the histories is another title or a favourite, and the same task.
func TestCopiesMayDifferInTheirItems(t *testing.T) {
	first, _ := rooStorage(t, "same")
	second, other := rooStorage(t, "same")
	write(t, other, roofmt.ItemName, `{"id":"same","ts":5,"task":"renamed"}`)
	if got := listing(t, open(t, t.TempDir(), first, second), Filter{}); len(got.Items) != 1 {
		t.Errorf("got %+v, want len(got.Items) = 1", got.Items)
	}
}

// Roost's own place goes before others: an import is the task from now on.
func TestOwnCopyGoesFirst(t *testing.T) {
	storage, dir := rooStorage(t, "same")
	root := t.TempDir()
	mine := filepath.Join(root, "tasks", "same")
	for _, name := range []string{roofmt.UIName, roofmt.APIName, roofmt.ItemName} {
		write(t, mine, name, read(t, dir, name))
	}
	got := listing(t, open(t, root, storage), Filter{})
	if len(got.Items) != 1 || got.Items[0].Path != mine || !slices.Equal(got.Items[0].Copies, []string{dir}) {
		t.Errorf("got %+v, want len(got.Items) = 1 and got.Items[0].Path = mine and slices.Equal(got.Items[0].Copies, []string{dir})",
			got.Items)
	}
}
