//go:build unix

package importer_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/storetest"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/importer"
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
