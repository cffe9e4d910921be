package report_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// toolStore is a store with another tool's storage beside its own root.
type toolStore struct {
	t       *testing.T
	dir     string
	foreign string // the folder of that tool's task "t1"
	store   *store.Store
	now     int64
}

func newToolStore(t *testing.T, files map[string]string) *toolStore {
	t.Helper()
	s := &toolStore{t: t, dir: t.TempDir(), now: 1776200000000}
	s.foreign = filepath.Join(s.dir, "other", "tasks", "t1")
	fixture.NoError(t, os.MkdirAll(s.foreign, 0o700))
	for name, text := range files {
		fixture.NoError(t, os.WriteFile(filepath.Join(s.foreign, name), []byte(text), 0o600))
	}
	var err error
	s.store, err = store.Open(store.Options{
		Root: filepath.Join(s.dir, "root"), Cache: filepath.Join(s.dir, "cache"), Sources: []string{filepath.Join(s.dir, "other")}, Program: "test",
		Now: func() int64 { return s.now },
	})
	fixture.NoError(t, err)
	return s
}

// task makes a task of our own with these commits, a second apart.
func (s *toolStore) task(c task.Created, commits ...[]task.Event) {
	s.t.Helper()
	k, err := s.store.Create(s.t.Context(), c)
	fixture.NoError(s.t, err)
	for _, events := range commits {
		s.now += 1000
		fixture.NoError(s.t, k.Commit(s.t.Context(), events...))
	}
	fixture.NoError(s.t, k.Close(s.t.Context()))
}

// open reads a task for the length of the test.
func (s *toolStore) open(id string) *store.View {
	s.t.Helper()
	ref, err := s.store.Find(s.t.Context(), id)
	fixture.NoError(s.t, err)
	v, err := s.store.Read(s.t.Context(), ref)
	fixture.NoError(s.t, err)
	s.t.Cleanup(func() { v.Close() })
	return v
}

func added(h task.History, number int, raw string) task.Event {
	return task.MessageAdded{History: h, Message: uint64(number), Body: task.Body{Raw: []byte(raw)}}
}

// files are the two histories of a task folder of Roo's; "-" leaves one out.
func files(ui, api string) map[string]string {
	out := map[string]string{roofmt.ItemName: `{"id":"t1","number":1,"ts":1776200000000,"task":"words"}`}
	for name, text := range map[string]string{roofmt.UIName: ui, roofmt.APIName: api} {
		if text != "-" {
			out[name] = text
		}
	}
	return out
}

// same compares a document with its JSON.
func same(t *testing.T, what string, doc any, want string) {
	t.Helper()
	got, err := json.Marshal(doc)
	fixture.NoError(t, err)
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("%s: got %s, want d = \"\"", what, d)
	}
}

func texts(list []json.RawMessage) (out []string) {
	for _, one := range list {
		out = append(out, string(one))
	}
	return out
}
