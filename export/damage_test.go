package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// damagedTask is a task of our own in whose journal one row of many can no longer be
// read: what is shown of it is found by an index, so only reading the row tells.
func damagedTask(t *testing.T, rows, lost int) *store.View {
	t.Helper()
	s := newStorage(t, nil)
	k, err := s.st.Create(t.Context(), task.Created{Task: "mine", Title: "long", Number: 1, CreatedAt: 1776200000000})
	fixture.NoError(t, err)
	for i := range rows {
		row := fmt.Sprintf(`{"ts":%d,"type":"say","say":"text","text":"row %d."}`, 1776200000000+i, i+1)
		fixture.NoError(t, k.Commit(t.Context(), task.MessageAdded{History: task.UI, Message: k.State().NextMessage(), Body: task.Body{Raw: []byte(row)}}))
	}
	log := filepath.Join(k.Ref.Log, "journal.jsonl")
	fixture.NoError(t, k.Close(t.Context()))
	info, err := os.Stat(log)
	fixture.NoError(t, err)
	data, err := os.ReadFile(log)
	fixture.NoError(t, err)
	data[bytes.Index(data, fmt.Appendf(nil, "row %d.", lost))] ^= 1
	f, err := os.OpenFile(log, os.O_WRONLY, 0)
	fixture.NoError(t, err)
	_, err = f.WriteAt(data, 0)
	fixture.NoError(t, err)
	fixture.NoError(t, f.Close())
	fixture.NoError(t, os.Chtimes(log, info.ModTime(), info.ModTime())) // as a bad disk does it
	return s.open("mine")
}

// One row that cannot be read costs that row: it is named, and the others are written.
func TestUnreadableRowIsNamed(t *testing.T) {
	const rows, lost = 450, 251
	v := damagedTask(t, rows, lost)
	for name, form := range map[string]func(io.Writer) (api.Exported, error){
		"json": func(w io.Writer) (api.Exported, error) { return JSON(t.Context(), w, v, Options{}) },
		"html": func(w io.Writer) (api.Exported, error) { return HTML(t.Context(), w, v, Options{}) },
		"md":   func(w io.Writer) (api.Exported, error) { return Markdown(t.Context(), w, v, Options{}) },
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			r, err := form(&out)
			fixture.NoError(t, err)
			if len(r.Unread) == 0 || len(r.Unread) != 1 || r.Unread[0].Number != lost || r.Unread[0].History != "ui" || r.Unread[0].Problem == "" {
				t.Errorf("unread %+v", r.Unread)
			}
			for i := 1; i <= rows; i++ {
				if strings.Contains(out.String(), fmt.Sprintf("row %d.", i)) == (i == lost) {
					t.Fatalf("row %d: lost is %d", i, lost)
				}
			}
			switch name {
			case "json":
				var got struct {
					UI     []json.RawMessage
					Unread []api.Unread
				}
				fixture.NoError(t, json.Unmarshal(out.Bytes(), &got))
				if len(got.UI) != rows-1 || len(got.Unread) != 1 {
					t.Errorf("%d rows, %+v", len(got.UI), got.Unread)
				}
			case "html":
				if !strings.Contains(out.String(), "message 251 (ui) cannot be read") {
					t.Error("the page does not say so")
				}
			}
		})
	}
}

// While somebody works on a task, its files are behind its journal. The journal is
// what counts.
func TestTaskThatIsWorkedOn(t *testing.T) {
	s := newStorage(t, nil)
	s.own("mine", "first words")
	owned, err := s.st.Own(t.Context(), s.open("mine").Ref)
	fixture.NoError(t, err)
	k := owned.Task
	defer k.Close(t.Context()) //nolint:errcheck // the test is over
	row := `{"ts":1776200000005,"type":"say","say":"text","text":"newest"}`
	fixture.NoError(t, k.Commit(t.Context(), task.MessageAdded{History: task.UI, Message: k.State().NextMessage(), Body: task.Body{Raw: []byte(row)}}))
	fixture.NoError(t, k.Barrier(t.Context()))
	v := s.open("mine")
	var out bytes.Buffer
	_, err = JSON(t.Context(), &out, v, Options{})
	fixture.NoError(t, err)
	if !strings.Contains(out.String(), row) {
		t.Error("the newest row is not in the JSON")
	}
	_, files := archived(t, v)
	if !strings.Contains(files["tasks/mine/task/journal.jsonl"], "newest") {
		t.Error("the newest row is not in the archive's journal")
	}
	dir := filepath.Join(s.dir, "out")
	_, err = Folder(t.Context(), dir, v)
	fixture.NoError(t, err)
	data, err := os.ReadFile(filepath.Join(dir, roofmt.UIName))
	fixture.NoError(t, err)
	var rows []json.RawMessage
	fixture.NoError(t, json.Unmarshal(data, &rows))
	if len(rows) < 1 || !strings.Contains(string(data), "first words") || !strings.Contains(string(data), "newest") {
		t.Errorf("the folder has %s", data)
	}
}

// meter watches how much memory is held while an export writes.
type meter struct{ written, looked, most uint64 }

func (m *meter) Write(p []byte) (int, error) {
	m.written += uint64(len(p))
	if m.written-m.looked > 4<<20 {
		m.looked = m.written
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		m.most = max(m.most, s.HeapInuse)
	}
	return len(p), nil
}

func TestMemoryDoesNotGrowWithTheTask(t *testing.T) {
	if testing.Short() {
		t.Skip("writes a large task")
	}
	const bound = 64 << 20
	line, err := json.Marshal(map[string]any{"role": "user", "ts": 1, "type": "say", "say": "command_output", "text": strings.Repeat("some words of output\n", 5000), "content": strings.Repeat("some words\n", 9000)})
	fixture.NoError(t, err)
	all := "[" + strings.Repeat(string(line)+",", 500) + string(line) + "]" // 100 MB
	s := newStorage(t, folder(all, all))
	size := uint64(len(all))
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // whatever GOGC is
	runtime.GC()
	v := s.open("t1")
	for name, form := range map[string]func(io.Writer) error{
		"md":      func(w io.Writer) error { _, err := Markdown(t.Context(), w, v, Options{}); return err },
		"json":    func(w io.Writer) error { _, err := JSON(t.Context(), w, v, Options{}); return err },
		"html":    func(w io.Writer) error { _, err := HTML(t.Context(), w, v, Options{}); return err },
		"archive": func(w io.Writer) error { _, err := Archive(t.Context(), w, one(v), nothingKept); return err },
	} {
		var m meter
		fixture.NoError(t, form(&m))
		if m.most > bound {
			t.Errorf("%s held %d MB for a history of %d MB", name, m.most>>20, size>>20)
		}
	}
}

// The folder of a task that lost a row is made from the rest, its small files too.
func TestFolderOfATaskThatLostARow(t *testing.T) {
	v := damagedTask(t, 450, 251)
	for _, name := range []string{roofmt.UIName, roofmt.ItemName} {
		fixture.NoError(t, os.Remove(filepath.Join(v.Ref.Dir, name)))
	}
	dir := filepath.Join(t.TempDir(), "out")
	r, err := Folder(t.Context(), dir, v)
	fixture.NoError(t, err)
	var rows []json.RawMessage
	got := files(t, dir)
	fixture.NoError(t, json.Unmarshal([]byte(got[roofmt.UIName]), &rows))
	if len(rows) != 449 || len(r.Unread) != 1 || !json.Valid([]byte(got[roofmt.ItemName])) {
		t.Errorf("%d rows, %+v, item %s", len(rows), r, got[roofmt.ItemName])
	}
}
