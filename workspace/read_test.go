//go:build unix

package workspace

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// Whatever stands at a path, looking at it ends at once: no pipe is waited for and
// no device is opened.
func TestLookingNeverHangs(t *testing.T) {
	w, root := open(t)
	if err := syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	fixture.Link(t, "pipe", filepath.Join(root, "toPipe"))
	fixture.Link(t, "/dev/zero", filepath.Join(root, "toZero"))
	fixture.WriteFile(t, filepath.Join(root, "dir", "x"), "")
	fixture.WriteFile(t, filepath.Join(root, "f"), "")
	tests := []struct {
		path string
		want error
	}{
		{"pipe", ErrNotRegular},
		{"toPipe", ErrNotRegular},
		{"toZero", ErrNotRegular},
		{"/dev/zero", ErrNotRegular},
		{"dir", ErrNotRegular},
		{".", ErrNotRegular},
		{"/proc/self/fd", ErrNotRegular},
		{"missing", fs.ErrNotExist},
		{"dir/missing/x", fs.ErrNotExist},
	}
	for _, tt := range tests {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			p := resolve(t, w, tt.path)
			if _, _, err := w.Read(t.Context(), p, 1<<20); !errors.Is(err, tt.want) {
				t.Errorf("Read(%s): %v, want %v", tt.path, err, tt.want)
			}
			if f, _, err := w.Open(p); !errors.Is(err, tt.want) {
				t.Errorf("Open(%s): %v, %v, want %v", tt.path, f, err, tt.want)
			}
			st, err := w.StatPath(t.Context(), p)
			if gone := errors.Is(tt.want, fs.ErrNotExist); gone != (err == nil) || st.Exists() {
				t.Errorf("StatPath(%s): %+v, %v", tt.path, st, err)
			}
		}()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatalf("%s: it hangs", tt.path)
		}
	}
}

func TestQuickSeesWhatStatSees(t *testing.T) {
	w, root := open(t)
	name := filepath.Join(root, "f")
	p := resolve(t, w, "f")
	last := FileState{}
	for _, change := range []struct {
		what string
		do   func() error
	}{
		{"made", func() error { return os.WriteFile(name, []byte("one"), 0o600) }},
		{"longer", func() error { return os.WriteFile(name, []byte("three"), 0o600) }},
		{"same length, other time", func() error {
			fixture.WriteFile(t, name, "seven")
			return os.Chtimes(name, time.Now(), time.Now().Add(-time.Hour))
		}},
		{"replaced, with size and time kept", func() error {
			info, err := os.Stat(name)
			if err != nil {
				return err
			}
			fixture.WriteFile(t, name+"2", "eight")
			if err := os.Chtimes(name+"2", info.ModTime(), info.ModTime()); err != nil {
				return err
			}
			return os.Rename(name+"2", name)
		}},
		{"mode", func() error { return os.Chmod(name, 0o640) }},
	} {
		if err := change.do(); err != nil {
			t.Fatal(err)
		}
		st, err := w.StatPath(t.Context(), p)
		file, quick, quickErr := w.Open(p)
		if quickErr == nil {
			file.Close()
		}
		if err != nil || quickErr != nil || !st.SameStat(quick) || quick.Hash != "" {
			t.Errorf("%s: got %+v %+v %v %v, want no error and quickErr = nil and st.SameStat(quick) and quick.Hash = \"\"",
				change.what, st, quick, err, quickErr)
		}
		if st.SameStat(last) {
			t.Errorf("%s: not seen in %+v", change.what, st)
		}
		last = st
	}
}

func TestLimitsOfReading(t *testing.T) {
	w, root := open(t)
	fixture.WriteFile(t, filepath.Join(root, "f"), strings.Repeat("x", 1000))
	p := resolve(t, w, "f")
	for limit, fits := range map[int64]bool{0: true, 999: false, 1000: true, 1: false, 1 << 40: true} {
		data, st, err := w.Read(t.Context(), p, limit)
		var large *TooLargeError
		if fits && (err != nil || len(data) != 1000 || st.Hash != HashOf(data)) {
			t.Errorf("limit %d: %d bytes, %v", limit, len(data), err)
		}
		if !fits && (!errors.As(err, &large) || large.Size != 1000 || large.Limit != limit || large.Path != "f" || data != nil) {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
	for _, size := range []int{0, 1, bytes.MinRead - 1, bytes.MinRead, 1<<20 - 1, 1 << 20, 1<<20 + 1, 3 << 20} {
		want := strings.Repeat("0123456789", size/10+1)[:size]
		fixture.WriteFile(t, filepath.Join(root, "sized"), want)
		data, st, err := w.Read(t.Context(), resolve(t, w, "sized"), 0)
		if err != nil || data == nil || string(data) != want || st.Hash != HashOf([]byte(want)) || st.Size != int64(size) {
			t.Errorf("%d bytes: %d were read, %v", size, len(data), err)
		}
	}
	// A file that has no size on paper is still read to its end.
	if data, _, err := w.Read(t.Context(), resolve(t, w, "/proc/self/status"), 0); err != nil || len(data) == 0 {
		t.Logf("no such file here: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := w.Read(ctx, p, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := w.Stat(ctx, "f"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A sparse file of a terabyte must cost nothing before it is refused, and a read
// of one stops when its caller does.
func TestHugeFiles(t *testing.T) {
	w, root := open(t)
	name := filepath.Join(root, "huge")
	fixture.WriteFile(t, name, "")
	if err := os.Truncate(name, 1<<40); err != nil {
		t.Skip(err)
	}
	p := resolve(t, w, "huge")
	var large *TooLargeError
	if _, _, err := w.Read(t.Context(), p, 32<<20); !errors.As(err, &large) || large.Size != 1<<40 {
		t.Errorf("Read: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := w.StatPath(ctx, p); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("StatPath: %v", err)
	}
	if _, err := w.Write(ctx, p, []byte("x"), "another hash"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Write: %v", err)
	}
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("they went on for %v", d)
	}
	if left, _ := os.ReadDir(root); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func TestOpenGivesTheContentThatWasThere(t *testing.T) {
	w, root := open(t)
	name := filepath.Join(root, "f")
	fixture.WriteFile(t, name, "first")
	f, st, err := w.Open(resolve(t, w, "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fixture.WriteFile(t, name+"2", "second")
	if err := os.Rename(name+"2", name); err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(f)
	if err != nil || !bytes.Equal(data, []byte("first")) || st.Size != 5 || st.Path != "f" {
		t.Errorf(`got %q %+v %v, want no error and bytes.Equal(data, []byte("first")) and st.Size = 5 and st.Path = "f"`,
			data, st, err)
	}
}
