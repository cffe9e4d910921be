package roofmt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
)

const (
	uiRow  = `{"ts":%d,"type":"say","say":"text","text":"row \"%d\" {\"x\":[1]}"}`
	apiRow = `{"role":"user","content":[{"type":"text","text":"turn %d"}],"ts":%d}`
)

func uiList(n int) string {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = fmt.Sprintf(uiRow, 1000+i, i)
	}
	return "[" + strings.Join(rows, ",") + "]"
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, dir string) *roofmt.Folder {
	t.Helper()
	f, err := roofmt.Read(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// damaged reports whether something was lost or had to be recovered.
func damaged(f *roofmt.Folder) bool { return len(f.Losses) > 0 }

func TestReadStates(t *testing.T) {
	const ui, api = roofmt.UIName, roofmt.APIName
	bak := ".ui_messages.json.bak_200_abc.tmp"
	fresh := ".ui_messages.json.new_199_abd.tmp"
	for _, c := range []struct {
		name   string
		files  map[string]string
		state  roofmt.State
		len    int
		source string
		lost   bool
	}{
		{"plain", map[string]string{ui: uiList(3)}, roofmt.Present, 3, ui, false},
		{"pretty", map[string]string{ui: "[\n  {\n    \"ts\": 1,\n    \"type\": \"say\"\n  }\n]\n"}, roofmt.Present, 1, ui, false},
		{"no messages", map[string]string{ui: `[]`}, roofmt.Present, 0, ui, false},
		{"no file", nil, roofmt.Missing, 0, "", false},
		{"zero bytes", map[string]string{ui: ``}, roofmt.Empty, 0, ui, true},
		{"NULs", map[string]string{ui: strings.Repeat("\x00", 4096)}, roofmt.Empty, 0, ui, true},
		{"byte order mark", map[string]string{ui: "\ufeff" + uiList(2)}, roofmt.Damaged, 2, ui, true},
		{"NULs behind", map[string]string{ui: uiList(2) + "\x00\x00"}, roofmt.Damaged, 2, ui, true},
		{"tail of an older file behind", map[string]string{ui: uiList(2) + `xt":"q"},{"ts":5,"type":"ask","ask":"tool"}]`}, roofmt.Damaged, 3, ui, true},
		{"hole in the middle", map[string]string{ui: strings.Replace(uiList(5), `"ts":1002,"type"`, strings.Repeat("\x00", 16), 1)}, roofmt.Damaged, 4, ui, true},
		{"cut", map[string]string{ui: uiList(3)[:120]}, roofmt.Damaged, 1, ui, true},
		{"object", map[string]string{ui: `{"messages":[]}`}, roofmt.NotArray, 0, ui, true},
		{"missing with backup", map[string]string{bak: uiList(2)}, roofmt.Missing, 2, bak, true},
		{"missing with both", map[string]string{bak: uiList(2), fresh: uiList(3)}, roofmt.Missing, 3, fresh, true},
		{"backup is older and the new file torn", map[string]string{bak: uiList(2), fresh: uiList(3)[:130]}, roofmt.Missing, 2, bak, true},
		{"empty with backup", map[string]string{ui: ``, bak: uiList(2)}, roofmt.Empty, 2, bak, true},
		{"cut, and the backup holds more", map[string]string{ui: uiList(3)[:120], bak: uiList(2)}, roofmt.Damaged, 2, bak, true},
		{"cut, and the backup holds less", map[string]string{ui: uiList(5)[:300], bak: uiList(1)}, roofmt.Damaged, 4, ui, true},
		{"only a torn leftover", map[string]string{fresh: uiList(3)[:130]}, roofmt.Missing, 1, fresh, true},
		{"sound file beside leftovers", map[string]string{ui: uiList(1), bak: uiList(9)}, roofmt.Present, 1, ui, false},
		{"temporary file of classic Cline", map[string]string{"ui_messages.json.tmp.5.abc.json": uiList(2)}, roofmt.Missing, 2, "ui_messages.json.tmp.5.abc.json", true},
		{"old UI list", map[string]string{roofmt.LegacyName: uiList(2)}, roofmt.Missing, 2, roofmt.LegacyName, false},
		{"old name, but the API list", map[string]string{roofmt.LegacyName: `[{"role":"user","content":"x"}]`}, roofmt.Missing, 0, "", false},
		{"API only", map[string]string{api: `[]`}, roofmt.Missing, 0, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, c.files)
			before := listing(t, dir)
			f := read(t, dir)
			d := f.UI
			if d.State != c.state || d.Len() != c.len || d.Source != c.source || damaged(f) != c.lost {
				t.Errorf("state %v, %d messages from %q, losses %+v", d.State, d.Len(), d.Source, f.Losses)
			}
			for raw, err := range d.All() {
				if err != nil || !esjson.Valid(raw) {
					t.Errorf("got %s (%v), want no error and esjson.Valid(raw)", raw, err)
				}
			}
			if after := listing(t, dir); after != before {
				t.Errorf("reading changed the folder: %s", after)
			}
		})
	}
}

func TestReadLegacyAPIList(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{roofmt.LegacyName: `[{"role":"user","content":"x"},{"role":"assistant","content":[]}]`})
	f := read(t, dir)
	if f.API.Len() != 2 || f.API.Source != roofmt.LegacyName || f.UI.Len() != 0 {
		t.Errorf("%d API messages from %q", f.API.Len(), f.API.Source)
	}
}

func TestReadSmallFilesAndOthers(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		roofmt.ItemName: "{\"id\":\"a\",\"ts\":1}\n", roofmt.MetadataName: `{"files_in_context":[`, "notes.txt": "hi",
		".task_metadata.json.bak_7_x.tmp": `{"files_in_context":[]}`, ".roost-tmp_x": "ours",
	})
	for _, d := range []string{"command-output", "ui_messages.json.lock"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	f := read(t, dir)
	if string(f.Item) != "{\"id\":\"a\",\"ts\":1}\n" || string(f.Metadata) != `{"files_in_context":[]}` {
		t.Errorf("item %q, metadata %q", f.Item, f.Metadata)
	}
	if len(f.Losses) != 1 || f.Losses[0].File != roofmt.MetadataName {
		t.Errorf("losses %+v", f.Losses)
	}
	if len(f.Others) != 2 || f.Others[0].Name != "command-output" || !f.Others[0].Dir || f.Others[1] != (roofmt.Other{Name: "notes.txt"}) {
		t.Errorf("others %+v", f.Others)
	}
	if len(f.Locks) != 1 || f.Locks[0] != roofmt.UIName {
		t.Errorf("locks %v", f.Locks)
	}
	if !f.Empty() {
		t.Error("a folder without messages is empty")
	}
}

func TestReadErrors(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"file": "x"})
	if _, err := roofmt.Read(context.Background(), filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if _, err := roofmt.Read(context.Background(), filepath.Join(dir, "file")); !errors.Is(err, roofmt.ErrNotFolder) {
		t.Errorf("a file: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := roofmt.Read(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Error("reading created something")
	}
}

// A link must not lead a reader of untrusted folders to files outside.
func TestReadDoesNotLeaveTheFolder(t *testing.T) {
	top := t.TempDir()
	write(t, top, map[string]string{"secret.json": uiList(1)})
	dir := filepath.Join(top, "task")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../secret.json", filepath.Join(dir, roofmt.UIName)); err != nil {
		t.Skip(err)
	}
	if f := read(t, dir); f.UI.State != roofmt.Unreadable || f.UI.Len() != 0 || !damaged(f) {
		t.Errorf("state %v, %d messages", f.UI.State, f.UI.Len())
	}
}

func TestCutAtEveryByte(t *testing.T) {
	dir := t.TempDir()
	full := uiList(6)
	var ends []int
	at := 1
	for i := range 6 {
		at += len(fmt.Sprintf(uiRow, 1000+i, i))
		ends = append(ends, at)
		at++
	}
	for cut := range len(full) {
		write(t, dir, map[string]string{roofmt.UIName: full[:cut]})
		f, err := roofmt.Read(context.Background(), dir)
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		for want < len(ends) && ends[want] <= cut {
			want++
		}
		if f.UI.Len() != want || !damaged(f) {
			t.Fatalf("cut at %d: %d messages of %d, losses %v", cut, f.UI.Len(), want, f.Losses)
		}
		for i := range want {
			raw, err := f.UI.Raw(i)
			if err != nil || string(raw) != fmt.Sprintf(uiRow, 1000+i, i) {
				t.Fatalf("cut at %d: message %d is %s (%v)", cut, i, raw, err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTool(t *testing.T) {
	for _, c := range []struct {
		name, dir string
		files     map[string]string
		tool      roofmt.Tool
	}{
		{"path of Cline", "saoudrizwan.claude-dev/tasks/1", map[string]string{roofmt.UIName: uiList(1)}, roofmt.Cline},
		{"path of Kilo", "kilocode.kilo-code/tasks/1", map[string]string{roofmt.UIName: uiList(1)}, roofmt.Kilo},
		{"path of Zoo", "wecode-ai.zoo-code/tasks/1", nil, roofmt.Zoo},
		{"first row of Cline", "t", map[string]string{roofmt.UIName: `[{"ts":1,"type":"say","say":"task"}]`}, roofmt.Cline},
		{"key of Roo", "t", map[string]string{roofmt.UIName: `[{"ts":1,"type":"ask","ask":"tool","isProtected":false}]`}, roofmt.Roo},
		{"native tools", "t", map[string]string{roofmt.APIName: `[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"b","input":{}}]}]`, roofmt.ItemName: `{}`}, roofmt.Roo},
		{"tools as text", "t", map[string]string{roofmt.APIName: `[{"role":"assistant","content":"<ls>\n</ls>"}]`, roofmt.ContextName: `[]`}, roofmt.Cline},
		{"nothing to go by", "t", nil, roofmt.UnknownTool},
	} {
		dir := filepath.Join(t.TempDir(), filepath.FromSlash(c.dir))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, dir, c.files)
		if tool := read(t, dir).Tool; tool != c.tool {
			t.Errorf("%s: got %q, want %q", c.name, tool, c.tool)
		}
	}
}
