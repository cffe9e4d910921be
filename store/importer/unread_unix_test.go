//go:build unix

package importer_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/importer"
	"github.com/roost-dev/roost/store/projection"
)

// A task whose messages cannot be copied is damaged to the list and has failed to an import,
// which says why; only what holds nothing at all is empty to both.
func TestImportTellsWhatCannotBeReadFromEmpty(t *testing.T) {
	tasks := filepath.Join(t.TempDir(), "storage", "tasks")
	make := map[string]func(path string) error{
		"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"link":   func(path string) error { return os.Symlink("/etc/hostname", path) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"zero":   func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"ghost":  func(string) error { return nil },
	}
	for id, one := range make {
		storetest.Check(t, os.MkdirAll(filepath.Join(tasks, id), 0o700))
		storetest.Check(t, one(filepath.Join(tasks, id, roofmt.UIName)))
	}
	s := storetest.Open(t, filepath.Join(t.TempDir(), "root"), filepath.Dir(tasks))
	list := storetest.Must[[]importer.Original](t)(importer.FindPath(context.Background(), s, filepath.Dir(tasks)))
	report := storetest.Must[api.Import](t)(importer.Run(context.Background(), s, list, importer.Options{}))
	shown := storetest.Must[store.Listing](t)(s.List(context.Background(), store.Filter{TaskFilter: api.TaskFilter{Damaged: true}}))
	damaged := map[string]bool{}
	for _, item := range shown.Items {
		damaged[item.ID] = true
	}
	for _, item := range report.Items {
		want, why := api.TaskEmpty, ""
		if damaged[item.Name] {
			want, why = api.TaskFailed, "its messages are missing: ui_messages.json is "
		}
		if item.Outcome != want || !strings.Contains(item.Problem, why) {
			t.Errorf("%s: %s (%s), want %s", item.Name, item.Outcome, item.Problem, want)
		}
	}
	if report.Failed != 3 || report.Empty != 2 {
		t.Errorf("%d failed, %d empty; damaged are %v", report.Failed, report.Empty, damaged)
	}
}

// A pipe that takes the place of a file during the copy does not stop the import.
func TestImportWaitsForNoPipe(t *testing.T) {
	storage, dir := storetest.RooStorage(t, "one")
	pipe := filepath.Join(dir, roofmt.UIName)
	freed := time.AfterFunc(20*time.Second, func() {
		t.Error("got an import that waits for the pipe, want an end of it")
		f, err := os.OpenFile(pipe, os.O_RDWR, 0)
		if err == nil {
			err = f.Close()
		}
		t.Log(err)
	})
	defer freed.Stop()
	r := bringWhile(t, storetest.Open(t, t.TempDir()), storage, importer.Options{}, func(p progress.State) {
		if p.Files == 1 && p.Done == 0 {
			storetest.Check(t, os.Remove(pipe))
			storetest.Check(t, syscall.Mkfifo(pipe, 0o600))
		}
	})
	if r.Failed != 1 || !strings.Contains(r.Items[0].Problem, "no regular file") {
		t.Errorf("got %+v, want a task that failed because of the pipe", r)
	}
}

// A pipe with the name of a file that Roost keeps beside a journal does not stop the import either.
func TestImportReadsNoPipeBesideAJournal(t *testing.T) {
	for _, name := range []string{projection.Name, "base/base.json", "journal.lock", "journal.idx", store.ImportRecord} {
		storage, dir := storetest.RooStorage(t, "one")
		pipe := filepath.Join(dir, name)
		storetest.Write(t, dir, store.JournalName, "{}\n")
		storetest.Check(t, errors.Join(os.MkdirAll(filepath.Dir(pipe), 0o700), syscall.Mkfifo(pipe, 0o600)))
		freed := time.AfterFunc(3*time.Second, func() {
			t.Errorf("%s: got an import that waits for the pipe, want an end of it", name)
			if f, err := os.OpenFile(pipe, os.O_RDWR, 0); err == nil {
				_ = f.Close() // it only lets the import go on
			}
		})
		bring(t, storetest.Open(t, t.TempDir()), storage, importer.Options{})
		freed.Stop()
	}
}
