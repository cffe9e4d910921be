package export

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// A key that nobody has. It is put together here, so that no scanner takes this file for
// a leak.
const (
	keyBody = "Zk3vQ9xT7bLw2RmY8cNd5HsJ4gPf6aUe1"
	secret  = "sk-ant-" + keyBody
	masked  = "[REDACTED:anthropic-key]"
)

// storage is another tool's storage with one task in it, and our own root beside it.
type storage struct {
	t    *testing.T
	dir  string
	task string // the task's folder
	st   *store.Store
}

func newStorage(t *testing.T, files map[string]string) storage {
	t.Helper()
	s := storage{t: t, dir: t.TempDir()}
	s.task = filepath.Join(s.dir, "other", "tasks", "t1")
	for name, text := range files {
		fixture.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(s.task, name)), 0o700))
		fixture.NoError(t, os.WriteFile(filepath.Join(s.task, name), []byte(text), 0o600))
	}
	var err error
	s.st, err = store.Open(store.Options{Root: filepath.Join(s.dir, "root"), Cache: filepath.Join(s.dir, "cache"), Sources: []string{filepath.Join(s.dir, "other")}, Program: "test"})
	fixture.NoError(t, err)
	return s
}

// open reads a task for the length of the test.
func (s storage) open(id string) *store.View {
	s.t.Helper()
	ref, err := s.st.Find(s.t.Context(), id)
	fixture.NoError(s.t, err)
	v, err := s.st.Read(s.t.Context(), ref)
	fixture.NoError(s.t, err)
	s.t.Cleanup(func() { v.Close() })
	return v
}

// own makes a task of Roost's own with one row in each history.
func (s storage) own(id, words string) {
	s.t.Helper()
	k, err := s.st.Create(s.t.Context(), task.Created{Task: id, Title: words, Number: 1, CreatedAt: 1776200000000})
	fixture.NoError(s.t, err)
	for _, m := range []struct {
		h   task.History
		raw string
	}{
		{task.UI, fmt.Sprintf(`{"ts":1776200000001,"type":"say","say":"text","text":%q}`, words)},
		{task.API, fmt.Sprintf(`{"role":"user","content":%q,"ts":1776200000001}`, words)},
	} {
		fixture.NoError(s.t, k.Commit(s.t.Context(), task.MessageAdded{History: m.h, Message: k.State().NextMessage(), Body: task.Body{Raw: []byte(m.raw)}}))
	}
	fixture.NoError(s.t, k.Close(s.t.Context()))
}

// folder is a task folder of Roo's with the given elements.
func folder(ui, api string) map[string]string {
	return map[string]string{
		roofmt.UIName: ui, roofmt.APIName: api,
		roofmt.ItemName:     `{"id":"t1","number":1,"ts":1776200000000,"task":"words","tokensIn":1,"tokensOut":2,"totalCost":0.5,"workspace":"/w"}`,
		roofmt.MetadataName: `{"files_in_context": []}`,
	}
}

// tree is every file below dir with its bytes and times.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	fixture.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		out[path] = fmt.Sprintf("%x %d", sha256.Sum256(data), info.ModTime().UnixNano())
		return err
	}))
	return out
}
