package checkpoint

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/content/postgres"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

// shared are stores in a database of the test's own.
func shared(t *testing.T) Stores {
	t.Helper()
	url := pgtest.Shared(t).Database(t)
	if err := database.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	db, err := database.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	s := postgres.New(db, postgres.Options{})
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
		db.Close()
	})
	return s
}

// What one machine keeps in a shared store, another one restores, and a collection removes when no task needs it. The
// folder of a machine holds no contents.
func TestSharedContents(t *testing.T) {
	l := newBench(t, Options{Git: "none"})
	l.far = shared(t)
	l.k = l.open(Options{Git: "none"})
	ctx := t.Context()
	l.write("a.txt", "one\n")
	l.write("dir/b.txt", strings.Repeat("two\n", 1000))
	s := l.survey()
	l.write("a.txt", "changed\n")
	l.remove("dir")
	l.write("new.txt", "new\n")
	changes, err := s.Changes(ctx)
	l.must(err)
	if len(changes) != 3 {
		t.Fatalf("got %+v, want 3 changes", changes)
	}
	for _, c := range changes {
		if c.Path != "new.txt" && c.Was.Blob == "" {
			t.Errorf("%s: what it held was not kept", c.Path)
		}
	}
	l.save(Snapshot{Number: 1, Title: "a command", Changed: changes})
	size, err := l.k.Size(ctx)
	l.must(err)
	if size == 0 {
		t.Error("the store is empty")
	}
	files, err := filepath.Glob(filepath.Join(l.k.dir, "*"))
	l.must(err)
	if len(files) != 1 || filepath.Base(files[0]) != cacheName {
		t.Errorf("got the files %v, want only what the survey found", files)
	}

	l.data = filepath.Join(t.TempDir(), "elsewhere", "checkpoints") // as another machine
	other := l.open(Options{Git: "none"})
	for _, c := range changes {
		if c.Path == "new.txt" {
			continue
		}
		if data, err := other.Content(ctx, *c.Was, 0); err != nil || workspace.HashOf(data) != c.Was.Hash {
			t.Errorf("%s: got %q, %v, want what it held", c.Path, data, err)
		}
	}
	var back []task.RestoreFile
	for _, c := range changes {
		back = append(back, task.RestoreFile{Path: c.Path, From: c.Now, To: *c.Was})
	}
	if _, err := other.Apply(ctx, back); err != nil {
		t.Error(err)
	}
	if got := l.tree()["a.txt"]; !strings.Contains(got, "one\n") {
		t.Errorf("got a.txt %q, want what it held", got)
	}

	l.must(l.k.Close())
	names, err := l.far.List(ctx)
	if err != nil || len(names) != 1 || names[0] != other.Name() {
		t.Errorf("got the stores %v, %v, want that of the workspace", names, err)
	}
	l.must(other.Forget(ctx, OwnerOf(task1)))
	done, err := other.Collect(ctx, false, true)
	if err != nil || done.After != 0 || done.Removed == 0 {
		t.Errorf("got %+v, %v, want an empty store", done, err)
	}
	if _, err := other.Content(ctx, *changes[0].Was, 0); !errors.Is(err, ErrUnkept) {
		t.Errorf("after the collection: got %v, want ErrUnkept", err)
	}
}
