package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/importer"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

// archivedContents returns what an archive of a task would hold, by hash.
func (b *bench) archivedContents(v *store.View) map[string]importer.ArchiveFile {
	b.t.Helper()
	out := map[string]importer.ArchiveFile{}
	files, name := b.engine.Checkpoints().Archived(context.Background(), v)
	for f := range files {
		in, err := f.Open()
		fixture.NoError(b.t, err)
		data, err := io.ReadAll(in)
		fixture.NoError(b.t, err)
		if workspace.HashOf(data) != f.SHA256 {
			b.t.Errorf("the archive has %q under %s", data, f.SHA256)
		}
		out[f.SHA256] = incoming(data)
	}
	if want := b.stores(); len(want) != 1 || name != want[0] {
		b.t.Errorf("the store of the workspace is %q, want one of %q", name, want)
	}
	return out
}

// incoming is a content in an archive.
func incoming(data []byte) importer.ArchiveFile {
	return importer.ArchiveFile{
		Size: int64(len(data)), SHA256: workspace.HashOf(data),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
	}
}

// The journal of a task that runs grows while it is copied, so that its archive names more than its view.
func TestTheContentsOfATaskThatGoesOnAreArchived(t *testing.T) {
	ctx := context.Background()
	b, id, _, _ := afterTwoTurns(t)
	ref, err := b.store.Find(ctx, id)
	fixture.NoError(t, err)
	v, err := b.store.Read(ctx, ref)
	fixture.NoError(t, err)
	defer v.Close()
	b.put("a.txt", "what a later checkpoint keeps\n")
	_, finish, err := b.engine.Checkpoints().Save(ctx, id)
	fixture.NoError(t, err)
	fixture.NoError(t, finish(ctx))
	if _, there := b.archivedContents(v)[workspace.HashOf([]byte("what a later checkpoint keeps\n"))]; !there {
		t.Error("the archive lacks what the newest checkpoint keeps")
	}
}

// What an archive holds is untrusted: only what the journal of the task names is kept, and only in stores.
func TestOnlyWhatCheckpointsNameIsReceived(t *testing.T) {
	ctx := context.Background()
	b, id, _, _ := afterTwoTurns(t)
	ref, err := b.store.Find(ctx, id)
	fixture.NoError(t, err)
	v, err := b.store.Read(ctx, ref)
	fixture.NoError(t, err)
	defer v.Close()
	from := importer.Original{Contents: b.archivedContents(v), Store: b.stores()[0]}
	named := len(from.Contents)
	stray := incoming([]byte("no checkpoint names this\n"))
	from.Contents[stray.SHA256] = stray
	svc := b.engine.Checkpoints()
	list := func() (all []string) {
		fixture.NoError(t, filepath.WalkDir(filepath.Dir(b.root), func(path string, _ os.DirEntry, err error) error {
			all = append(all, path)
			return err
		}))
		return all
	}

	names, notes, err := svc.Receive(ctx, "received", "/elsewhere/ws", v.State, from)
	if err != nil || len(notes) != 0 || len(names) != 1 || !strings.HasPrefix(names[from.Store], "ws-") || names[from.Store] == from.Store {
		t.Fatalf("got %q, %q, %v, want the store of /elsewhere/ws and no note", names, notes, err)
	}
	kept, err := content.Open(filepath.Join(b.root, "checkpoints", names[from.Store]))
	fixture.NoError(t, err)
	defer kept.Close()
	if n, _, err := kept.Reaches(ctx, "received"); err != nil || n != named+1 {
		t.Errorf("the task has %d contents, %v, want %d and their manifest", n, err, named)
	}
	if kept.Contains(ctx, content.Hash(stray.SHA256)) {
		t.Error("a content that no checkpoint names was kept")
	}

	rename := func(name func(i int) string) *task.State {
		s := *v.State
		s.Checkpoints = slices.Clone(s.Checkpoints)
		for i := range s.Checkpoints {
			s.Checkpoints[i].Store = name(i)
		}
		return &s
	}
	hostile := *v
	hostile.State = rename(func(int) string { return ".." })
	files, _ := svc.Archived(ctx, &hostile)
	for f := range files {
		if _, err := f.Open(); err == nil {
			t.Errorf("what is kept of %s was read from a store named ..", f.Path)
		}
	}
	before := list()
	for _, name := range []string{"..", ".", "../x", "/tmp/x", "a/b", `a\b`, "a:b", "x\x00", strings.Repeat("x", 300)} {
		if _, _, err := svc.Receive(ctx, "received", "", rename(func(int) string { return name }), from); err == nil {
			t.Errorf("store %q: no error", name)
		}
	}
	s := rename(func(i int) string { return fmt.Sprint("store-", i) })
	for i := range 20 {
		s.Checkpoints = append(s.Checkpoints, s.Checkpoints[0])
		s.Checkpoints[len(s.Checkpoints)-1].Store = fmt.Sprint("many-", i)
	}
	if _, notes, err := svc.Receive(ctx, "received", "", s, from); err != nil || len(notes) != 1 || !strings.Contains(notes[0], "workspaces") {
		t.Errorf("got %q, %v, want a note about too many workspaces", notes, err)
	}
	if after := list(); !slices.Equal(before, after) {
		t.Errorf("files were made: %q, want only %q", after, before)
	}
}
