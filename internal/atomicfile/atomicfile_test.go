package atomicfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/atomicfile"
)

// writerEnv makes this test program a child that replaces a file until it is killed.
const writerEnv = "ATOMICFILE_TEST_WRITE"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerEnv); path != "" {
		for n := 0; ; n++ {
			if err := atomicfile.Write(path, content(n)); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		}
	}
	os.Exit(m.Run())
}

// content is 64 KB of one byte, so that a mixture of two contents is seen.
func content(n int) []byte { return bytes.Repeat([]byte{byte('a' + n%26)}, 64<<10) }

func whole(b []byte) bool {
	return len(b) == 64<<10 && bytes.Count(b, b[:1]) == len(b)
}

// want fails the test unless a folder holds just these files.
func want(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := files[e.Name()]; !ok || text != string(data) {
			t.Errorf("got %s: %q, want %q", e.Name(), data, text)
		}
	}
	if len(entries) != len(files) {
		t.Errorf("got %d files, want %d", len(entries), len(files))
	}
}

func TestWrite(t *testing.T) {
	for name, write := range map[string]func(string, []byte) error{
		"synced":  atomicfile.Write,
		"derived": func(path string, data []byte) error { return atomicfile.WriteDerived(path, ".mine-*", data) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			for _, text := range []string{"one", "", "three"} {
				if err := write(path, []byte(text)); err != nil {
					t.Fatal(err)
				}
				want(t, dir, map[string]string{"f": text})
			}
			if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
				t.Errorf("got %v, %v, want mode 0600", info, err)
			}
			if err := os.Mkdir(filepath.Join(dir, "d"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := write(filepath.Join(dir, "d"), nil); err == nil {
				t.Error("a folder was replaced")
			}
			if err := os.Remove(filepath.Join(dir, "d")); err != nil {
				t.Fatal(err)
			}
			want(t, dir, map[string]string{"f": "three"})
			if err := write(filepath.Join(dir, "none", "f"), nil); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("got %v, want that the folder does not exist", err)
			}
		})
	}
}

func TestCreateLeavesAnExistingFileAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := atomicfile.Create(path, []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Create(path, []byte("two")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v, want %v", err, fs.ErrExist)
	}
	want(t, dir, map[string]string{"f": "one"})
}

func TestOneOfManyCreates(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	var made atomic.Int32
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			switch err := atomicfile.Create(path, []byte("x")); {
			case err == nil:
				made.Add(1)
			case !errors.Is(err, fs.ErrExist):
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if got := made.Load(); got != 1 {
		t.Errorf("got %d that made the file, want 1", got)
	}
	want(t, dir, map[string]string{"f": "x"})
}

// A reader finds whole contents only while another process writes, and so does whoever comes after its kill.
func TestAKilledWriterLeavesAWholeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for range 3 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), writerEnv+"="+path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for end, reads := time.Now().Add(time.Minute), 0; reads < 100; {
			data, err := os.ReadFile(path)
			switch {
			case err == nil && !whole(data):
				t.Errorf("got %d bytes of two contents", len(data))
			case err == nil:
				reads++
			case time.Now().After(end):
				t.Fatal(err)
			}
		}
		_, _ = cmd.Process.Kill(), cmd.Wait()
		if data, err := os.ReadFile(path); err != nil || !whole(data) {
			t.Errorf("after a kill: %d bytes, %v", len(data), err)
		}
	}
}

func TestMove(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "a", "task"), filepath.Join(dir, "b", "task")
	for _, d := range []string{from, filepath.Dir(to)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(from, "f"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Move(from, to); err != nil {
		t.Fatal(err)
	}
	want(t, to, map[string]string{"f": "x"})
	if err := atomicfile.Move(from, to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want %v", err, fs.ErrNotExist)
	}
}

func TestRenameInStaysInItsFolder(t *testing.T) {
	above := t.TempDir()
	dir := filepath.Join(above, "d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := atomicfile.RenameIn(root, "a", "b"); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.RenameIn(root, "b", "../b"); err == nil {
		t.Error("the file left its folder")
	}
	want(t, dir, map[string]string{"b": "x"})
}
