//go:build unix

package inputfile

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
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

// Another process may put a pipe in the place of a file or a folder just before it is opened.
func TestAPipeIsNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600), os.Mkdir(filepath.Join(dir, "d"), 0o700),
		os.WriteFile(filepath.Join(dir, "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, open := range map[string]func() (io.Closer, error){
		"OpenDir":   func() (io.Closer, error) { return OpenDir(filepath.Join(dir, "pipe")) },
		"OpenDirIn": func() (io.Closer, error) { return OpenDirIn(root, "pipe") },
		"OpenIn": func() (io.Closer, error) {
			f, _, err := OpenIn(root, "pipe")
			return f, err
		},
		"ReadFS": func() (io.Closer, error) {
			_, err := ReadFS(takenForFile{FS(root)}, "pipe", 10)
			return nil, err
		},
	} {
		ended := make(chan error, 1)
		go func() {
			_, err := open()
			ended <- err
		}()
		select {
		case err := <-ended:
			if want := map[string]error{"ReadFS": ErrIrregular, "OpenIn": ErrIrregular}[name]; err == nil || want != nil && !errors.Is(err, want) ||
				name == "OpenDir" && strings.Contains(err.Error(), "pipe/") {
				t.Errorf("%s: got %v, want %v", name, err, cmp.Or[error](want, syscall.ENOTDIR))
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s waits for the writer of a pipe", name)
		}
	}
	for name, open := range map[string]func() (*os.Root, error){
		"OpenDir":   func() (*os.Root, error) { return OpenDir(filepath.Join(dir, "d")) },
		"OpenDirIn": func() (*os.Root, error) { return OpenDirIn(root, "d") },
	} {
		got, err := open()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if path := filepath.Clean(got.Name()); path != filepath.Join(dir, "d") {
			t.Errorf("%s: got the folder %s, want %s", name, path, filepath.Join(dir, "d"))
		}
		got.Close()
	}
}

// takenForFile reports each name as a regular file, as if it had been one a moment ago.
type takenForFile struct{ fs.FS }

func (f takenForFile) Stat(string) (fs.FileInfo, error) { return fs.Stat(f.FS, "file") }
