package roofmt_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/roofmt"
)

// Of several files that could hold a history, the one that is kept stays open until Close, and no other does.
func TestOnlyTheChosenFileStaysOpen(t *testing.T) {
	dir := t.TempDir()
	torn := uiList(3)
	for name, text := range map[string]string{
		roofmt.UIName:                              torn[:len(torn)-5],
		"." + roofmt.UIName + ".bak_1000_a.tmp":    uiList(4),
		"." + roofmt.UIName + ".new_2000_b.tmp":    uiList(1),
		"." + roofmt.UIName + ".new_9000000_c.tmp": uiList(5),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := roofmt.Read(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := openBelow(t, dir); len(got) != 1 || got[0] != f.UI.Source {
		t.Errorf("open after Read: got %q, want only %q", got, f.UI.Source)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got := openBelow(t, dir); len(got) != 0 {
		t.Errorf("open after Close: got %q, want none", got)
	}
}

// openBelow returns the names of the files in a folder that this process has open.
func openBelow(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		// A descriptor of the listing itself is gone by now.
		if at, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(at, dir+"/") {
			names = append(names, filepath.Base(at))
		}
	}
	return names
}
