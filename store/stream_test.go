package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// manyTasks is a storage with n tasks that changed a minute apart, the last one
// last, and two more that are damaged and empty.
func manyTasks(t *testing.T, n int) string {
	t.Helper()
	storage := t.TempDir()
	old := time.Now().Add(-time.Hour)
	put := func(id, text string, at time.Time) {
		dir := filepath.Join(storage, "tasks", id)
		fixture.NoError(t, os.MkdirAll(dir, 0o700))
		write(t, dir, "ui_messages.json", text)
		fixture.NoError(t, os.Chtimes(filepath.Join(dir, "ui_messages.json"), at, at))
		fixture.NoError(t, os.Chtimes(dir, at, at))
	}
	for i := range n {
		put(fmt.Sprintf("task-%03d", i), fmt.Sprintf(`[{"ts":%d,"type":"say","say":"text","text":"errand %03d"}]`, 1700000000000+i*60000, i), old.Add(time.Duration(i)*time.Second))
	}
	put("hollow", "", old)
	put("torn", `[{"ts":1600000000000,"type":"say","say":"text","text":"mend"},{"ts":16`, old)
	return storage
}

func openCached(t *testing.T, root, cache, source string) *Store {
	t.Helper()
	s, err := Open(Options{Root: root, Cache: cache, Sources: []string{source}})
	fixture.NoError(t, err)
	s.calmIn = 0 // what a test wrote just now is believed
	return s
}

// stream takes all partials.
func stream(t *testing.T, s *Store, first int) (parts []api.ListPart) {
	t.Helper()
	for p, err := range s.Stream(context.Background(), first) {
		fixture.NoError(t, err)
		parts = append(parts, p)
	}
	return parts
}

// What a stream ends with is the list, whatever the cache knows.
func TestStreamEndsWithTheList(t *testing.T) {
	storage, root, cache := manyTasks(t, 120), t.TempDir(), t.TempDir()
	other := t.TempDir() // a copy of one task is one task
	fixture.NoError(t, os.CopyFS(filepath.Join(other, "tasks", "task-007"), os.DirFS(filepath.Join(storage, "tasks", "task-007"))))
	for _, tt := range []struct {
		name   string
		cache  string
		change func()
	}{
		{"without a cache", "", func() {}},
		{"with an empty one", cache, func() {}},
		{"with one that knows all", cache, func() {}},
		{"with one that is outdated", cache, func() {
			for _, id := range []string{"task-003", "task-100"} {
				write(t, filepath.Join(storage, "tasks", id), "ui_messages.json", `[{"ts":1800000000000,"type":"say","say":"text","text":"changed `+id+`"}]`)
			}
			fixture.NoError(t, os.RemoveAll(filepath.Join(storage, "tasks", "task-050")))
		}},
		{"with one that is damaged", cache, func() { write(t, cache, catalog.Name, "garbage") }},
	} {
		tt.change()
		before := tree(t, storage)
		s, err := Open(Options{Root: root, Cache: tt.cache, Sources: []string{storage, other}})
		fixture.NoError(t, err)
		parts := stream(t, s, 10)
		plain, err := Open(Options{Root: root, Sources: []string{storage, other}})
		fixture.NoError(t, err)
		want, err := plain.List(context.Background(), Filter{})
		fixture.NoError(t, err)
		last := parts[len(parts)-1]
		if diff := cmp.Diff(want.Items, last.Items); diff != "" || !last.Whole || last.Read != last.Of {
			t.Errorf("%s: %v, %d of %d: %s", tt.name, last.Whole, last.Read, last.Of, diff)
		}
		for i, src := range last.Sources {
			if w := want.Sources[i]; src.Tasks != w.Tasks || src.Damaged != w.Damaged || src.Empty != w.Empty || src.State != w.State {
				t.Errorf("%s: source %+v, want %+v", tt.name, src, w)
			}
		}
		given := map[string]bool{} // each row comes once before that
		for _, p := range parts[:len(parts)-1] {
			for _, row := range p.Items {
				if given[row.Path] || row.Empty || p.Whole {
					t.Errorf("%s: %s came twice, or is none", tt.name, row.Path)
				}
				given[row.Path] = true
			}
		}
		if diff := cmp.Diff(before, tree(t, storage)); diff != "" {
			t.Errorf("%s: streaming changed files: %s", tt.name, diff)
		}
	}
}

func TestStreamBeginsWithTheNewest(t *testing.T) {
	storage, root, cache := manyTasks(t, 200), t.TempDir(), t.TempDir()
	for _, name := range []string{"cold", "warm"} {
		parts := stream(t, openCached(t, root, cache, storage), 20)
		if first := parts[0]; len(first.Items) != 0 || first.Of != 202 || first.Sources[1].Tasks != 202 {
			t.Errorf("%s: it begins with %d rows, %+v", name, len(first.Items), first)
		}
		newest := map[string]bool{}
		for _, part := range parts[1:] { // a slow machine gives them in more than one
			for _, row := range part.Items {
				newest[row.ID] = true
			}
			if len(newest) >= 20 {
				break
			}
		}
		for i := 180; i < 200; i++ {
			if id := fmt.Sprintf("task-%03d", i); !newest[id] {
				t.Errorf("%s: %s is not among the first %d", name, id, len(newest))
			}
		}
		if len(newest) > 20+streamChunk {
			t.Errorf("%s: %d rows were waited for", name, len(newest))
		}
	}
}

// The index of a tool says what is new, where the files' times do not.
func TestStreamGoesByTheIndex(t *testing.T) {
	storage := manyTasks(t, 100)
	write(t, filepath.Join(storage, "tasks"), "_index.json", `{"version":1,"updatedAt":1,"entries":[{"id":"task-005","ts":1900000000000,"task":"errand","number":1}]}`)
	parts := stream(t, openCached(t, t.TempDir(), "", storage), 1)
	if len(parts) < 2 || len(parts[1].Items) == 0 || !strings.Contains(fmt.Sprint(ids(parts[1].Items)), "task-005") {
		t.Errorf("first came %v", ids(parts[1].Items))
	}
}

func ids(list []api.Summary) (out []string) {
	for _, t := range list {
		out = append(out, t.ID)
	}
	return out
}

// Whoever stops waiting stops the reading; what was read is known the next time.
func TestStreamThatIsLeft(t *testing.T) {
	storage, root, cache := manyTasks(t, 300), t.TempDir(), t.TempDir()
	s := openCached(t, root, cache, storage)
	for p, err := range s.Stream(context.Background(), 50) {
		fixture.NoError(t, err)
		if len(p.Items) > 0 {
			break
		}
	}
	parts := stream(t, openCached(t, root, cache, storage), 10)
	if known := parts[1].Read; known < streamChunk || known > 250 {
		t.Errorf("%d tasks of 300 are known, of which the first rows were read", known)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var last error
	for p, err := range s.Stream(ctx, 1) {
		if last = err; len(p.Items) > 0 {
			cancel()
		}
	}
	cancel()
	if last != context.Canceled { //nolint:errorlint // just this
		t.Errorf("a stream that is ended from outside: %v", last)
	}
}

// Whoever ends the context and leaves, after any part, is given nothing more: an
// iterator that goes on then ends the program.
func TestStreamThatIsLeftWithItsContext(t *testing.T) {
	storage, root := manyTasks(t, 60), t.TempDir()
	for _, cached := range []bool{false, true} {
		for after := 0; ; after++ {
			cache := t.TempDir()
			if cached {
				stream(t, openCached(t, root, cache, storage), 10)
			}
			ctx, cancel := context.WithCancel(t.Context())
			n := 0
			for _, err := range openCached(t, root, cache, storage).Stream(ctx, 10) {
				if fixture.NoError(t, err); n == after {
					cancel()
					break
				}
				n++
			}
			cancel()
			if n < after {
				break
			}
		}
	}
}

func TestStreamOfAnUnreachableRoot(t *testing.T) {
	storage, root, cache := manyTasks(t, 30), t.TempDir(), t.TempDir()
	stream(t, openCached(t, root, cache, storage), 10)
	fixture.NoError(t, os.Rename(storage, storage+"-away"))
	fixture.NoError(t, os.WriteFile(storage, nil, 0o600)) // not a folder: rights would not stop root
	parts := stream(t, openCached(t, root, cache, storage), 10)
	last := parts[len(parts)-1]
	list, err := openCached(t, root, cache, storage).List(context.Background(), Filter{})
	fixture.NoError(t, err)
	if diff := cmp.Diff(list.Items, last.Items); diff != "" {
		t.Errorf("not what the list says: %s", diff)
	}
	var states []string
	for _, src := range last.Sources {
		states = append(states, src.State)
	}
	if !strings.Contains(fmt.Sprint(states), "unreachable") {
		t.Errorf("states %v", states)
	}
}

func TestOnce(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	s := open(t, root)
	got := fmt.Sprint(s.Once("import"), s.Once("import"), open(t, root).Once("import"), s.Once("other"))
	if got != "true false false true" {
		t.Error(got)
	}
	file := filepath.Join(t.TempDir(), "file")
	fixture.NoError(t, os.WriteFile(file, nil, 0o600))
	if s.opt.Root = filepath.Join(file, "below"); s.Once("import") {
		t.Error("asked although that cannot be remembered")
	}
}
