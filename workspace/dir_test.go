//go:build unix

package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

func TestDirReadsItsOwnFiles(t *testing.T) {
	w, root := plant(t, "d/a", "text", "d/sub/b", "deeper", "secret", "hidden")
	dir := filepath.Join(root, "d")
	fixture.Link(t, "a", filepath.Join(dir, "alias"))
	fixture.Link(t, "../secret", filepath.Join(dir, "out"))
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := w.OpenDir(dir)
	if err != nil {
		t.Fatal(d, err)
	}
	defer d.Close()
	for name, want := range map[string]error{
		"a": nil, "alias": ErrNotRegular, "out": ErrNotRegular, "pipe": ErrNotRegular, "sub": ErrNotRegular, "none": fs.ErrNotExist,
	} {
		f, info, err := OpenIn(d, name)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		if err != nil {
			continue
		}
		if data, err := io.ReadAll(f); err != nil || string(data) != "text" || info.Size() != 4 {
			t.Errorf("%s: %q, %d bytes, %v", name, data, info.Size(), err)
		}
		f.Close()
	}
	if _, _, err := OpenIn(d, "../secret"); err == nil {
		t.Error("a name led out of the folder")
	}
	// The folder that was opened is read, whatever its path leads to by now.
	if err := os.Rename(dir, filepath.Join(root, "moved")); err != nil {
		t.Fatal(err)
	}
	fixture.Link(t, "/", dir)
	if f, _, err := OpenIn(d, "a"); err != nil {
		t.Error(err)
	} else {
		f.Close()
	}
	for name, want := range map[string]error{"d": ErrChanged, "secret": syscall.ENOTDIR, "moved/pipe": syscall.ENOTDIR, "none": fs.ErrNotExist} {
		path := filepath.Join(root, name)
		if _, err := w.OpenDir(path); !errors.Is(err, want) {
			t.Errorf("OpenDir(%s): got %v, want %v", name, err, want)
		}
		if list, err := w.ReadDir(path, 10); !errors.Is(err, want) || list != nil {
			t.Errorf("ReadDir(%s): got %d names, %v, want none, %v", name, len(list), err, want)
		}
	}
}

func TestReadDirIsSortedAndBounded(t *testing.T) {
	w, root := plant(t)
	for i := range 5000 {
		fixture.WriteFile(t, filepath.Join(root, fmt.Sprintf("f%04d", (i*1237)%5000)), "")
	}
	for most, want := range map[int]int{5000: 5000, 10000: 5000, 100: 100} {
		all, err := w.ReadDir(root, most)
		if err != nil || len(all) != want || !slices.IsSortedFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) }) {
			t.Errorf("at most %d: got %d names, %v, want %d in order", most, len(all), err, want)
		}
	}
}
