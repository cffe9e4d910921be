package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
)

// Everything that may change what a task says changes its stamp, and what only looks
// at it does not.
func TestStampSeesChanges(t *testing.T) {
	storage := twoTasks(t)
	dir := filepath.Join(storage, "tasks", "task1")
	s := searching(t, t.TempDir(), t.TempDir(), storage)
	stamp := func() string { return stampsOf(t, s)["task1"] }
	ui, hour := filepath.Join(dir, roofmt.UIName), time.Now().Add(-time.Hour)
	raw, err := os.ReadFile(ui)
	fixture.NoError(t, err)
	last := stamp()
	if last == "" {
		t.Fatal("got no stamp")
	}
	for _, c := range []struct {
		name   string
		change func() error
		same   bool
	}{
		{"reading", func() error { _, err := os.ReadFile(ui); return err }, true},
		{"another length", func() error { return os.WriteFile(ui, append(raw, ' '), 0o600) }, false},
		{"the same length", func() error { return os.WriteFile(ui, append(raw, '\n'), 0o600) }, false},
		{"its old time", func() error { return os.Chtimes(ui, hour, hour) }, false},
		{"another file in its place", func() error {
			if err := os.WriteFile(ui+".new", append(raw, '\t'), 0o600); err != nil {
				return err
			}
			if err := os.Chtimes(ui+".new", hour, hour); err != nil {
				return err
			}
			return os.Rename(ui+".new", ui)
		}, false},
		{"a file more", func() error { return os.WriteFile(filepath.Join(dir, "more"), nil, 0o600) }, false},
		{"the file gone", func() error { return os.Remove(ui) }, false},
		{"a link instead", func() error { return os.Symlink("more", ui) }, false},
	} {
		fixture.NoError(t, c.change())
		time.Sleep(2 * calmHere) // the clock of files has coarse ticks
		now := stamp()
		if (now == last) != c.same {
			t.Errorf("%s: stamp %q after %q", c.name, now, last)
		}
		last = now
	}
	fixture.NoError(t, os.RemoveAll(dir))
	fixture.NoError(t, os.MkdirAll(dir, 0o700))
	fixture.NoError(t, os.WriteFile(ui, raw, 0o600))
	if s.calmIn = time.Hour; stamp() != "" {
		t.Error("what was written just now is believed")
	}
}

// A task without an item of its own is described by the index beside it.
func TestStampSeesTheIndex(t *testing.T) {
	storage := twoTasks(t)
	fixture.NoError(t, os.Remove(filepath.Join(storage, "tasks", "task1", roofmt.ItemName)))
	s := searching(t, t.TempDir(), t.TempDir(), storage)
	before := stampsOf(t, s)
	write(t, filepath.Join(storage, "tasks"), "_index.json", `{"entries":[{"id":"task1","ts":5,"task":"another title"},{"id":"task0","ts":5,"task":"x"}]}`)
	time.Sleep(2 * calmHere)
	after := stampsOf(t, s)
	if before["task1"] == after["task1"] || before["task0"] != after["task0"] {
		t.Errorf("%v, then %v", before, after)
	}
}

// stampsOf are the stamps of all candidates, by id.
func stampsOf(t testing.TB, s *Store) map[string]string {
	t.Helper()
	tasks := fixture.Must[*Candidates](t)(s.Candidates(context.Background(), Filter{}))
	defer tasks.Close()
	out := map[string]string{}
	for _, c := range tasks.Tasks {
		out[c.Ref.ID] = c.Stamp
	}
	return out
}

// searching is a store with a catalogue of its own.
func searching(t testing.TB, root, cache string, sources ...string) *Store {
	t.Helper()
	s := open(t, root, sources...)
	s.opt.Cache, s.calmIn = cache, calmHere
	return s
}

// calmHere is some ticks of the clock that files get their times from.
const calmHere = 12 * time.Millisecond

// twoTasks is a storage of an editor with task0 and task1, an hour old.
func twoTasks(t testing.TB) (storage string) {
	t.Helper()
	storage = filepath.Join(t.TempDir(), "rooveterinaryinc.roo-cline")
	hour := time.Now().Add(-time.Hour)
	for i, id := range []string{"task0", "task1"} {
		dir := filepath.Join(storage, "tasks", id)
		write(t, dir, roofmt.UIName, array(uiRow(i, "dig a pond")))
		write(t, dir, roofmt.APIName, array(apiRow(i, "user", "dig a pond")))
		write(t, dir, roofmt.ItemName, fmt.Sprintf(`{"id":%q,"ts":%d,"task":"dig a pond"}`, id, ts0+i))
		for _, name := range []string{roofmt.UIName, roofmt.APIName, roofmt.ItemName, ""} {
			fixture.NoError(t, os.Chtimes(filepath.Join(dir, name), hour, hour))
		}
	}
	time.Sleep(2 * calmHere)
	return storage
}
