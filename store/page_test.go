package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/payload"
	"github.com/roost-dev/roost/task"
)

// long makes a closed task of n rows in the UI history, some 100 bytes each.
func long(t *testing.T, s *Store, id string, n int) (dir string) {
	t.Helper()
	k := create(t, s, id)
	for i := range n {
		fixture.NoError(t, k.Commit(context.Background(), add(k, task.UI, uiRow(i+1, fmt.Sprintf("row %d %s", i, strings.Repeat("x", 60))))))
	}
	closeTask(t, k)
	return k.Ref.Log
}

// deface turns one byte of a commit in the middle of the log, and leaves length
// and, if asked, the time of the file as they were.
func deface(t *testing.T, dir, where string, quietly bool) {
	t.Helper()
	path := filepath.Join(dir, "journal.jsonl")
	info := fixture.Must[os.FileInfo](t)(os.Stat(path))
	data := fixture.Must[[]byte](t)(os.ReadFile(path))
	at := bytes.Index(data, []byte(where))
	if at < 0 {
		t.Fatalf("no commit says %q", where)
	}
	data[at] ^= 1
	f := fixture.Must[*os.File](t)(os.OpenFile(path, os.O_WRONLY, 0))
	_, err := f.WriteAt(data[at:at+1], int64(at))
	fixture.NoError(t, errors.Join(err, f.Close()))
	if quietly {
		fixture.NoError(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
	}
}

// A page costs the page: what lies before it is not looked at, so that damage in
// it shows when it is asked for, and in a check.
func TestAPageIsReadFromTheSnapshot(t *testing.T) {
	s := open(t, t.TempDir())
	dir := long(t, s, "long-task", 3000)
	deface(t, dir, "row 1000 ", true)

	v := view(t, s, "long-task")
	page, err := v.State.Raws(v.State.UI()[2991:])
	if err != nil || len(page) != 10 || !strings.Contains(string(page[9]), "row 2999 ") {
		t.Fatalf("the last page: %s %v", page, err)
	}
	if len(v.Summary.Damaged) != 0 || v.Summary.Messages.UI != 3001 {
		t.Errorf("got %+v, want len(v.Summary.Damaged) = 0 and v.Summary.Messages.UI = 3001", v.Summary)
	}
	_, err = v.State.Raws(v.State.UI()[1000:1003])
	var damage *journal.DamageError
	if !errors.As(err, &damage) {
		t.Errorf("a damaged message was read: %v", err)
	}
	report := fixture.Must[CheckReport](t)(Rooms.Check(context.Background(), s, []string{"long-task"}, false))
	if len(report.Damaged) == 0 || !strings.Contains(report.Damaged[0].Lost, "commit") {
		t.Errorf("the check saw nothing: %+v", report)
	}
}

// A closed log that was written to by something else is looked at whole. What it lost and
// Roo's file still holds is shown, and waits to be taken in.
func TestALogThatWasTouchedIsReadWhole(t *testing.T) {
	s := open(t, t.TempDir())
	dir := long(t, s, "touched", 300)
	deface(t, dir, "row 100 ", false)
	v := view(t, s, "touched")
	if len(v.Summary.Damaged) != 1 || !strings.HasPrefix(v.Summary.Damaged[0].Lost, "commit ") || len(v.State.UI()) != 301 || !v.Summary.Pending {
		t.Errorf("%d rows, damaged %+v", len(v.State.UI()), v.Summary.Damaged)
	}
}

// Without its index, or with one of another version, a task reads the same.
func TestTheSnapshotIsDerived(t *testing.T) {
	slow(t)
	s := open(t, t.TempDir())
	dir := long(t, s, "derived", 400)
	want := view(t, s, "derived")
	rows := fixture.Must[[][]byte](t)(want.State.RawUI())
	for name, spoil := range map[string]func(path string) error{
		"deleted": os.Remove,
		"cut":     func(p string) error { return os.Truncate(p, 100) },
		"garbage": func(p string) error { return os.WriteFile(p, bytes.Repeat([]byte("roostix1"), 100), 0o600) },
		"of another version": func(p string) error {
			data, err := os.ReadFile(p)
			return errors.Join(err, os.WriteFile(p, bytes.Replace(data, []byte("roost state "), []byte("roost STATE "), 1), 0o600))
		},
	} {
		fixture.NoError(t, spoil(filepath.Join(dir, "journal.idx")))
		v := view(t, s, "derived")
		if d := cmp.Diff(want.Summary, v.Summary); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", name, d)
		}
		if d := cmp.Diff(rows, fixture.Must[[][]byte](t)(v.State.RawUI())); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", name, d)
		}
		o := own(t, s, "derived") // makes it anew
		fixture.NoError(t, o.Task.Commit(context.Background(), task.Changed{}))
		closeTask(t, o.Task)
	}
}

// What comes behind the snapshot is folded on top, as after a kill.
func TestCommitsBehindTheSnapshot(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := context.Background()
	k := create(t, s, "behind")
	for i := range 50 {
		commit(t, k, task.UI, uiRow(i+1, fmt.Sprint("row ", i)))
	}
	fixture.NoError(t, k.saveSnapshot(ctx, 1))
	m := k.State().UI()[3]
	fixture.NoError(t, k.Commit(ctx,
		task.MessageTextSaved{Message: m.ID, Text: " and more"},
		task.MessageHidden{Messages: []uint64{k.State().UI()[5].ID}, Reason: "rewind"},
		task.UsageChanged{Input: 7, Output: 8}))
	fixture.NoError(t, k.Barrier(ctx))
	v := view(t, s, "behind") // k still owns it
	if d := cmp.Diff(fixture.Must[[][]byte](t)(k.State().RawUI()), fixture.Must[[][]byte](t)(v.State.RawUI())); d != "" {
		t.Error(d)
	}
	if v.State.UI()[3].Text() != "row 2 and more" || v.State.Usage != k.State().Usage {
		t.Errorf("got %q %+v, want v.State.UI()[3].Text() = \"row 2 and more\" and v.State.Usage = k.State().Usage",
			v.State.UI()[3].Text(), v.State.Usage)
	}
	closeTask(t, k)
}

// A line of the journal stays readable whatever a step holds.
func TestBigPayloadsLieInBlobs(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := context.Background()
	k := create(t, s, "big")
	big := strings.Repeat("y", 300<<10)
	id := k.State().NextMessage()
	fixture.NoError(t, k.Commit(ctx, task.MessageAdded{History: task.API, Message: id, Body: task.Body{Raw: []byte(
		`{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"n","input":{"k":"` + big + `"}}],"ts":5}`)}}))
	fixture.NoError(t, k.Commit(ctx, task.ToolFinished{Call: "c1", Name: "n", Outcome: "ok", Result: []byte(`{"type":"tool_result","tool_use_id":"c1","content":"` + big + `"}`)}))
	fixture.NoError(t, k.Commit(ctx, task.MessageAdded{History: task.API, Message: id + 1, Body: task.Body{Compose: []task.Piece{{Literal: `{"role":"user","content":[`}, {Result: "c1"}, {Literal: `],"ts":6}`}}}}))
	closeTask(t, k)
	if info := fixture.Must[os.FileInfo](t)(os.Stat(filepath.Join(k.Ref.Log, "journal.jsonl"))); info.Size() > 8<<10 {
		t.Errorf("the journal has %d bytes", info.Size())
	}
	v := view(t, s, "big")
	api := fixture.Must[[][]byte](t)(v.State.RawAPI())
	if len(api) != 2 || len(api[0]) < len(big) || !bytes.Contains(api[1], []byte(big)) {
		t.Errorf("%d messages, %d and %d bytes", len(api), len(api[0]), len(api[len(api)-1]))
	}
	if input := v.State.Call("c1").Input(); len(input) < len(big) {
		t.Errorf("the input has %d bytes", len(input))
	}
	health := fixture.Must[journal.Health](t)(v.Log.Health(ctx))
	if len(health.MissingBlobs)+len(health.DamagedBlobs) != 0 {
		t.Errorf("got %+v, want len(health.MissingBlobs)+len(health.DamagedBlobs) = 0", health)
	}
}

// A long history of another tool is one commit, and a short line.
func TestAdoptingALongHistory(t *testing.T) {
	slow(t)
	storage, dir := rooStorage(t, "long-one")
	var list []string
	const total = 20_000
	for i := range total {
		list = append(list, uiRow(i+1, fmt.Sprint("row ", i)))
	}
	write(t, dir, roofmt.UIName, array(list...))
	s := open(t, t.TempDir(), storage)
	o := own(t, s, "long-one")
	closeTask(t, o.Task)
	for c, err := range fixture.Must[journal.Reader](t)(s.Follow(t.Context(), o.Task.Ref)).Read(context.Background(), 1) {
		fixture.NoError(t, err)
		for _, e := range c.Events {
			if len(e) > payload.MaxInline {
				t.Errorf("an event of %d bytes: %.100s", len(e), e)
			}
		}
	}
	write(t, dir, roofmt.UIName, array(append(list, uiRow(total+1, "by the editor"))...))
	v := view(t, s, "long-one")
	if n := len(v.State.UI()); n != total+1 || v.State.UI()[n-1].Text() != "by the editor" {
		t.Errorf("%d rows", n)
	}
	o = own(t, s, "long-one")
	closeTask(t, o.Task)
	v = view(t, s, "long-one")
	if n := len(v.State.UI()); n != total+1 || v.State.UI()[n-1].Text() != "by the editor" || v.State.UI()[7].Text() != "row 7" {
		t.Errorf("%d rows after taking it in", n)
	}
}
