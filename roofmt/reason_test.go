package roofmt_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/roost-dev/roost/roofmt"
)

// What stands in the place of a task's messages and cannot be read is named in words, whatever
// the system calls it.
func TestWhyMessagesCannotBeRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need rights")
	}
	outside := filepath.Join(t.TempDir(), "elsewhere.json")
	write(t, filepath.Dir(outside), map[string]string{"elsewhere.json": uiList(1)})
	for _, c := range []struct {
		name string
		make func(path string) error
		want string
	}{
		{"link out", func(path string) error { return os.Symlink(outside, path) },
			"can not be read: it is a link that leads out of the task's folder, and such links are not followed"},
		{"link to itself", func(path string) error { return os.Symlink(filepath.Base(path), path) },
			"can not be read: it is a link that leads in a circle (too many levels of symbolic links)"},
		{"folder", func(path string) error { return os.Mkdir(path, 0o700) }, "can not be read: it is not a regular file"},
	} {
		dir := t.TempDir()
		if err := c.make(filepath.Join(dir, roofmt.UIName)); err != nil {
			t.Fatal(err)
		}
		f, err := roofmt.Read(context.Background(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Losses) != 1 || f.Losses[0].Problem != c.want {
			t.Errorf("%s: got %+v, want len(f.Losses) = 1 and f.Losses[0].Problem = %v", c.name, f.Losses, c.want)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// An error that nobody has words for stays what the system said, without its call and path.
func TestReason(t *testing.T) {
	odd := errors.New("stale handle")
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("reading: %w", &fs.PathError{Op: "openat", Path: "x", Err: odd}), "stale handle"},
		{odd, "stale handle"},
		{&fs.PathError{Op: "openat", Path: "x", Err: fs.ErrPermission}, "this user may not read it (permission denied)"},
	} {
		if got := roofmt.Reason(c.err); got != c.want || strings.Contains(got, "openat") {
			t.Errorf("%v: got %q, want got = %v and not strings.Contains(got, \"openat\")", c.err, got, c.want)
		}
	}
}
