package doctor_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/store/projection"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/doctor"
	"github.com/roost-dev/roost/task"
)

// ill is a store with a task of ours of ours that the tests spoil, and its folder.
func ill(t *testing.T) (s *store.Store, dir string) {
	root := t.TempDir()
	s = storetest.Open(t, root)
	k := storetest.Create(t, s, "ill")
	storetest.Commit(t, k, task.UI, storetest.UIRow(2, strings.Repeat("big", 256<<10)))
	storetest.Commit(t, k, task.API, storetest.APIRow(3, "user", "hello"))
	storetest.Commit(t, k, task.UI, storetest.UIRow(4, "last"))
	storetest.Close(t, k)
	return s, filepath.Join(root, "tasks", "ill")
}

func runDoctor(t *testing.T, s *store.Store, o doctor.Options, ids ...string) api.Checkup {
	t.Helper()
	return storetest.Must[api.Checkup](t)(doctor.Check(context.Background(), s, ids, o))
}

func TestRepairMendsAfterACopy(t *testing.T) {
	storetest.SkipInShort(t)
	const torn = `{"seq":99,"epoch":9,"at":1,"eve`
	for name, c := range map[string]struct {
		file  string
		spoil func(text string) string
		want  func(text string) string // what the copy holds
	}{
		"unfinished last line": {"journal.jsonl", func(s string) string { return s + torn }, func(string) string { return torn }},
		"rows cut":             {roofmt.UIName, func(s string) string { return s[:len(s)/2] }, func(s string) string { return s[:len(s)/2] }},
		"rows emptied":         {roofmt.UIName, func(string) string { return "" }, func(string) string { return "" }},
		"turns no list":        {roofmt.APIName, func(string) string { return `{"a":1}` }, func(string) string { return `{"a":1}` }},
		"rows made NULs":       {roofmt.UIName, func(s string) string { return strings.Repeat("\x00", len(s)) }, func(s string) string { return strings.Repeat("\x00", len(s)) }},
		"item cut":             {roofmt.ItemName, func(s string) string { return s[:20] }, func(s string) string { return s[:20] }},
		"record cut":           {roofmt.MetadataName, func(s string) string { return s[:9] }, func(s string) string { return s[:9] }},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := ill(t)
			whole := storetest.Read(t, dir, c.file)
			storetest.Write(t, dir, c.file, c.spoil(whole))
			before := storetest.Tree(t, dir)
			r := runDoctor(t, s, doctor.Options{})
			if len(r.Damaged) == 0 || r.OK != 0 || len(r.Repaired) != 0 {
				t.Errorf("found %+v", r)
			}
			if d := cmp.Diff(before, storetest.Tree(t, dir)); d != "" {
				t.Fatalf("looking changed something: %s", d)
			}
			r = runDoctor(t, s, doctor.Options{Repair: true})
			if len(r.Damaged) != 0 || r.OK != 1 || len(r.Repaired) != 1 {
				t.Fatalf("repaired %+v", r)
			}
			kept, err := os.ReadFile(r.Repaired[0].Copy)
			if want := c.want(whole); err != nil || string(kept) != want {
				t.Errorf("the copy %q holds %q (%v)", r.Repaired[0].Copy, kept, err)
			}
			if got := storetest.Read(t, dir, c.file); c.file != "journal.jsonl" && got != whole {
				t.Errorf("mended to %s", got)
			}
			if r = runDoctor(t, s, doctor.Options{Repair: true}); len(r.Repaired) != 0 || r.OK != 1 {
				t.Errorf("mended twice: %+v", r)
			}
		})
	}
}

// What cannot be mended stays byte for byte, also when it is asked for.
func TestRepairLeavesWhatItCannotMend(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"a lost commit": func(t *testing.T, dir string) {
			lines := strings.SplitAfter(storetest.Read(t, dir, "journal.jsonl"), "\n")
			lines[1] = strings.Replace(lines[1], "hello", "hollo", 1)
			storetest.Write(t, dir, "journal.jsonl", strings.Join(lines, ""))
		},
		"a lost payload": func(t *testing.T, dir string) { storetest.Check(t, os.RemoveAll(filepath.Join(dir, "blobs"))) },
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := ill(t)
			storetest.Check(t, os.Remove(filepath.Join(dir, "journal.idx")))
			spoil(t, dir)
			before := storetest.Tree(t, dir)
			r := runDoctor(t, s, doctor.Options{Repair: true}, "ill")
			if r.OK != 0 || len(r.Damaged) == 0 || len(r.Repaired) != 0 {
				t.Errorf("got %+v, want r.OK = 0 and len(r.Damaged) != 0 and len(r.Repaired) = 0", r)
			}
			if d := cmp.Diff(before, storetest.Tree(t, dir)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestRepairOfAnotherToolsTask(t *testing.T) {
	storage, dir := storetest.RooStorage(t, "theirs")
	fourRows := []string{storetest.UIRow(1, "do it"), storetest.UIRow(2, "done so far"), storetest.UIRow(3, "three"), storetest.UIRow(4, "four")}
	cut := storetest.Array(fourRows...)[:len(storetest.Array(fourRows...))-20]
	storetest.Write(t, dir, roofmt.UIName, cut)
	root := filepath.Join(t.TempDir(), "root")
	s := storetest.Open(t, root, storage)
	before := storetest.Tree(t, storage)
	r := runDoctor(t, s, doctor.Options{Repair: true})
	if len(r.Damaged) != 1 || len(r.Repaired) != 0 {
		t.Errorf("all: %+v", r)
	}
	if d := cmp.Diff(before, storetest.Tree(t, storage)); d != "" || storetest.Exists(root, "") {
		t.Errorf("a repair of all tasks touched another tool's: %s", d)
	}
	// Named, it becomes a task of ours.
	r = runDoctor(t, s, doctor.Options{Repair: true}, "theirs")
	if len(r.Damaged) != 0 || len(r.Repaired) != 1 || r.OK != 1 {
		t.Fatalf("named: %+v", r)
	}
	if kept := string(storetest.Must[[]byte](t)(os.ReadFile(r.Repaired[0].Copy))); kept != cut {
		t.Errorf("the copy holds %q", kept)
	}
	if got := storetest.Read(t, dir, roofmt.UIName); got != storetest.Array(fourRows[:3]...) {
		t.Errorf("mended to %s", got)
	}
	if strings.HasPrefix(r.Repaired[0].Copy, storage) {
		t.Errorf("the copy lies in the editor's folder: %s", r.Repaired[0].Copy)
	}

	// A format without a writer is not touched, whether the path or the rows tell it.
	for name, rows := range map[string]string{"saoudrizwan.claude-dev": cut, "nameless": `[{"ts":1,"type":"say","say":"task_progress","text":"x","modelInfo":{"providerId":"p","modelId":"m"}},{"ts":2,"type":"say","say":"text","te`} {
		storage = filepath.Join(t.TempDir(), name)
		dir = filepath.Join(storage, "tasks", "1730047571772")
		storetest.Write(t, dir, roofmt.APIName, storetest.Array(storetest.APIRow(1, "user", "do it"), storetest.APIRow(2, "assistant", "done so far")))
		storetest.Write(t, dir, roofmt.UIName, rows)
		s = storetest.Open(t, root, storage)
		before = storetest.Tree(t, storage)
		r = runDoctor(t, s, doctor.Options{Repair: true}, "1730047571772")
		if d := cmp.Diff(before, storetest.Tree(t, storage)); d != "" || len(r.Damaged) != 1 {
			t.Errorf("%s: got %+v %s, want d = \"\" and len(r.Damaged) = 1", name, r, d)
		}
		if forks, err := filepath.Glob(filepath.Join(root, "tasks", "*", "*")); err != nil || len(forks) > 0 {
			t.Errorf("%s: a repair made a fork: %v, %v", name, forks, err)
		}
	}
}

func TestRebuild(t *testing.T) {
	s, dir := ill(t)
	files := map[string]string{}
	for _, name := range []string{roofmt.UIName, roofmt.APIName, roofmt.ItemName, roofmt.MetadataName} {
		files[name] = storetest.Read(t, dir, name)
	}
	for _, gone := range []string{roofmt.UIName, roofmt.APIName, roofmt.ItemName, roofmt.MetadataName, "journal.idx", projection.Name} {
		storetest.Check(t, os.Remove(filepath.Join(dir, gone)))
		if r := runDoctor(t, s, doctor.Options{Rebuild: true}); r.OK != 1 {
			t.Errorf("without %s: %+v", gone, r)
		}
		for name, want := range files {
			if got := storetest.Read(t, dir, name); got != want {
				t.Errorf("without %s: %s is %s", gone, name, got)
			}
		}
	}
}

// One task that cannot be mended does not keep the others from it.
func TestRepairGoesOn(t *testing.T) {
	s, dir := ill(t)
	storetest.Close(t, storetest.Create(t, s, "held"))
	for _, d := range []string{dir, filepath.Join(s.TasksDir(), "held")} {
		storetest.Write(t, d, roofmt.UIName, "{")
	}
	ref := storetest.Must[store.Ref](t)(s.Find(context.Background(), "held"))
	log := storetest.Must[*store.Owned](t)(s.Own(context.Background(), ref)).Task
	storetest.Write(t, ref.Dir, roofmt.UIName, "{")
	r := runDoctor(t, s, doctor.Options{Repair: true})
	if r.Tasks != 2 || len(r.Repaired) != 1 || r.Repaired[0].ID != "ill" {
		t.Errorf("got %+v, want r.Tasks = 2 and len(r.Repaired) = 1 and r.Repaired[0].ID = \"ill\"", r)
	}
	told := false
	for _, f := range r.Damaged {
		told = told || f.ID == "held" && strings.Contains(f.Problem, "repair task held")
	}
	if !told {
		t.Errorf("got %+v, want told", r.Damaged)
	}
	storetest.Close(t, log)
}

func TestCheckOfPayloads(t *testing.T) {
	s, dir := ill(t)
	var blob string
	storetest.Check(t, filepath.WalkDir(filepath.Join(dir, "blobs"), func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			blob = path
		}
		return err
	}))
	data := storetest.Must[[]byte](t)(os.ReadFile(blob))
	data[len(data)/2] ^= 1
	storetest.Check(t, os.Chmod(blob, 0o600))
	storetest.Check(t, os.WriteFile(blob, data, 0o600))
	r := runDoctor(t, s, doctor.Options{})
	found := false
	for _, f := range r.Damaged {
		found = found || f.Problem == journal.ErrBlobDamaged.Error() && strings.HasSuffix(blob, f.File)
	}
	if !found {
		t.Errorf("got %+v, want found", r)
	}
}
