package report_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/history"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

func sum(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// bench is a workspace with these files.
func bench(t *testing.T, files map[string]string) *workspace.Workspace {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		fixture.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		fixture.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	w, err := workspace.Open(dir)
	fixture.NoError(t, err)
	return w
}

func known(t *testing.T, v *store.View, w *workspace.Workspace) map[string]api.KnownFile {
	t.Helper()
	list, err := report.Files(t.Context(), v, w, report.Records(v), false)
	fixture.NoError(t, err)
	out := map[string]api.KnownFile{}
	for i, f := range list {
		if out[f.Path] = f; i > 0 && list[i-1].Path >= f.Path {
			t.Errorf("%s stands behind %s", f.Path, list[i-1].Path)
		}
	}
	return out
}

func word(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

// A file is judged by the content that the model last saw; who changed it is told where the
// journal knows, and where it does not, that it was somebody else.
func TestFilesThatTheModelKnows(t *testing.T) {
	w := bench(t, map[string]string{"same.go": "same", "other.go": "now", "written.go": "by the model", "told.go": "by a command", "sub/deep.go": "deep"})
	s := newToolStore(t, nil)
	saw := func(path, source, text string) task.FileChanged {
		return task.FileChanged{Path: path, Source: source, Hash: sum(text), Size: int64(len(text)), MTime: 1, CTime: 1}
	}
	by := func(c task.FileChanged, who, other string) task.FileChanged { c.By, c.Task = who, other; return c }
	s.task(task.Created{Task: "own", Number: 1, CreatedAt: s.now},
		[]task.Event{saw("same.go", "read_tool", "same"), saw("other.go", "read_tool", "then"), saw("gone.go", "file_mentioned", "x"), saw("sub/deep.go", "read_tool", "deep")},
		[]task.Event{saw("written.go", "roo_edited", "by the model"), saw("told.go", "read_tool", "as it was")},
		[]task.Event{by(saw("told.go", "user_edited", "by a command"), "command", ""), saw("other.go", "user_edited", "now")},
		[]task.Event{by(saw("other.go", "user_edited", "now"), "other", "t9")},
	)
	v := s.open("own")
	got := known(t, v, w)
	for path, want := range map[string]string{
		"same.go": "fresh read_tool - ", "other.go": "changed user_edited other t9", "gone.go": "missing file_mentioned - ", "sub/deep.go": "fresh read_tool - ",
		"written.go": "fresh roo_edited agent ", "told.go": "changed user_edited command ",
	} {
		f, ok := got[path]
		if said := f.State + " " + f.Source + " " + word(f.By) + " " + f.Task; !ok || said != want {
			t.Errorf("%s: %q, want %q", path, said, want)
		}
		if len(f.Inferred) > 0 || f.Hash == nil || f.History != nil {
			t.Errorf("%s: got %+v, want len(f.Inferred) <= 0 and f.Hash != nil and f.History = nil", path, f)
		}
	}
	other := got["other.go"]
	if word(other.Hash) != sum("then") || word(other.NowHash) != sum("now") || *other.Size != 4 || *other.NowSize != 3 {
		t.Errorf("content of a changed file: %+v", other)
	}
	if word(other.ReadAt) != "2026-04-14T20:53:21.000Z" || word(other.UserAt) != "2026-04-14T20:53:24.000Z" || other.EditedAt != nil || other.TS != 1776200004000 {
		t.Errorf("times of a changed file: %s %s %s %d", word(other.ReadAt), word(other.UserAt), word(other.EditedAt), other.TS)
	}
	if gone := got["gone.go"]; gone.NowHash != nil || gone.NowSize != nil {
		t.Errorf("a missing file has a size: %+v", gone)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := report.Files(ctx, v, w, report.Records(v), false); !errors.Is(err, context.Canceled) {
		t.Errorf("of a call that was cancelled: %v", err)
	}
	if none, err := report.Files(t.Context(), v, nil, nil, false); err != nil || none == nil || len(none) > 0 {
		t.Errorf("of no records: %v, %v", none, err)
	}
}

// Another tool records when, and not what: its files are judged by their dates, and that is
// said. Names that no file can have are missing, and so is what leads nowhere.
func TestFilesThatAnotherToolRecorded(t *testing.T) {
	w := bench(t, map[string]string{"old.go": "old", "new.go": "new", "a name.go": "x", "dir/x": ""})
	at := time.UnixMilli(1776200000000)
	fixture.NoError(t, os.Chtimes(filepath.Join(w.Root(), "old.go"), at.Add(-time.Hour), at.Add(-time.Hour)))
	fixture.NoError(t, os.Chtimes(filepath.Join(w.Root(), "a name.go"), at.Add(-time.Hour), at.Add(-time.Hour)))
	fixture.NoError(t, os.Chtimes(filepath.Join(w.Root(), "new.go"), at.Add(time.Hour), at.Add(time.Hour)))
	entry := func(path, source, date string) string {
		raw, err := json.Marshal(map[string]any{"path": path, "record_state": "active", "record_source": source, date: at.UnixMilli()})
		fixture.NoError(t, err)
		return string(raw)
	}
	all := files(`[{"ts":1,"type":"say","say":"text","text":"hi"}]`, `[]`)
	all[roofmt.MetadataName] = `{"files_in_context":[` + strings.Join([]string{
		entry("old.go", "read_tool", "roo_read_date"), entry("new.go", "roo_edited", "roo_edit_date"), entry("gone.go", "read_tool", "roo_read_date"), entry("dir", "file_mentioned", "roo_read_date"),
		entry(`a\ name.go`, "file_mentioned", "roo_read_date"), entry("x\x00y", "read_tool", "roo_read_date"), entry(strings.Repeat("n", 300), "read_tool", "roo_read_date"), `7`, `{"path":""}`,
	}, ",") + `]}`
	got := known(t, newToolStore(t, all).open("t1"), w)
	for path, want := range map[string]string{
		"old.go": "fresh - 3", "new.go": "changed agent 3", "gone.go": "missing - -", "dir": "changed - -", `a\ name.go`: "fresh - 1", strings.Repeat("n", 300): "missing - -",
	} {
		f, size := got[path], "-"
		if f.NowSize != nil {
			size = fmt.Sprint(*f.NowSize)
		}
		if said := f.State + " " + word(f.By) + " " + size; said != want || !cmp.Equal(f.Inferred, []string{"state"}) && len(path) < 300 || f.Hash != nil {
			t.Errorf("%.20s: %q of %+v, want %q", path, said, f, want)
		}
	}
	if len(got) != 6 {
		t.Errorf("%d files are known", len(got))
	}
}

// What another tool left in a task's folder is only taken from a plain file: a pipe would
// never end, and a link leads elsewhere.
func TestRecordsOfAnotherToolAreAPlainFile(t *testing.T) {
	const entries = `{"files_in_context":[{"path":"a.go","record_state":"active","record_source":"read_tool","roo_read_date":5}]}`
	for name, make := range map[string]func(path string) error{
		"a plain file": func(path string) error { return os.WriteFile(path, []byte(entries), 0o600) },
		"nothing":      func(string) error { return nil },
		"no JSON":      func(path string) error { return os.WriteFile(path, []byte(entries[:40]), 0o600) },
		"a folder":     func(path string) error { return os.Mkdir(path, 0o700) },
		"a pipe":       pipe,
		"a link": func(path string) error {
			to := filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(path))), "elsewhere.json")
			if err := os.WriteFile(to, []byte(entries), 0o600); err != nil {
				return err
			}
			return os.Symlink(to, path)
		},
	} {
		s := newToolStore(t, files(`[{"ts":1,"type":"say","say":"text","text":"hi"}]`, `[{"role":"user","content":"hi","ts":1}]`))
		fork, finish, err := history.Fork(t.Context(), s.store, s.open("t1").Ref, history.ForkOptions{})
		fixture.NoError(t, err)
		fixture.NoError(t, finish(t.Context()))
		ref, err := s.store.Find(t.Context(), fork.ID)
		fixture.NoError(t, err)
		for _, dir := range []string{s.foreign, ref.Dir} {
			path := filepath.Join(dir, roofmt.MetadataName)
			fixture.NoError(t, os.RemoveAll(path))
			fixture.NoError(t, make(path))
		}
		for _, id := range []string{"t1", fork.ID} {
			v := s.open(id)
			if id == fork.ID {
				v.Folder = nil // as it is when its files are as they were written
			}
			want := 0
			if name == "a plain file" {
				want = 1
			}
			if got := report.Records(v); len(got) != want {
				t.Errorf("%s of %s: %+v", name, id, got)
			}
		}
	}
}

// The history of a file has all that was ever recorded of it, in order: what another tool
// knew, what was rewound, and the checkpoints that hold it.
func TestTheHistoryOfAFile(t *testing.T) {
	w := bench(t, map[string]string{"a.go": "three"})
	s := newToolStore(t, nil)
	row := func(n int, text string) task.Event {
		return added(task.UI, n, fmt.Sprintf(`{"ts":%d,"type":"say","say":"user_feedback","text":%q}`, n, text))
	}
	s.task(task.Created{Task: "own", Number: 1, CreatedAt: s.now},
		[]task.Event{row(1, "one"), task.FileChanged{Path: "a.go", Source: "read_tool", Hash: sum("one"), Size: 3}, task.FileChanged{Path: "b.go", Source: "read_tool", Hash: sum("b"), Size: 1}},
		[]task.Event{task.CheckpointSaved{Number: 1, Reason: "before", Files: []task.CheckpointFile{{Path: "a.go", Now: api.FileVersion{Kind: "file", Hash: sum("one"), Size: 3}}, {Path: "b.go", Now: api.FileVersion{Kind: "file", Hash: sum("b"), Size: 1}}}}},
		[]task.Event{row(2, "two"), task.FileChanged{Path: "a.go", Source: "roo_edited", Hash: sum("two"), Size: 3}},
	)
	ref, err := s.store.Find(t.Context(), "own")
	fixture.NoError(t, err)
	_, finish, err := history.Rewind(t.Context(), s.store, ref, history.RewindOptions{To: "#2"})
	fixture.NoError(t, err)
	fixture.NoError(t, finish(t.Context()))
	owned, err := s.store.Own(t.Context(), ref)
	fixture.NoError(t, err)
	k := owned.Task
	fixture.NoError(t, k.Commit(t.Context(), task.FileChanged{Path: "a.go", Source: "user_edited", By: "other", Task: "t9", Hash: sum("three"), Size: 5}))
	fixture.NoError(t, k.Commit(t.Context(), task.FileChanged{Path: "a.go", Source: "roo_edited"}))
	fixture.NoError(t, k.Close(t.Context()))

	v := s.open("own")
	list, err := report.Files(t.Context(), v, w, report.Records(v), true)
	fixture.NoError(t, err)
	var got []string
	for _, f := range list {
		for i, r := range f.History {
			size := "-"
			if r.Size != nil {
				size = fmt.Sprint(*r.Size)
			}
			got = append(got, fmt.Sprintf("%s %s %s %s %s rewound=%v c%d%s", f.Path, r.Source, word(r.By), r.Task, size, r.Rewound, r.Checkpoint, r.Reason))
			if i > 0 && f.History[i-1].Seq > r.Seq || r.At == nil {
				t.Errorf("%s: %+v is out of order", f.Path, r)
			}
		}
	}
	if d := cmp.Diff([]string{
		"a.go read_tool -  3 rewound=false c0", "a.go checkpoint -  3 rewound=false c1before", "a.go roo_edited agent  3 rewound=true c0",
		"a.go user_edited other t9 5 rewound=false c0", "a.go roo_edited agent  - rewound=false c0",
		"b.go read_tool -  1 rewound=false c0", "b.go checkpoint -  1 rewound=false c1before",
	}, got); d != "" {
		t.Error(d)
	}
}

// A commit that is damaged takes its own records with it, and no others: the files are told
// all the same, and so is who changed them.
func TestFilesOfADamagedJournal(t *testing.T) {
	w := bench(t, map[string]string{"a.go": "two", "b.go": "b"})
	s := newToolStore(t, nil)
	s.task(task.Created{Task: "own", Number: 1, CreatedAt: s.now},
		[]task.Event{task.FileChanged{Path: "a.go", Source: "read_tool", Hash: sum("one"), Size: 3}},
		[]task.Event{task.FileChanged{Path: "b.go", Source: "user_edited", By: "command", Hash: sum("b"), Size: 1}},
		[]task.Event{task.FileChanged{Path: "lost.go", Source: "read_tool", Hash: sum("x"), Size: 1}},
		[]task.Event{task.FileChanged{Path: "a.go", Source: "user_edited", By: "subtask", Hash: sum("two"), Size: 3}},
	)
	log := s.open("own").Ref.Log
	path := filepath.Join(log, "journal.jsonl")
	data, err := os.ReadFile(path)
	fixture.NoError(t, err)
	fixture.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(data), "lost.go", "tsol.go", 1)), 0o600))
	fixture.NoError(t, os.RemoveAll(filepath.Join(log, "journal.idx")))
	v := s.open("own")
	list, err := report.Files(t.Context(), v, w, report.Records(v), true)
	fixture.NoError(t, err)
	var got []string
	for _, f := range list {
		got = append(got, fmt.Sprint(f.Path, " ", f.State, " ", word(f.By), " ", len(f.History)))
	}
	if d := cmp.Diff([]string{"a.go changed subtask 2", "b.go fresh command 1"}, got); d != "" {
		t.Error(d)
	}
}
