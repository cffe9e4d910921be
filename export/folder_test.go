package export

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// files are the names and bytes in a folder.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	list, err := os.ReadDir(dir)
	fixture.NoError(t, err)
	for _, e := range list {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		fixture.NoError(t, err)
		out[e.Name()] = string(data)
	}
	return out
}

func TestFolderIsExact(t *testing.T) {
	in := folder(oddUI+"\n", " [{\"role\":\"user\",\"content\":\""+secret+"\"}]")
	s := newStorage(t, in)
	before := tree(t, s.task)
	to := filepath.Join(s.dir, "deep", "out", "t1")
	r, err := Folder(t.Context(), to, s.open("t1"))
	fixture.NoError(t, err)
	if diff := cmp.Diff(in, files(t, to)); diff != "" || len(r.Unread) > 0 {
		t.Errorf("got %+v\n%s, want diff = \"\" and len(r.Unread) <= 0", r, diff)
	}
	if diff := cmp.Diff(before, tree(t, s.task)); diff != "" {
		t.Errorf("exporting changed the folder: %s", diff)
	}
	_, err = Folder(t.Context(), to, s.open("t1")) // again
	fixture.NoError(t, err)
	if diff := cmp.Diff(in, files(t, to)); diff != "" {
		t.Error(diff)
	}
}

// What Roo could not parse is made parsable, and the bytes that were there stay beside it.
func TestFolderOfADamagedTask(t *testing.T) {
	torn := `[{"ts":1,"type":"say","say":"text","text":"kept"},{"ts":2,"type":"sa`
	api := `[{"role":"user","content":"x","ts":1}]`
	s := newStorage(t, map[string]string{roofmt.UIName: torn, roofmt.APIName: api})
	to := filepath.Join(s.dir, "out")
	_, err := Folder(t.Context(), to, s.open("t1"))
	fixture.NoError(t, err)
	want := map[string]string{roofmt.UIName: `[{"ts":1,"type":"say","say":"text","text":"kept"}]`, roofmt.UIName + ".damaged": torn, roofmt.APIName: api,
		roofmt.ItemName: `{"id":"t1","number":1,"ts":1,"task":"kept","tokensIn":0,"tokensOut":0,"totalCost":0,"size":106}`}
	if diff := cmp.Diff(want, files(t, to)); diff != "" {
		t.Error(diff)
	}
}

// Roo lists no folder without a history item. Older versions kept the items of all tasks in one index.
func TestFolderOfATaskWhoseItemIsInAnIndex(t *testing.T) {
	in := folder(oddUI, "[]")
	delete(in, roofmt.ItemName)
	s := newStorage(t, in)
	const row = `{"id":"t1","ts":5,"task":"its words","workspace":"/garden"}`
	fixture.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(s.task), roofmt.IndexName), []byte(`{"version":1,"entries":[`+row+`]}`), 0o600))
	to := filepath.Join(s.dir, "out")
	_, err := Folder(t.Context(), to, s.open("t1"))
	fixture.NoError(t, err)
	in[roofmt.ItemName] = row
	if diff := cmp.Diff(in, files(t, to)); diff != "" {
		t.Error(diff)
	}
}

func TestFolderOfOurOwnTask(t *testing.T) { testFolderOfOurOwnTask(t) }

// While a task waits for its subtask, the results so far are in Roo's file and not in the journal.
func TestFolderOfATaskThatWaits(t *testing.T) {
	testFolderOfOurOwnTask(t, task.MessageAdded{History: task.API, Message: 3, Body: task.Body{Raw: json.RawMessage(`{"role":"assistant","content":[` +
		`{"type":"tool_use","id":"c1","name":"read_file","input":{}},{"type":"tool_use","id":"c2","name":"new_task","input":{"message":"x"}}],"ts":1776200000002}`)}},
		task.SubtaskStarted{Child: "kid", Call: "c2", Message: 3, Mode: "code"},
		task.ToolFinished{Call: "c1", Name: "read_file", Outcome: "ok", Result: json.RawMessage(`{"type":"tool_result","tool_use_id":"c1","content":"what it read"}`)})
}

func testFolderOfOurOwnTask(t *testing.T, more ...task.Event) {
	t.Helper()
	s := newStorage(t, nil)
	s.own("mine", "my words")
	if len(more) > 0 {
		owned, err := s.st.Own(t.Context(), s.st.OwnRef("mine"))
		fixture.NoError(t, err)
		fixture.NoError(t, owned.Task.CommitSynced(t.Context(), more...))
		fixture.NoError(t, owned.Task.Close(t.Context()))
	}
	v := s.open("mine")
	to := filepath.Join(s.dir, "out")
	_, err := Folder(t.Context(), to, v)
	fixture.NoError(t, err)
	got := files(t, to)
	for _, name := range []string{roofmt.UIName, roofmt.APIName, roofmt.ItemName, roofmt.MetadataName} {
		data, err := os.ReadFile(filepath.Join(v.Ref.Dir, name))
		if err == nil && got[name] != string(data) {
			t.Errorf("%s is %q, want %q", name, got[name], data)
		}
	}
	if len(got) != 4 {
		t.Errorf("files %v", got)
	}
	if len(more) > 0 && !strings.Contains(got[roofmt.APIName], "what it read") {
		t.Errorf("got %s, want the results so far in it", got[roofmt.APIName])
	}
	// Its files are derived: without them the journal gives the same ones.
	for name := range got {
		fixture.NoError(t, os.Remove(filepath.Join(v.Ref.Dir, name)))
	}
	fixture.NoError(t, v.Close())
	again := filepath.Join(s.dir, "again")
	_, err = Folder(t.Context(), again, s.open("mine"))
	fixture.NoError(t, err)
	made := files(t, again)
	for _, name := range []string{roofmt.UIName, roofmt.APIName} {
		if made[name] != got[name] {
			t.Errorf("%s from the journal is %q, want %q", name, made[name], got[name])
		}
	}
	if !strings.Contains(made[roofmt.ItemName], `"id":"mine"`) || !strings.Contains(made[roofmt.MetadataName], "files_in_context") {
		t.Errorf("made %v", made)
	}
}

func TestToFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.md")
	text := func(s string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
	}
	fixture.NoError(t, os.WriteFile(path, []byte("old"), 0o644))
	for name, failing := range map[string]func() error{
		"writing": func() error {
			return ToFile(path, func(w io.Writer) error { io.WriteString(w, "half"); return errFull }, nil) //nolint:errcheck // the next error is the point
		},
		"checking": func() error { return ToFile(path, text("bad"), func(*os.File) error { return errFull }) },
	} {
		if err := failing(); err == nil {
			t.Errorf("%s: no error", name)
		}
		if diff := cmp.Diff(map[string]string{"out.md": "old"}, files(t, dir)); diff != "" {
			t.Errorf("after a failure of %s: %s", name, diff)
		}
	}
	fixture.NoError(t, ToFile(path, text("new"), nil))
	if diff := cmp.Diff(map[string]string{"out.md": "new"}, files(t, dir)); diff != "" {
		t.Error(diff)
	}
	if err := ToFile(filepath.Join(dir, "no", "out"), text("x"), nil); err == nil {
		t.Error("a folder was made up")
	}
	if runtime.GOOS == "windows" {
		return
	}
	info, err := os.Stat(path)
	fixture.NoError(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	link := filepath.Join(dir, "link")
	fixture.NoError(t, os.Symlink("out.md", link))
	fixture.NoError(t, ToFile(link, text("through"), nil))
	if data, err := os.ReadFile(path); err != nil || string(data) != "through" {
		t.Errorf("behind the link: %q, %v", data, err)
	}
	fixture.NoError(t, ToFile(os.DevNull, text("gone"), nil))
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("%s was replaced", os.DevNull)
	}
}

// A task may change while it is exported: what was found is copied, also when its name
// leads to nothing by then.
func TestWhatIsCopiedIsHeldFromWhenItIsFound(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "ui_messages.json")
	if err := os.WriteFile(path, []byte("[cut"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	from := originals{root: root}
	defer from.close()
	there, copied, err := from.copyOf("ui_messages.json")
	if !there || err != nil {
		t.Fatal(there, err)
	}
	if runtime.GOOS != "windows" { // there an open file stays
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // a write may be made anew
		var got strings.Builder
		if err := copied.Write(&got); err != nil || got.String() != "[cut" {
			t.Errorf("got %q, %v, want no error and got.String() = \"[cut\"", got.String(), err)
		}
	}
	for name, make := range map[string]func(string) error{
		"nothing":  func(string) error { return nil },
		"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		if err := make(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if there, _, err := from.copyOf(name); there || err != nil {
			t.Errorf("%s: got %t, %v, want not there and no error", name, there, err)
		}
	}
}
