package watch

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// field is a folder with a watcher on it, with a hub of its own.
type field struct {
	t   *testing.T
	dir string
	w   *Watcher
}

func newField(t *testing.T) *field {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	f := &field{t: t, dir: dir, w: newWatcher(&hub{sys: newSystem()}, dir)}
	f.must(err)
	t.Cleanup(func() {
		f.w.Close()
		if f.w.hub.open || len(f.w.hub.marks) > 0 {
			t.Errorf("a closed watcher left its handle open, with %d marks", len(f.w.hub.marks))
		}
	})
	return f
}

func (f *field) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *field) path(name string) string { return filepath.Join(f.dir, filepath.FromSlash(name)) }

func (f *field) put(name, text string) {
	f.t.Helper()
	f.must(os.MkdirAll(filepath.Dir(f.path(name)), 0o755))
	f.must(os.WriteFile(f.path(name), []byte(text), 0o644))
}

func (f *field) move(from, to string) {
	f.t.Helper()
	f.must(os.Rename(f.path(from), f.path(to)))
}

// watch watches files and fails the test when they are not covered.
func (f *field) watch(names ...string) {
	f.t.Helper()
	for _, name := range names {
		if !f.w.Watch(f.path(name)) {
			f.t.Fatalf("%s is not covered", name)
		}
	}
}

// told wants exactly these hints.
func (f *field) told(names ...string) {
	f.t.Helper()
	var want []string
	for _, name := range names {
		want = append(want, f.path(name))
	}
	slices.Sort(want)
	got, all := f.w.Take()
	if all || !slices.Equal(got, want) {
		f.t.Errorf("told of %q (all: %v), want %q", got, all, want)
	}
}
