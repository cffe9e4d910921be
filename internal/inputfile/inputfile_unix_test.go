//go:build unix

package inputfile

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestOnlyFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(syscall.Mkfifo(at("fifo"), 0o600), os.Symlink("fifo", at("link")), os.WriteFile(at("file"), []byte("words"), 0o600), os.Symlink("file", at("good"))); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", at("s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for path, want := range map[string]string{at("fifo"): "a pipe", at("link"): "a pipe", "/dev/zero": "a device", at("s"): "a socket", dir: "a folder"} {
		if _, err := Read(path); !errors.Is(err, ErrIrregular) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want errors.Is(err, ErrIrregular) and strings.Contains(err.Error(), want) and strings.Contains(err.Error(), path)",
				path, err)
		}
	}
	if _, err := Read(at("none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for _, path := range []string{at("file"), at("good")} {
		if data, err := Read(path); err != nil || string(data) != "words" {
			t.Errorf("got %q, %v, want no error and string(data) = \"words\"", data, err)
		}
	}
}

// <(command) of a shell is an open pipe with a name.
func TestAPipeOfTheShellIsRead(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		for range 1000 {
			_, _ = w.WriteString("words ")
		}
		w.Close()
	}()
	data, err := Read("/dev/fd/" + strconv.Itoa(int(r.Fd())))
	if err != nil || string(data) != strings.Repeat("words ", 1000) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}
