// Package storetest is the vocabulary of tests about stored tasks: a store that waits for nothing, storages of other
// tools with one task, rows of Roo's histories, and short forms of the store's verbs that fail the test on an error.
package storetest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/actions"
	"github.com/roost-dev/roost/store/labels"
	"github.com/roost-dev/roost/store/trash"
	"github.com/roost-dev/roost/task"
)

// TS0 is the time before the first message, in Unix milliseconds.
const TS0 = 1700000000000

// Open opens a store whose clock does not move and which takes files as settled at once.
func Open(t testing.TB, root string, sources ...string) *store.Store {
	t.Helper()
	return OpenWith(t, store.Options{Root: root, Sources: sources})
}

// OpenWith is Open with other options. Clock and program are set when they are not given.
func OpenWith(t testing.TB, o store.Options) *store.Store {
	t.Helper()
	if o.Now == nil {
		o.Now = func() int64 { return TS0 + 100_000 }
	}
	if o.Program == "" {
		o.Program = "store test"
	}
	s := Must[*store.Store](t)(store.Open(o))
	s.SkipWaits()
	return s
}

// SkipInShort leaves a test out of the short run, which looks for races: it takes seconds there and starts no
// goroutine.
func SkipInShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("one goroutine, and seconds under the race detector")
	}
}

// Must gives the value of a call, and fails the test on its error.
func Must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// Check fails the test on an error.
func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Tree is every path below dir with mode, time and a digest of the content.
func Tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		text := fmt.Sprint(info.Mode(), info.ModTime().UnixNano())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path) //nolint:gosec // the test owns the folder
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %d %x", len(data), sha256.Sum256(data))
		}
		out[path] = text
		return nil
	})
	Check(t, err)
	return out
}

// Contents are the digests of the regular files below dir by relative path, without Roost's own notes.
func Contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for path, text := range Tree(t, dir) {
		rel := Must[string](t)(filepath.Rel(dir, path))
		if info := Must[os.FileInfo](t)(os.Lstat(path)); info.Mode().IsRegular() && !strings.HasPrefix(rel, ".roost-") {
			out[rel] = text[strings.LastIndex(text, " ")+1:]
		}
	}
	return out
}

// Exists reports whether a folder holds a name.
func Exists(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

// UIRow is a row of ui_messages.json.
func UIRow(i int, text string) string {
	return fmt.Sprintf(`{"ts":%d,"type":"say","say":"text","text":%q}`, TS0+i, text)
}

// APIRow is a row of api_conversation_history.json.
func APIRow(i int, role, text string) string {
	return fmt.Sprintf(`{"role":%q,"content":[{"type":"text","text":%q}],"ts":%d}`, role, text, TS0+i)
}

// Array is a file of rows.
func Array(rows ...string) string { return "[" + strings.Join(rows, ",") + "]" }

// Write writes a file, and makes its folder.
func Write(t testing.TB, dir, name, text string) {
	t.Helper()
	Check(t, os.MkdirAll(dir, 0o700))
	Check(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

// Read reads a file.
func Read(t testing.TB, dir, name string) string {
	t.Helper()
	return string(Must[[]byte](t)(os.ReadFile(filepath.Join(dir, name))))
}

// RooStorage is an editor's storage with one task of Roo.
func RooStorage(t testing.TB, id string) (storage, dir string) {
	t.Helper()
	storage = filepath.Join(t.TempDir(), "rooveterinaryinc.roo-cline")
	dir = filepath.Join(storage, "tasks", id)
	Write(t, dir, roofmt.UIName, Array(UIRow(1, "do it"), UIRow(2, "done so far")))
	Write(t, dir, roofmt.APIName, Array(APIRow(1, "user", "do it"), APIRow(2, "assistant", "done so far")))
	Write(t, dir, roofmt.ItemName,
		fmt.Sprintf(`{"id":%q,"number":3,"ts":%d,"task":"do it","novel":{"a":[1, 2]},"workspace":"/w","mode":"code"}`, id, TS0+2))
	Write(t, dir, roofmt.MetadataName, `{"files_in_context": [ {"path":"a.go","record_state":"active"} ]}`)
	return storage, dir
}

// Message is the event that adds a row to a task.
func Message(k *store.Task, h task.History, raw string) task.MessageAdded {
	return task.MessageAdded{History: h, Message: k.State().NextMessage(), Body: task.Body{Raw: json.RawMessage(raw)}}
}

// Commit adds a row to a task, durably.
func Commit(t testing.TB, k *store.Task, h task.History, raw string) {
	t.Helper()
	Check(t, k.Commit(context.Background(), Message(k, h, raw)))
	Check(t, k.Barrier(context.Background()))
}

// Create makes a task with one message.
func Create(t testing.TB, s *store.Store, id string) *store.Task {
	t.Helper()
	return Must[*store.Task](t)(s.Create(context.Background(), task.Created{Task: id, Title: "T " + id, Number: 1, CreatedAt: TS0},
		task.MessageAdded{History: task.UI, Message: 1, Body: task.Body{Raw: json.RawMessage(UIRow(1, "hello "+id))}}))
}

// Find resolves a task's name.
func Find(t testing.TB, s *store.Store, given string) store.Ref {
	t.Helper()
	return Must[store.Ref](t)(s.Find(context.Background(), given))
}

// Own takes a task over.
func Own(t testing.TB, s *store.Store, given string) *store.Owned {
	t.Helper()
	return Must[*store.Owned](t)(s.Own(context.Background(), Find(t, s, given)))
}

// Close closes an owned task.
func Close(t testing.TB, k *store.Task) { t.Helper(); Check(t, k.Close(context.Background())) }

// View opens a task for reading until the test ends.
func View(t testing.TB, s *store.Store, given string) *store.View {
	t.Helper()
	v := Must[*store.View](t)(s.Read(context.Background(), Find(t, s, given)))
	t.Cleanup(func() { Check(t, v.Close()) })
	return v
}

// List is what a list shows.
func List(t testing.TB, s *store.Store, f store.Filter) store.Listing {
	t.Helper()
	return Must[store.Listing](t)(s.List(context.Background(), f))
}

// Rows are the bytes of both histories of a state, one message a line.
func Rows(s *task.State) string {
	var b strings.Builder
	for _, read := range []func() ([][]byte, error){s.RawUI, s.RawAPI} {
		list, err := read()
		if err != nil {
			fmt.Fprintln(&b, err)
		}
		for _, r := range list {
			b.Write(r)
			b.WriteByte('\n')
		}
		b.WriteString("--\n")
	}
	return b.String()
}

// IndexIDs are the ids in Roo's history index of a root, in its order.
func IndexIDs(t testing.TB, s *store.Store) []string {
	t.Helper()
	index := Must[*roofmt.Index](t)(roofmt.ReadIndex(s.TasksDir()))
	var ids []string
	for _, e := range index.Entries {
		var item struct{ ID string }
		Check(t, json.Unmarshal(e, &item))
		ids = append(ids, item.ID)
	}
	return ids
}

// SessionID is the session that ClineData makes, and SubagentID the subagent that ClineIndex adds to it.
const (
	SessionID  = "1776200000000_ab3xz"
	SubagentID = SessionID + "__bob"
)

// ClineData is a data folder of Cline with one session.
func ClineData(t testing.TB) (data, dir string) {
	t.Helper()
	data = filepath.Join(t.TempDir(), ".cline", "data")
	dir = filepath.Join(data, "sessions", SessionID)
	Write(t, dir, SessionID+".json", `{"version":1,"session_id":"`+SessionID+`","status":"completed","cwd":"/shed","prompt":"mend the gate","metadata":{}}`)
	Write(t, dir, roofmt.TranscriptName(SessionID), `{
  "version": 1,
  "messages": [
    {"role":"user","content":[{"type":"text","text":"<user_input mode=\"act\">mend the gate</user_input>"}],"id":"a","ts":1776200000001},
    {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"t1","name":"read_files","input":{"paths":["a"]}}],"id":"b","ts":1776200000002,"metrics":{"inputTokens":100,"outputTokens":7,"cacheReadTokens":40,"cacheWriteTokens":0,"cost":0.0123}},
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","name":"read_files","content":"x"}],"id":"c","ts":1776200000003}
  ]
}
`)
	return data, dir
}

// ClineIndex gives ClineData a subagent and an index that is in use: all of it is in the index's log.
func ClineIndex(t testing.TB) (data, dir string, db *sql.DB) {
	t.Helper()
	data, dir = ClineData(t)
	Write(t, dir, "bob.messages.json", `{"version":1,"agent":"subagent","messages":[
		{"role":"user","content":[{"type":"text","text":"count the posts"},{"type":"image","data":"iVBORw0KGgo=","mediaType":"image/png"}],"id":"x","ts":1776200000005},
		{"role":"assistant","content":[{"type":"text","text":"nine"}],"id":"y","ts":1776200000006,"metrics":{"inputTokens":5,"outputTokens":1,"cost":0.002}}]}`)
	Check(t, os.MkdirAll(filepath.Join(data, "db"), 0o700))
	db = Must[*sql.DB](t)(sql.Open("sqlite", "file:"+filepath.ToSlash(filepath.Join(data, "db", "sessions.db"))+"?_pragma=journal_mode(WAL)&_pragma=wal_autocheckpoint(0)"))
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { Check(t, db.Close()) })
	for _, s := range []string{
		"CREATE TABLE sessions(session_id TEXT PRIMARY KEY, status TEXT, started_at TEXT, cwd TEXT, provider TEXT, model TEXT, prompt TEXT, parent_session_id TEXT, metadata_json TEXT)",
		`INSERT INTO sessions VALUES('` + SessionID + `', 'cancelled', '2026-04-14T20:53:20.000Z', '/shed', 'anthropic', 'm-1', 'mend the gate', NULL, '{"title":"The gate","isFavorited":true}')`,
		`INSERT INTO sessions VALUES('` + SubagentID + `', 'failed', '2026-04-14T20:53:21.000Z', '/shed', 'anthropic', 'm-2', 'count the posts', '` + SessionID + `', '{}')`,
	} {
		Must[sql.Result](t)(db.Exec(s))
	}
	return data, dir, db
}

// Delete deletes a task.
func Delete(t testing.TB, s *store.Store, given string) api.DeletedTask {
	t.Helper()
	return Must[api.DeletedTask](t)(trash.Delete(context.Background(), s, Find(t, s, given)))
}

// TrashNames are the names in the trash, in their order.
func TrashNames(t testing.TB, s *store.Store) string {
	t.Helper()
	var out []string
	for _, d := range Must[[]api.DeletedTask](t)(trash.List(context.Background(), s)) {
		out = append(out, d.Name)
	}
	return strings.Join(out, " ")
}

// Label changes the labels of a task.
func Label(t testing.TB, s *store.Store, given string, c labels.Change) api.Summary {
	t.Helper()
	return Must[api.Summary](t)(labels.Set(context.Background(), s, Find(t, s, given), c))
}

// Undo undoes or redoes the newest action of a task.
func Undo(t testing.TB, s *store.Store, given string, redo bool) api.Action {
	t.Helper()
	a, _, err := actions.Undo(context.Background(), s, given, actions.Options{Redo: redo})
	Check(t, err)
	return a
}

// Labels are the labels of a row as text.
func Labels(sum api.Summary) string {
	return fmt.Sprintf("%s %v %v", sum.Title, sum.Tags, sum.Pinned)
}

// Listed is a task's row in the list. It must have the labels that reading the task gives.
func Listed(t testing.TB, s *store.Store, id string) api.Summary {
	t.Helper()
	all := List(t, s, store.Filter{TaskFilter: api.TaskFilter{Empty: true}}).Items
	i := slices.IndexFunc(all, func(sum api.Summary) bool { return sum.ID == id })
	if i < 0 {
		t.Fatalf("%s is not listed", id)
	}
	if got := Labels(View(t, s, id).Summary); got != Labels(all[i]) {
		t.Errorf("read %s, listed %s", got, Labels(all[i]))
	}
	return all[i]
}
