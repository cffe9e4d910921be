//go:build unix

package store

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/roost-dev/roost/roofmt"
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
		check(t, os.MkdirAll(filepath.Join(tasks, id), 0o700))
		check(t, one(filepath.Join(tasks, id, roofmt.UIName)))
	}
	s := open(t, filepath.Join(t.TempDir(), "root"), filepath.Dir(tasks))
	list := must[[]Importable](t)(s.ImportPath(context.Background(), filepath.Dir(tasks)))
	report := must[ImportReport](t)(s.Import(context.Background(), list, ImportOptions{}))
	shown := must[Listing](t)(s.List(context.Background(), Filter{Damaged: true}))
	damaged := map[string]bool{}
	for _, item := range shown.Items {
		damaged[item.ID] = true
	}
	for _, item := range report.Items {
		want, why := Vacant, ""
		if damaged[item.Name] {
			want, why = Failed, "its messages are not there: ui_messages.json is "
		}
		if item.Outcome != want || !strings.Contains(item.Problem, why) {
			t.Errorf("%s: %s (%s), want %s", item.Name, item.Outcome, item.Problem, want)
		}
	}
	if report.Failed != 3 || report.Empty != 2 {
		t.Errorf("%d failed, %d empty; damaged are %v", report.Failed, report.Empty, damaged)
	}
}
