package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/internal/dirstat"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// settings are a task of each kind of storage: where its store looks, and the folders of
// files that say something of it.
var settings = map[string]func(t *testing.T) (s *Store, dirs []string){
	"Roo": func(t *testing.T) (*Store, []string) {
		storage, dir := rooStorage(t, "a")
		write(t, filepath.Dir(dir), roofmt.IndexName, `{"version":1,"entries":[{"id":"a","ts":5,"task":"do it by index"}]}`)
		return open(t, t.TempDir(), storage), []string{dir, filepath.Dir(dir)}
	},
	"Roo of old": func(t *testing.T) (*Store, []string) {
		storage := filepath.Join(t.TempDir(), "rooveterinaryinc.roo-cline")
		dir := filepath.Join(storage, "tasks", "1728239012345")
		write(t, dir, roofmt.LegacyName, array(uiRow(1, "do it"), uiRow(2, "more")))
		write(t, dir, roofmt.APIName, array(apiRow(1, "user", "do it")))
		return open(t, t.TempDir(), storage), []string{dir}
	},
	"classic Cline": func(t *testing.T) (*Store, []string) {
		storage := filepath.Join(t.TempDir(), "saoudrizwan.claude-dev")
		dir, id := filepath.Join(storage, "tasks", "1728239012345"), "1728239012345"
		write(t, dir, roofmt.UIName, array(uiRow(1, "do it"), uiRow(2, "more")))
		write(t, dir, roofmt.APIName, array(apiRow(1, "user", "do it")))
		write(t, filepath.Join(storage, "state"), "taskHistory.json", `[{"id":"`+id+`","ts":7,"task":"do it by history","totalCost":1}]`)
		return open(t, t.TempDir(), storage), []string{dir, filepath.Join(storage, "state")}
	},
	"Cline": func(t *testing.T) (*Store, []string) {
		data, dir := clineData(t)
		write(t, dir, "sub.messages.json", `{"version":1,"messages":[{"role":"user","content":"do it too","ts":1776200000009}]}`)
		return open(t, t.TempDir(), data), []string{dir}
	},
	"our own": func(t *testing.T) (*Store, []string) {
		s := open(t, t.TempDir())
		k := create(t, s, "mine")
		commit(t, k, task.API, apiRow(1, "user", "do it"))
		closeTask(t, k)
		return s, []string{filepath.Join(s.TasksDir(), "mine")}
	},
	"continued": func(t *testing.T) (*Store, []string) {
		storage, dir := rooStorage(t, "a")
		s := open(t, t.TempDir(), storage)
		o := own(t, s, "a")
		commit(t, o.Task, task.UI, uiRow(9, "do it here"))
		closeTask(t, o.Task)
		return s, []string{dir, fixture.Must[Ref](t)(s.Find(context.Background(), "a")).Log}
	},
}

// changed is the text of a file with a word of it in capitals.
func changed(old []byte) []byte {
	for _, word := range []string{"do it", "mend", "hello", "true"} {
		if bytes.Contains(old, []byte(word)) {
			return bytes.ReplaceAll(old, []byte(word), bytes.ToUpper([]byte(word)))
		}
	}
	return append(slices.Clone(old[:max(0, len(old)-1)]), ' ')
}

func inPlace(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if failed := f.Close(); err == nil {
		err = failed
	}
	return err
}

// writers are the ways to change a file. What they do to one is undone by renamed.
var writers = []struct {
	name   string
	folder bool // a folder's times tell
	do     func(path string, old []byte) error
}{
	{"renamed into its place", true, func(path string, old []byte) error { return renamed(path, changed(old)) }},
	{"written in place, as long as it was", false, func(path string, old []byte) error { return inPlace(path, changed(old)) }},
	{"written in place and given its old time", false, func(path string, old []byte) error {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if err := inPlace(path, changed(old)); err != nil {
			return err
		}
		return os.Chtimes(path, info.ModTime(), info.ModTime())
	}},
	{"more behind it", false, func(path string, old []byte) error { return inPlace(path, append(slices.Clone(old), "\n x"...)) }},
	{"cut", false, func(path string, old []byte) error { return os.Truncate(path, int64(len(old)/2)) }},
	{"gone", true, func(path string, _ []byte) error { return os.Remove(path) }},
	{"a new file beside it", true, func(path string, old []byte) error {
		return os.WriteFile(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new_1_a.tmp"), old, 0o600)
	}},
	{"the folder is another one", true, func(path string, old []byte) error {
		dir := filepath.Dir(path)
		if err := os.CopyFS(dir+".copy", os.DirFS(dir)); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir+".copy", filepath.Base(path)), changed(old), 0o600); err != nil {
			return err
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		return os.Rename(dir+".copy", dir)
	}},
}

// renamed puts a file in place by renaming it.
func renamed(path string, text []byte) error {
	temp := filepath.Join(filepath.Dir(path), ".renamed")
	if err := os.WriteFile(temp, text, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

// everyChange makes every change of every file of a task, and calls back before and after each.
func everyChange(t *testing.T, dirs []string, before func(), after func(file, writer string, folder bool)) {
	t.Helper()
	for _, dir := range dirs {
		var files []string
		fixture.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case e.IsDir() && path != dir && e.Name() != "blobs" && filepath.Base(filepath.Dir(path)) != "blobs":
				return fs.SkipDir
			case e.Type().IsRegular() && e.Name() != "journal.lock":
				files = append(files, path)
			}
			return nil
		}))
		for _, path := range files {
			old := fixture.Must[[]byte](t)(os.ReadFile(path))
			for _, w := range writers {
				if filepath.Dir(path) != dir && w.folder && w.name != "renamed into its place" {
					continue // of a blob's folder none knows
				}
				before()
				time.Sleep(calmHere / 2)
				if err := w.do(path, old); err != nil {
					t.Fatalf("got %s %s: %v, want no error", path, w.name, err)
				}
				after(path, w.name, w.folder)
				_ = os.Remove(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new_1_a.tmp"))
				time.Sleep(calmHere / 2)
				fixture.NoError(t, renamed(path, old))
			}
		}
	}
}

// Every change of every file of every kind of task shows in the next list.
func TestEveryChangeShows(t *testing.T) {
	slow(t)
	for name, kind := range settings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain, dirs := kind(t)
			s := cached(t, plain, t.TempDir())
			was, seen := page(t, s, Filter{TaskFilter: api.TaskFilter{Empty: true}}), 0
			everyChange(t, dirs, func() { page(t, s, Filter{}) }, func(path, writer string, _ bool) {
				want := page(t, plain, Filter{TaskFilter: api.TaskFilter{Empty: true}})
				if diff := cmp.Diff(want, page(t, s, Filter{TaskFilter: api.TaskFilter{Empty: true}})); diff != "" {
					t.Errorf("%s %s: -without +with rows\n%s", filepath.Base(path), writer, diff)
				}
				if want != was {
					seen++
				}
			})
			if seen < 5 {
				t.Errorf("%d of the changes can be seen in a list", seen)
			}
		})
	}
}

// Among very many tasks of long ago those changes show in the next list that a folder
// or an index tells of, or that a tool makes which writes in place, or we ourselves; and
// every one in the first list after a while.
func TestEveryChangeOfAnOldTaskShows(t *testing.T) {
	slow(t)
	for name, kind := range settings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain, dirs := kind(t)
			s := cached(t, plain, t.TempDir())
			s.pace = pace{every: time.Hour}
			page(t, s, Filter{})
			late := 0
			look := func() {
				s.pace.every = 0
				page(t, s, Filter{})
				s.pace.every = time.Hour
			}
			everyChange(t, dirs, look, func(path, writer string, folder bool) {
				want := page(t, plain, Filter{TaskFilter: api.TaskFilter{Empty: true}})
				diff := cmp.Diff(want, page(t, s, Filter{TaskFilter: api.TaskFilter{Empty: true}}))
				if base := filepath.Base(path); diff != "" && (folder && filepath.Base(filepath.Dir(filepath.Dir(path))) != "blobs" || name == "Cline" || base == roofmt.LegacyName || base == JournalName || base == roofmt.IndexName || base == "taskHistory.json") {
					t.Errorf("%s %s: -without +with rows\n%s", base, writer, diff)
				}
				if diff != "" {
					late++
				}
				s.pace.every = 0 // that while has passed
				if diff := cmp.Diff(want, page(t, s, Filter{TaskFilter: api.TaskFilter{Empty: true}})); diff != "" {
					t.Errorf("%s %s, after a while: -without +with rows\n%s", filepath.Base(path), writer, diff)
				}
				s.pace.every = time.Hour
				if diff := cmp.Diff(want, page(t, s, Filter{TaskFilter: api.TaskFilter{Empty: true}})); diff != "" {
					t.Errorf("%s %s, after that: -without +with rows\n%s", filepath.Base(path), writer, diff)
				}
			})
			if late == 0 && name == "Roo" && dirstat.FoldersShowNames {
				t.Error("every list looked at everything, so this tells nothing")
			}
		})
	}
}

// A task that was written lately is looked at closely by every list, and doctor looks
// closely at all.
func TestWarmTasksAreLookedAtClosely(t *testing.T) {
	storage := storageWith(t, 3)
	s := cached(t, open(t, t.TempDir(), storage), t.TempDir())
	s.pace = pace{every: time.Hour, warm: time.Hour}
	old := time.Now().Add(-2 * time.Hour)
	path := func(i int) string {
		return filepath.Join(storage, "tasks", []string{"task-000", "task-001", "task-002"}[i], roofmt.UIName)
	}
	for i := range 2 {
		fixture.NoError(t, os.Chtimes(path(i), old, old))
	}
	pageBy(t, s, Filter{})
	for i := range 3 {
		fixture.NoError(t, inPlace(path(i), []byte(strings.ReplaceAll(array(uiRow(i, "do "+string(rune('0'+i)))), "do", "DO"))))
	}
	if got := titles(pageBy(t, s, Filter{}).Items); dirstat.FoldersShowNames && !cmp.Equal(got, []string{"DO 2", "do 1", "do 0"}) {
		t.Errorf("%q", got)
	}
	if found := s.VerifyRows(context.Background()); len(found) > 0 {
		t.Errorf("got %+v, want len(found) <= 0", found)
	}
	if got := titles(pageBy(t, s, Filter{}).Items); !cmp.Equal(got, []string{"DO 2", "DO 1", "DO 0"}) {
		t.Errorf("after doctor compared: %q", got)
	}
}

// That every file was compared is noted only when it was.
func TestWhatIsNotedOfAComparison(t *testing.T) {
	storage, cache := storageWith(t, 3), t.TempDir()
	s := cached(t, open(t, t.TempDir(), storage), cache)
	s.pace = pace{few: 2, every: time.Hour}
	noted := func() bool {
		sources := knownSources(t, s)
		return len(sources) == 1 && sources[0].Compared > 0
	}
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := s.List(progress.With(ctx, func(progress.State) { cancel() }), Filter{}); err == nil || noted() {
		t.Errorf("a list that was cancelled: %v, noted %v", err, noted())
	}
	if pageBy(t, s, Filter{}); noted() != dirstat.FoldersShowNames {
		t.Error("not noted")
	}
	fixture.NoError(t, inPlace(filepath.Join(storage, "tasks", "task-000", roofmt.UIName), []byte(array(uiRow(0, "DO 0")))))
	if got := titles(pageBy(t, s, Filter{}).Items); slices.Contains(got, "DO 0") && dirstat.FoldersShowNames {
		t.Error("every list compares every file, so this shows nothing")
	}
	db := fixture.Must[*catalog.DB](t)(catalog.Open(context.Background(), cache))
	fixture.NoError(t, errors.Join(db.ForgetRows(context.Background()), db.Close()))
	if got := titles(pageBy(t, s, Filter{}).Items); !slices.Contains(got, "DO 0") {
		t.Errorf("without the rows: %q", got)
	}
}

// Of a task that changed, came or went only its own row is written.
func TestChangesAreAdded(t *testing.T) {
	storage, cache := storageWith(t, 9), t.TempDir()
	plain := open(t, t.TempDir(), storage)
	s := cached(t, plain, cache)
	pageBy(t, s, Filter{})
	ids := func() map[string]int64 {
		t.Helper()
		db := fixture.Must[*sql.DB](t)(sql.Open("sqlite", filepath.Join(cache, catalog.Name)))
		defer db.Close()
		rows := fixture.Must[*sql.Rows](t)(db.Query("SELECT name, id FROM row"))
		defer rows.Close()
		out := map[string]int64{}
		for rows.Next() {
			var name string
			var id int64
			fixture.NoError(t, rows.Scan(&name, &id))
			out[name] = id
		}
		fixture.NoError(t, rows.Err())
		return out
	}
	before := ids()
	dir := func(id string) string { return filepath.Join(storage, "tasks", id) }
	for _, change := range []func(){
		func() {
			fixture.NoError(t, renamed(filepath.Join(dir("task-004"), roofmt.UIName), []byte(array(uiRow(4, "fresh")))))
		},
		func() { write(t, dir("task-0045"), roofmt.UIName, array(uiRow(4, "new"))) },
		func() { fixture.NoError(t, os.RemoveAll(dir("task-001"))) },
		func() { fixture.NoError(t, os.Rename(dir("task-002"), dir("task-9"))) },
		func() {
			write(t, dir(""), roofmt.IndexName, `{"entries":[{"id":"task-003","ts":5,"task":"by index"}]}`)
		},
	} {
		time.Sleep(calmHere)
		change()
		for range 2 {
			if diff := cmp.Diff(page(t, plain, Filter{}), page(t, s, Filter{})); diff != "" {
				t.Error(diff)
			}
		}
		if n := knownRows(t, s); n != len(pageBy(t, s, Filter{}).Items) {
			t.Errorf("%d rows are known", n)
		}
	}
	after := ids()
	for i := range 9 {
		name := fmt.Sprintf("task-%03d", i)
		if changed := i == 1 || i == 2 || i == 3 || i == 4; (before[name] == after[name]) == changed {
			t.Errorf("the row of %s: number %d, was %d; changed: %v", name, after[name], before[name], changed)
		}
	}
}
