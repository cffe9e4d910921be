package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/payload"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/task"
)

// continued is a foreign task that Roost has continued, closed again.
func continued(t *testing.T) (s *Store, dir string, state string) {
	storage, dir := rooStorage(t, "live-one")
	s = open(t, t.TempDir(), storage)
	k := own(t, s, "live-one").Task
	commit(t, k, task.UI, uiRow(3, "three"))
	commit(t, k, task.UI, uiRow(4, "four"))
	commit(t, k, task.API, apiRow(3, "user", "three"))
	state = rows(k.State())
	closeTask(t, k)
	return s, dir, state
}

var (
	fourRows = []string{uiRow(1, "do it"), uiRow(2, "done so far"), uiRow(3, "three"), uiRow(4, "four")}
	threeAPI = []string{apiRow(1, "user", "do it"), apiRow(2, "assistant", "done so far"), apiRow(3, "user", "three")}
)

func with(list []string, more ...string) string {
	return array(append(list[:len(list):len(list)], more...)...)
}

func TestForeignWritesTakenIn(t *testing.T) {
	if testing.Short() {
		t.Skip("runs one goroutine, and is slow under the race detector")
	}
	for name, c := range map[string]struct {
		ui, api        string
		added, changed int
	}{
		"rows added":            {with(fourRows, uiRow(5, "five")), with(threeAPI, apiRow(5, "assistant", "five")), 2, 0},
		"row changed":           {array(fourRows[0], uiRow(2, "edited"), fourRows[2], fourRows[3]), array(threeAPI...), 0, 1},
		"row added in between":  {array(fourRows[0], uiRow(2, "done so far"), uiRow(2, "twin"), fourRows[2], fourRows[3]), array(threeAPI...), 1, 0},
		"only spelled new":      {"[ " + strings.Join(fourRows, " , ") + " ]", array(threeAPI...), 0, 0},
		"resume row comes anew": {with(fourRows, `{"ts":9,"type":"ask","ask":"resume_task"}`), array(threeAPI...), 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir, _ := continued(t)
			editor(t, dir, map[string]string{roofmt.UIName: c.ui, roofmt.APIName: c.api})
			pending := view(t, s, "live-one")
			before := rows(pending.State)
			o := own(t, s, "live-one")
			added, changed := 0, 0
			for _, in := range o.Task.Intakes() {
				if in.Refused != "" {
					t.Errorf("refused: %s", in.Refused)
				}
				added, changed = added+in.Added, changed+in.Changed
			}
			if added != c.added || changed != c.changed {
				t.Errorf("%d added, %d changed: %+v", added, changed, o.Task.Intakes())
			}
			if got := rows(o.Task.State()); got != before {
				t.Errorf("taken in %s\nread before %s", got, before)
			}
			closeTask(t, o.Task)
			if got := read(t, dir, roofmt.UIName); got != c.ui {
				t.Errorf("the editor's bytes were respelled: %s", got)
			}
			o = own(t, s, "live-one")
			if len(o.Task.Intakes()) != 0 {
				t.Errorf("taken in twice: %+v", o.Task.Intakes())
			}
			closeTask(t, o.Task)
		})
	}
}

func TestForeignWritesRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("runs one goroutine, and is slow under the race detector")
	}
	for name, ui := range map[string]string{
		"from memory":       array(fourRows[0], fourRows[1], uiRow(7, "the window's own")),
		"older memory":      array(fourRows[0], fourRows[1]),
		"head lost":         array(fourRows[2], fourRows[3]),
		"made empty list":   "[]",
		"cut":               with(fourRows)[:150],
		"emptied":           "",
		"not an array":      `{"a":1}`,
		"zeroes after loss": "\x00\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			s, dir, want := continued(t)
			editor(t, dir, map[string]string{roofmt.UIName: ui})
			if v := view(t, s, "live-one"); rows(v.State) != want || len(v.Pending) != 1 {
				t.Errorf("read: pending %+v, %s", v.Pending, rows(v.State))
			}
			o := own(t, s, "live-one")
			if len(o.Task.Intakes()) != 1 || o.Task.Intakes()[0].Refused == "" || o.Task.Intakes()[0].File != roofmt.UIName {
				t.Fatalf("intakes %+v", o.Task.Intakes())
			}
			if got := rows(o.Task.State()); got != want {
				t.Errorf("head moved: %s", got)
			}
			kept := o.Task.State().Refused
			if len(kept) != 1 {
				t.Fatalf("refused: %+v", kept)
			}
			blob, err := o.Task.log.Blob(context.Background(), journal.Hash(kept[0].Blob))
			fixture.NoError(t, err)
			if data := fixture.Must[[]byte](t)(blob.ReadAll()); string(data) != ui {
				t.Errorf("kept %q", data)
			}
			fixture.NoError(t, blob.Close())
			closeTask(t, o.Task)
			if got := read(t, dir, roofmt.UIName); got != array(fourRows...) {
				t.Errorf("not projected again: %s", got)
			}
		})
	}
}

// Roo's resume drops and rewrites rows of its own; that is no loss.
func TestRooResumesOurTask(t *testing.T) {
	storage, dir := rooStorage(t, "live-one")
	s := open(t, t.TempDir(), storage)
	k := own(t, s, "live-one").Task
	cut := `{"ts":1700000000005,"type":"say","say":"api_req_started","text":"{\"request\":\"x\"}"}`
	ask := `{"ts":1700000000006,"type":"ask","ask":"resume_task"}`
	commit(t, k, task.UI, cut)
	commit(t, k, task.UI, ask)
	commit(t, k, task.API, apiRow(3, "user", "carry on"))
	closeTask(t, k)
	ui := array(uiRow(1, "do it"), uiRow(2, "done so far"), strings.Replace(ask, "0006", "0050", 1), uiRow(51, "feedback"))
	last := fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"carry on"},{"type":"text","text":"<user_message>\n%s\n</user_message>"}],"ts":%d}`, "and more", ts0+52)
	editor(t, dir, map[string]string{roofmt.UIName: ui, roofmt.APIName: array(threeAPI[0], threeAPI[1], last)})
	o := own(t, s, "live-one")
	for _, in := range o.Task.Intakes() {
		if in.Refused != "" {
			t.Errorf("refused: %+v", in)
		}
	}
	if got := fixture.Must[[][]byte](t)(o.Task.State().RawAPI()); len(o.Task.Intakes()) != 2 || len(got) != 3 || string(got[2]) != last {
		t.Errorf("%d intakes, API %s", len(o.Task.Intakes()), got)
	}
	closeTask(t, o.Task)
}

func TestEditorWritesWhileOwned(t *testing.T) {
	for when, before := range map[string]func(*Task){
		"before our files are written": func(*Task) {},
		"behind them":                  func(k *Task) { fixture.NoError(t, k.proj.Settle(context.Background())) },
	} {
		s, dir, _ := continued(t)
		k := own(t, s, "live-one").Task
		commit(t, k, task.UI, uiRow(8, "ours"))
		before(k)
		editor(t, dir, map[string]string{roofmt.UIName: with(fourRows[:2], uiRow(7, "window"))})
		want := rows(k.State())
		closeTask(t, k)
		if got := read(t, dir, roofmt.UIName); got != with(fourRows, uiRow(8, "ours")) {
			t.Errorf("%s: UI %s", when, got)
		}
		v := view(t, s, "live-one")
		if rows(v.State) != want || len(v.State.Refused) != 1 || len(v.Pending) != 0 {
			t.Errorf("%s: refused %+v pending %+v", when, v.State.Refused, v.Pending)
		}
	}
}

func TestEditorDeletes(t *testing.T) {
	s, dir, want := continued(t)
	fixture.NoError(t, os.RemoveAll(dir))
	if v := view(t, s, "live-one"); rows(v.State) != want {
		t.Errorf("read %s", rows(v.State))
	}
	o := own(t, s, "live-one")
	if !o.Gone || rows(o.Task.State()) != want {
		t.Errorf("gone %v: %s", o.Gone, rows(o.Task.State()))
	}
	commit(t, o.Task, task.UI, uiRow(9, "on"))
	closeTask(t, o.Task)
	if exists(dir, "") {
		t.Error("the deleted folder came back")
	}

	s, dir, _ = continued(t)
	o = own(t, s, "live-one")
	commit(t, o.Task, task.UI, uiRow(9, "on"))
	fixture.NoError(t, os.RemoveAll(dir))
	closeTask(t, o.Task)
	if n := len(view(t, s, "live-one").State.UI()); n != 5 {
		t.Errorf("%d rows", n)
	}
}

func TestProjectionsAreDerived(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	k := create(t, s, "derived")
	commit(t, k, task.UI, uiRow(2, "b"))
	commit(t, k, task.API, apiRow(2, "user", "b"))
	want := rows(k.State())
	closeTask(t, k)
	dir := filepath.Join(root, "tasks", "derived")
	files := []string{roofmt.UIName, roofmt.APIName, roofmt.ItemName, roofmt.MetadataName}
	before := map[string]string{}
	for _, name := range files {
		before[name] = read(t, dir, name)
	}
	for _, gone := range [][]string{files, {projection.Name}, append(files, projection.Name, "journal.idx"), {roofmt.APIName}} {
		for _, name := range gone {
			fixture.NoError(t, os.RemoveAll(filepath.Join(dir, name)))
		}
		o := own(t, s, "derived")
		if len(o.Task.Intakes()) != 0 || rows(o.Task.State()) != want {
			t.Errorf("without %v: %+v", gone, o.Task.Intakes())
		}
		closeTask(t, o.Task)
		for _, name := range files {
			if got := read(t, dir, name); got != before[name] {
				t.Errorf("without %v: %s is %s", gone, name, got)
			}
		}
	}
}

func TestKilledWhileProjecting(t *testing.T) {
	for _, point := range []string{"project.temp", "project.renamed"} {
		root := t.TempDir()
		s := open(t, root)
		k := create(t, s, "killed")
		commit(t, k, task.API, apiRow(2, "user", "b"))
		closeTask(t, k)
		cmd := process(t, "commit", "STORE_TEST_ROOT="+root, "STORE_TEST_TASK=killed", "ROOST_FAILPOINT="+point)
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Fatalf("%s: not killed: %s", point, out)
		}
		if v := view(t, s, "killed"); len(v.Pending) != 0 || len(v.State.UI()) != 2 {
			t.Errorf("%s: pending %+v, %s", point, v.Pending, rows(v.State))
		}
		begun := time.Now()
		o := own(t, s, "killed")
		if len(o.Task.Intakes()) != 0 || len(o.Task.State().UI()) != 2 || time.Since(begun) > 30*time.Second {
			t.Errorf("%s: %+v after %v", point, o.Task.Intakes(), time.Since(begun))
		}
		closeTask(t, o.Task)
		if got := read(t, filepath.Join(root, "tasks", "killed"), roofmt.UIName); !strings.Contains(got, "by a child") {
			t.Errorf("%s: got %s, want strings.Contains(got, \"by a child\")", point, got)
		}
	}
}

func TestStaleEditorLock(t *testing.T) {
	s, dir, _ := continued(t)
	lock := filepath.Join(dir, roofmt.UIName+".lock")
	fixture.NoError(t, os.Mkdir(lock, 0o755))
	old := time.Now().Add(-time.Minute)
	fixture.NoError(t, os.Chtimes(lock, old, old))
	closeTask(t, own(t, s, "live-one").Task)
}

func TestTwoOwners(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	closeTask(t, create(t, s, "busy"))
	cmd := process(t, "hold", "STORE_TEST_ROOT="+root, "STORE_TEST_TASK=busy")
	in, err := cmd.StdinPipe()
	fixture.NoError(t, err)
	out, err := cmd.StdoutPipe()
	fixture.NoError(t, err)
	fixture.NoError(t, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatal(line, err)
	}
	ref := fixture.Must[Ref](t)(s.Find(context.Background(), "busy"))
	var busy *journal.BusyError
	if _, err := s.Own(context.Background(), ref); !errors.As(err, &busy) || busy.Holder.PID != cmd.Process.Pid {
		t.Errorf("second owner: %v", err)
	}
	fixture.Must[Listing](t)(s.List(context.Background(), Filter{}))
	fixture.NoError(t, in.Close())
	fixture.NoError(t, cmd.Wait())
	closeTask(t, own(t, s, "busy").Task)
}

func TestListWhileCommitting(t *testing.T) {
	s := open(t, t.TempDir())
	k := create(t, s, "running")
	var done sync.WaitGroup
	stop := make(chan struct{})
	done.Go(func() {
		for n := 1; ; {
			select {
			case <-stop:
				return
			default:
			}
			v, err := s.Read(context.Background(), k.Ref)
			if err != nil {
				t.Error(err)
				return
			}
			if len(v.State.UI()) < n || len(v.Pending) != 0 {
				t.Errorf("%d rows after %d, pending %+v", len(v.State.UI()), n, v.Pending)
			}
			n = len(v.State.UI())
			fixture.NoError(t, v.Close())
		}
	})
	for i := range 30 {
		commit(t, k, task.UI, uiRow(i+2, "x"))
		fixture.NoError(t, k.Commit(context.Background(), task.FileChanged{Path: "a.go", Source: "read_tool"}))
		fixture.NoError(t, k.proj.Settle(context.Background()))
	}
	close(stop)
	done.Wait()
	closeTask(t, k)
}

func TestCheckAndRepair(t *testing.T) {
	ctx := context.Background()
	make := func() (*Store, string) {
		root := t.TempDir()
		s := open(t, root)
		k := create(t, s, "ill")
		commit(t, k, task.UI, uiRow(2, strings.Repeat("big", payload.MaxInline)))
		commit(t, k, task.UI, uiRow(3, "last"))
		closeTask(t, k)
		if r := fixture.Must[CheckReport](t)(Rooms.Check(ctx, s, nil, false)); r.OK != 1 || len(r.Damaged) != 0 {
			t.Fatalf("healthy: %+v", r)
		}
		return s, filepath.Join(root, "tasks", "ill")
	}
	s, dir := make()
	log := read(t, dir, "journal.jsonl")
	write(t, dir, "journal.jsonl", log+`{"seq":99,"ep`)
	before := tree(t, dir)
	r := fixture.Must[CheckReport](t)(Rooms.Check(ctx, s, nil, false))
	if len(r.Damaged) != 1 || !strings.Contains(r.Damaged[0].Problem, "unfinished") || len(tree(t, dir)) != len(before) {
		t.Errorf("torn tail: %+v", r)
	}
	r = fixture.Must[CheckReport](t)(Rooms.Check(ctx, s, nil, true))
	if len(r.Repaired) != 1 || len(r.Damaged) != 0 || r.OK != 1 {
		t.Errorf("repair: %+v", r)
	}

	s, dir = make()
	log = read(t, dir, "journal.jsonl")
	lines := strings.SplitAfter(log, "\n")
	lines[1] = strings.Replace(lines[1], "hello", "hollo", 1)
	write(t, dir, "journal.jsonl", strings.Join(lines, ""))
	r = fixture.Must[CheckReport](t)(Rooms.Check(ctx, s, nil, false))
	if r.OK != 0 || len(r.Damaged) == 0 {
		t.Errorf("damaged middle: %+v", r)
	}

	s, dir = make()
	fixture.NoError(t, os.RemoveAll(filepath.Join(dir, "blobs")))
	r = fixture.Must[CheckReport](t)(Rooms.Check(ctx, s, nil, false))
	found := false
	for _, f := range r.Damaged {
		found = found || f.Problem == journal.ErrBlobMissing.Error()
	}
	if !found {
		t.Errorf("missing blob: %+v", r)
	}
}
