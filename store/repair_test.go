package store

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// ill is a store with a task of ours of ours that the tests spoil, and its folder.
func ill(t *testing.T) (s *Store, dir string) {
	root := t.TempDir()
	s = open(t, root)
	k := create(t, s, "ill")
	commit(t, k, task.UI, uiRow(2, strings.Repeat("big", blobThreshold)))
	commit(t, k, task.API, apiRow(3, "user", "hello"))
	commit(t, k, task.UI, uiRow(4, "last"))
	closeTask(t, k)
	return s, filepath.Join(root, "tasks", "ill")
}

func doctor(t *testing.T, s *Store, o CheckOptions, ids ...string) Report {
	t.Helper()
	return must[Report](t)(s.Check(context.Background(), ids, o))
}

func TestRepairMendsAfterACopy(t *testing.T) {
	slow(t)
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
			whole := read(t, dir, c.file)
			write(t, dir, c.file, c.spoil(whole))
			before := tree(t, dir)
			r := doctor(t, s, CheckOptions{})
			if len(r.Damaged) == 0 || r.OK != 0 || len(r.Repaired) != 0 {
				t.Errorf("found %+v", r)
			}
			if d := cmp.Diff(before, tree(t, dir)); d != "" {
				t.Fatalf("looking changed something: %s", d)
			}
			r = doctor(t, s, CheckOptions{Repair: true})
			if len(r.Damaged) != 0 || r.OK != 1 || len(r.Repaired) != 1 {
				t.Fatalf("repaired %+v", r)
			}
			kept, err := os.ReadFile(r.Repaired[0].Copy)
			if want := c.want(whole); err != nil || string(kept) != want {
				t.Errorf("the copy %q holds %q (%v)", r.Repaired[0].Copy, kept, err)
			}
			if got := read(t, dir, c.file); c.file != "journal.jsonl" && got != whole {
				t.Errorf("mended to %s", got)
			}
			if r = doctor(t, s, CheckOptions{Repair: true}); len(r.Repaired) != 0 || r.OK != 1 {
				t.Errorf("mended twice: %+v", r)
			}
		})
	}
}

// What cannot be mended stays byte for byte, also when it is asked for.
func TestRepairLeavesWhatItCannotMend(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"a lost commit": func(t *testing.T, dir string) {
			lines := strings.SplitAfter(read(t, dir, "journal.jsonl"), "\n")
			lines[1] = strings.Replace(lines[1], "hello", "hollo", 1)
			write(t, dir, "journal.jsonl", strings.Join(lines, ""))
		},
		"a lost payload": func(t *testing.T, dir string) { check(t, os.RemoveAll(filepath.Join(dir, "blobs"))) },
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := ill(t)
			check(t, os.Remove(filepath.Join(dir, "journal.idx")))
			spoil(t, dir)
			before := tree(t, dir)
			r := doctor(t, s, CheckOptions{Repair: true}, "ill")
			if r.OK != 0 || len(r.Damaged) == 0 || len(r.Repaired) != 0 {
				t.Errorf("%+v", r)
			}
			if d := cmp.Diff(before, tree(t, dir)); d != "" {
				t.Error(d)
			}
		})
	}
}

// A task whose journal was hit says so to whoever takes it over.
func TestOwnersAreToldOfDamage(t *testing.T) {
	s, dir := ill(t)
	check(t, os.Remove(filepath.Join(dir, "journal.idx")))
	lines := strings.SplitAfter(read(t, dir, "journal.jsonl"), "\n")
	lines[2] = strings.Replace(lines[2], `"seq":3`, `"seq":4`, 1)
	write(t, dir, "journal.jsonl", strings.Join(lines, ""))
	for range 2 { // it does not wear off
		k := own(t, s, "ill").Task
		problems := k.State().Problems
		if len(problems) == 0 || problems[0].Seq != 3 {
			t.Errorf("%+v", problems)
		}
		closeTask(t, k)
	}
}

func TestRepairOfAnotherToolsTask(t *testing.T) {
	storage, dir := rooStorage(t, "theirs")
	cut := array(fourRows...)[:len(array(fourRows...))-20]
	write(t, dir, roofmt.UIName, cut)
	root := filepath.Join(t.TempDir(), "root")
	s := open(t, root, storage)
	before := tree(t, storage)
	r := doctor(t, s, CheckOptions{Repair: true})
	if len(r.Damaged) != 1 || len(r.Repaired) != 0 {
		t.Errorf("all: %+v", r)
	}
	if d := cmp.Diff(before, tree(t, storage)); d != "" || exists(root, "") {
		t.Errorf("a repair of all tasks touched another tool's: %s", d)
	}
	// Named, it becomes a task of ours.
	r = doctor(t, s, CheckOptions{Repair: true}, "theirs")
	if len(r.Damaged) != 0 || len(r.Repaired) != 1 || r.OK != 1 {
		t.Fatalf("named: %+v", r)
	}
	if kept := string(must[[]byte](t)(os.ReadFile(r.Repaired[0].Copy))); kept != cut {
		t.Errorf("the copy holds %q", kept)
	}
	if got := read(t, dir, roofmt.UIName); got != array(fourRows[:3]...) {
		t.Errorf("mended to %s", got)
	}
	if strings.HasPrefix(r.Repaired[0].Copy, storage) {
		t.Errorf("the copy lies in the editor's folder: %s", r.Repaired[0].Copy)
	}

	// A format without a writer is not touched.
	storage, dir = clineStorage(t, "1730047571772")
	write(t, dir, roofmt.UIName, cut)
	s = open(t, root, storage)
	before = tree(t, storage)
	r = doctor(t, s, CheckOptions{Repair: true}, "1730047571772")
	if d := cmp.Diff(before, tree(t, storage)); d != "" || len(r.Damaged) != 1 {
		t.Errorf("%+v %s", r, d)
	}
	if exists(filepath.Join(root, "tasks", forkID(foreignRef(t, s, "1730047571772"))), "") {
		t.Error("a repair made a fork")
	}
}

func TestRebuild(t *testing.T) {
	s, dir := ill(t)
	files := map[string]string{}
	for _, name := range []string{roofmt.UIName, roofmt.APIName, roofmt.ItemName, roofmt.MetadataName} {
		files[name] = read(t, dir, name)
	}
	for _, gone := range []string{roofmt.UIName, roofmt.APIName, roofmt.ItemName, roofmt.MetadataName, "journal.idx", watermarkName} {
		check(t, os.Remove(filepath.Join(dir, gone)))
		if r := doctor(t, s, CheckOptions{Rebuild: true}); r.OK != 1 {
			t.Errorf("without %s: %+v", gone, r)
		}
		for name, want := range files {
			if got := read(t, dir, name); got != want {
				t.Errorf("without %s: %s is %s", gone, name, got)
			}
		}
	}
}

// One task that cannot be mended does not keep the others from it.
func TestRepairGoesOn(t *testing.T) {
	s, dir := ill(t)
	closeTask(t, create(t, s, "held"))
	for _, d := range []string{dir, filepath.Join(s.TasksDir(), "held")} {
		write(t, d, roofmt.UIName, "{")
	}
	ref := must[Ref](t)(s.Find(context.Background(), "held"))
	log := must[*Owned](t)(s.Own(context.Background(), ref)).Task
	write(t, ref.Dir, roofmt.UIName, "{")
	r := doctor(t, s, CheckOptions{Repair: true})
	if r.Tasks != 2 || len(r.Repaired) != 1 || r.Repaired[0].ID != "ill" {
		t.Errorf("%+v", r)
	}
	told := false
	for _, f := range r.Damaged {
		told = told || f.ID == "held" && strings.Contains(f.Problem, "repair task held")
	}
	if !told {
		t.Errorf("%+v", r.Damaged)
	}
	closeTask(t, log)
}

func TestCheckOfPayloads(t *testing.T) {
	s, dir := ill(t)
	var blob string
	check(t, filepath.WalkDir(filepath.Join(dir, "blobs"), func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			blob = path
		}
		return err
	}))
	data := must[[]byte](t)(os.ReadFile(blob))
	data[len(data)/2] ^= 1
	check(t, os.Chmod(blob, 0o600))
	check(t, os.WriteFile(blob, data, 0o600))
	r := doctor(t, s, CheckOptions{})
	found := false
	for _, f := range r.Damaged {
		found = found || f.Problem == journal.ErrBlobDamaged.Error() && strings.HasSuffix(blob, f.File)
	}
	if !found {
		t.Errorf("%+v", r)
	}
}

// Messages that a damaged journal lost come back from the files that show them;
// they are not wiped out by a projection of what is left.
func TestLostMessagesComeBackFromTheFiles(t *testing.T) {
	for name, c := range map[string]struct {
		line  int // of the journal, from 0
		added int
		chang int
	}{
		"a row": {3, 1, 0}, "a turn": {2, 1, 0}, "the newest row": {5, 1, 0}, "a change": {4, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			s := open(t, root)
			k := create(t, s, "hit") // lines 0 and 1: the epoch, the task
			commit(t, k, task.API, apiRow(2, "user", "two"))
			commit(t, k, task.UI, uiRow(3, "three"))
			check(t, k.Commit(context.Background(), task.MessageChanged{Message: 1, Body: task.Body{Raw: []byte(uiRow(1, "other words"))}}))
			check(t, k.Barrier(context.Background()))
			commit(t, k, task.UI, uiRow(5, "five"))
			want := rows(k.State())
			closeTask(t, k)
			dir := filepath.Join(root, "tasks", "hit")
			files := map[string]string{roofmt.UIName: read(t, dir, roofmt.UIName), roofmt.APIName: read(t, dir, roofmt.APIName)}
			lines := strings.SplitAfter(read(t, dir, "journal.jsonl"), "\n")
			lines[c.line] = strings.Replace(lines[c.line], `"at":1`, `"at":2`, 1)
			write(t, dir, "journal.jsonl", strings.Join(lines, ""))
			for round := range 2 {
				o := own(t, s, "hit")
				if got := rows(o.Task.State()); got != want {
					t.Errorf("round %d: %s\nwant %s", round, got, want)
				}
				if len(o.Task.State().Problems) == 0 {
					t.Errorf("round %d: nobody is told of the damage", round)
				}
				if round == 0 && (len(o.Intakes) != 1 || !o.Intakes[0].Restored || o.Intakes[0].Added != c.added || o.Intakes[0].Changed != c.chang) || round == 1 && len(o.Intakes) != 0 {
					t.Errorf("round %d: %+v", round, o.Intakes)
				}
				closeTask(t, o.Task)
				for name, text := range files {
					if got := read(t, dir, name); got != text {
						t.Errorf("round %d: %s is %s", round, name, got)
					}
				}
			}
		})
	}
}
