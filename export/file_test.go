package export

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

// names are the files of a folder.
func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	fixture.NoError(t, err)
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}

// A failure, whenever it comes, leaves what was there, and nothing beside it.
func TestFileIsWholeOrAsItWas(t *testing.T) {
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		write func(io.Writer) error
		check func(*os.File) error
	}{
		"before a byte": {func(io.Writer) error { return broken }, nil},
		"in the middle": {func(w io.Writer) error { return errors.Join(second(io.WriteString(w, "half")), broken) }, nil},
		"in the check":  {func(w io.Writer) error { return second(io.WriteString(w, "whole")) }, func(*os.File) error { return broken }},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "a")
		fixture.NoError(t, os.WriteFile(path, []byte("old"), 0o640))
		if err := ToFile(path, tt.write, tt.check); !errors.Is(err, broken) || strings.Count(err.Error(), "broken") != 1 {
			t.Errorf("%s: got %v, want errors.Is(err, broken) and strings.Count(err.Error(), \"broken\") = 1",
				name, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "old" {
			t.Errorf("%s: the file is %q, %v", name, got, err)
		}
		if d := cmp.Diff([]string{"a"}, names(t, dir)); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", name, d)
		}
	}
}

func second(_ int, err error) error { return err }

// A link stays a link, a file gets the right to be read by its owner only, and what is no
// file is written to.
func TestFileOfEveryKind(t *testing.T) {
	dir := t.TempDir()
	text := func(w io.Writer) error { return second(io.WriteString(w, "new")) }
	fixture.NoError(t, os.WriteFile(filepath.Join(dir, "real"), []byte("old"), 0o644))
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	fixture.NoError(t, ToFile(filepath.Join(dir, "link"), text, nil))
	info, err := os.Lstat(filepath.Join(dir, "link"))
	fixture.NoError(t, err)
	real, err := os.Lstat(filepath.Join(dir, "real"))
	fixture.NoError(t, err)
	if info.Mode()&os.ModeSymlink == 0 || real.Mode().Perm() != 0o600 {
		t.Errorf("the link is %v, its file %v", info.Mode(), real.Mode())
	}
	fixture.NoError(t, ToFile(os.DevNull, text, nil))
	if err := ToFile(filepath.Join(dir, "nosuch", "a"), text, nil); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("into a folder that is not there: %v", err)
	}
	if err := ToFile(dir, text, nil); err == nil {
		t.Error("a folder was replaced by a file")
	}
	if d := cmp.Diff([]string{"link", "real"}, names(t, dir)); d != "" {
		t.Error(d)
	}
}

// A link to a file that is not there yet leads to it, too, wherever it points from.
func TestFileBehindALinkToNothing(t *testing.T) {
	if os.PathSeparator == '\\' {
		t.Skip("links need a right there")
	}
	dir := t.TempDir()
	text := func(w io.Writer) error { return second(io.WriteString(w, "new")) }
	fixture.NoError(t, os.MkdirAll(filepath.Join(dir, "far", "deep"), 0o700))
	fixture.NoError(t, os.Symlink("far/deep", filepath.Join(dir, "short")))
	for link, to := range map[string]string{
		"beside": "b", "below": "short/c", "above": "short/../d", "twice": "beside", "absolute": filepath.Join(dir, "e"),
		"short/up": "../f",
	} {
		fixture.NoError(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	for link, real := range map[string]string{
		"beside": "b", "below": "far/deep/c", "above": "far/d", "twice": "b", "absolute": "e", "short/up": "far/f",
	} {
		fixture.NoError(t, ToFile(filepath.Join(dir, link), text, nil))
		if info, err := os.Lstat(filepath.Join(dir, link)); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s is no link any more: %v", link, err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, real)); err != nil || string(got) != "new" {
			t.Errorf("behind %s lies %q, %v", link, got, err)
		}
	}
	fixture.NoError(t, os.Symlink("round", filepath.Join(dir, "round")))
	fixture.NoError(t, os.Symlink("nosuch/a", filepath.Join(dir, "lost")))
	for link, want := range map[string]string{"round": "loop", "lost": "nosuch"} {
		if err := ToFile(filepath.Join(dir, link), text, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error and strings.Contains(err.Error(), want)", link, err)
		}
		if _, err := os.Readlink(filepath.Join(dir, link)); err != nil {
			t.Errorf("%s is gone: %v", link, err)
		}
	}
}

// What an export that was killed left is removed by the next one; what another export
// writes just now, or what only looks like it, is not.
func TestLeftoversAreSwept(t *testing.T) {
	if os.PathSeparator == '\\' {
		t.Skip("an open file cannot be removed there")
	}
	dir := filepath.Join(t.TempDir(), "a[1]*?") // a name that would be a pattern
	fixture.NoError(t, os.Mkdir(dir, 0o700))
	put := func(name string) { fixture.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o600)) }
	put(prefix + "123")
	put("roost-export-mine")
	fixture.NoError(t, os.Mkdir(filepath.Join(dir, prefix+"folder"), 0o700))
	fixture.NoError(t, os.Symlink("roost-export-mine", filepath.Join(dir, prefix+"link")))
	path := filepath.Join(dir, "out")
	fixture.NoError(t, ToFile(path, func(w io.Writer) error {
		// A second export into the same folder, while the first one writes.
		fixture.NoError(t, ToFile(filepath.Join(dir, "other"), func(io.Writer) error { return nil }, nil))
		return second(io.WriteString(w, "whole"))
	}, nil))
	want := []string{prefix + "folder", prefix + "link", "other", "out", "roost-export-mine"}
	if d := cmp.Diff(want, names(t, dir)); d != "" {
		t.Error(d)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "whole" {
		t.Errorf("got %q, %v, want no error and string(got) = \"whole\"", got, err)
	}
}

// A form that is told to stop ends with that, and never as if it were whole.
func TestCancelledExportsFail(t *testing.T) {
	v := newStorage(t, folder(`[{"ts":1,"type":"say","say":"text","text":"x"}]`, `[{"role":"user","content":"x","ts":1}]`)).open("t1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range map[string]error{
		"html":   second2(HTML(ctx, io.Discard, v, Options{})),
		"json":   second2(JSON(ctx, io.Discard, v, Options{})),
		"md":     second2(Markdown(ctx, io.Discard, v, Options{})),
		"folder": second2(Folder(ctx, filepath.Join(t.TempDir(), "out"), v)),
	} {
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "t1") {
			t.Errorf("%s: got %v, want errors.Is(err, context.Canceled) and strings.Contains(err.Error(), \"t1\")",
				name, err)
		}
	}
}

func second2(_ api.Exported, err error) error { return err }
