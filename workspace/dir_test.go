//go:build unix

package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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
	if err != nil || d.Path() != dir {
		t.Fatal(d, err)
	}
	defer d.Close()
	for name, want := range map[string]error{
		"a": nil, "alias": ErrNotRegular, "out": ErrNotRegular, "pipe": ErrNotRegular, "sub": ErrNotRegular, "none": fs.ErrNotExist,
	} {
		f, size, err := d.Open(name)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		if err != nil {
			continue
		}
		if data, err := io.ReadAll(f); err != nil || string(data) != "text" || size != 4 {
			t.Errorf("%s: %q, %d bytes, %v", name, data, size, err)
		}
		f.Close()
	}
	if _, _, err := d.Open("../secret"); err == nil {
		t.Error("a name led out of the folder")
	}
	// The folder that was opened is read, whatever its path leads to by now.
	if err := os.Rename(dir, filepath.Join(root, "moved")); err != nil {
		t.Fatal(err)
	}
	fixture.Link(t, "/", dir)
	if f, _, err := d.Open("a"); err != nil {
		t.Error(err)
	} else {
		f.Close()
	}
	if _, err := w.OpenDir(dir); !errors.Is(err, ErrChanged) {
		t.Errorf("a link was taken for the folder: %v", err)
	}
	if _, err := w.OpenDir(filepath.Join(root, "secret")); err == nil {
		t.Error("a file was opened as a folder")
	}
}
