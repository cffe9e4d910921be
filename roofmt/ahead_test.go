package roofmt_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/roofmt"
)

// Asking for files is a hint: whatever lies there, it neither fails nor waits, and of what is no history or hardly any bytes
// nothing is asked for.
func TestNothingIsAskedForInVain(t *testing.T) {
	folders := map[string]func(dir string) error{
		"absent":  os.Remove,
		"empty":   func(string) error { return nil },
		"folders": func(dir string) error { return os.Mkdir(filepath.Join(dir, roofmt.UIName), 0o700) },
		"short": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, roofmt.UIName), []byte(uiList(3)), 0o600)
		},
		"none": func(dir string) error { return os.WriteFile(filepath.Join(dir, roofmt.APIName), nil, 0o600) },
		"others": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "notes.txt"), make([]byte, 1<<20), 0o600)
		},
	}
	for name, fill := range folders {
		dir := t.TempDir()
		if err := fill(dir); err != nil {
			t.Fatal(err)
		}
		if roofmt.Ahead(dir) {
			t.Errorf("%s: something was asked for", name)
		}
	}
}

// Histories are read one after the other or side by side, as long as they are; the task is the same, and so are the notes.
func TestLongHistoriesAreReadSideBySide(t *testing.T) {
	for _, c := range []struct{ ui, api int }{{3, 3}, {4000, 3}, {3, 4000}, {4000, 4000}} {
		dir := t.TempDir()
		long := strings.Repeat("x", 300)
		write(t, dir, map[string]string{
			roofmt.UIName: strings.ReplaceAll(uiList(c.ui), "row", long), roofmt.APIName: strings.ReplaceAll(apiList(c.api), `"ts"`, `"`+long+`":0,"ts"`),
		})
		roofmt.Ahead(dir)
		f := looking(t, dir, nil)
		if f.UI.Len() != c.ui || f.API.Len() != c.api || damaged(f) || f.UI.Notes == nil || f.API.Notes == nil {
			t.Errorf("%d rows and %d turns of %+v, lost %v", f.UI.Len(), f.API.Len(), c, f.Losses)
		}
		checkNotes(t, f.UI)
		checkNotes(t, f.API)
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
