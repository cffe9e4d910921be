//go:build unix

package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
)

func absent(above int) api.FileVersion { return api.FileVersion{Kind: api.KindGone, Dirs: above} }

func fileOf(text string, mode uint32) api.FileVersion {
	return api.FileVersion{Kind: api.KindFile, Mode: mode, Size: int64(len(text)), Hash: HashOf([]byte(text))}
}

func linkOf(to string) api.FileVersion {
	return api.FileVersion{Kind: api.KindLink, Size: int64(len(to)), Hash: HashOf([]byte(to))}
}

// place puts one thing back; text is its content.
func place(t *testing.T, w *Workspace, rel string, from, to api.FileVersion, text string) RestoreResult {
	t.Helper()
	b := w.NewRestorer()
	got, err := b.Restore(t.Context(), rel, from, to, func() ([]byte, error) { return []byte(text), nil })
	if err == nil {
		err = b.Sync()
	}
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestPlace(t *testing.T) {
	for name, c := range map[string]struct {
		make     func(root string)
		rel      string
		from, to api.FileVersion
		text     string
		want     RestoreResult
		tree     string // all that stands there then
	}{
		"a file over another":    {func(r string) { mk(r, "a", "old", 0o600) }, "a", fileOf("old", 0o600), fileOf("new", 0o751), "new", Restored, "a=751 new"},
		"it stands there":        {func(r string) { mk(r, "a", "new", 0o751) }, "a", fileOf("old", 0o600), fileOf("new", 0o751), "new", AlreadyThere, "a=751 new"},
		"another one":            {func(r string) { mk(r, "a", "theirs", 0o600) }, "a", fileOf("old", 0o600), fileOf("new", 0o751), "new", LeftAlone, "a=600 theirs"},
		"another mode":           {func(r string) { mk(r, "a", "old", 0o644) }, "a", fileOf("old", 0o600), fileOf("new", 0o600), "new", LeftAlone, "a=644 old"},
		"only the mode":          {func(r string) { mk(r, "a", "old", 0o444) }, "a", fileOf("old", 0o444), fileOf("old", 0o700), "never asked for", Restored, "a=700 old"},
		"over a read-only one":   {func(r string) { mk(r, "a", "old", 0o400) }, "a", fileOf("old", 0o400), fileOf("new", 0o400), "new", Restored, "a=400 new"},
		"with folders":           {func(string) {}, "d/e/a", absent(2), fileOf("new", 0o644), "new", Restored, "d/e/a=644 new"},
		"its folders go with it": {func(r string) { mk(r, "d/e/f/a", "x", 0o644) }, "d/e/f/a", fileOf("x", 0o644), absent(2), "", Restored, "d/"},
		"as far as they are empty": {func(r string) { mk(r, "d/e/f/a", "x", 0o644); mk(r, "d/e/b", "y", 0o644) }, "d/e/f/a", fileOf("x", 0o644), absent(3), "",
			Restored, "d/e/b=644 y"},
		"more folders than there are": {func(r string) { mk(r, "d/a", "x", 0o644) }, "d/a", fileOf("x", 0o644), absent(99), "", Restored, ""},
		"its folder stays":            {func(r string) { mk(r, "d/a", "x", 0o644) }, "d/a", fileOf("x", 0o644), absent(0), "", Restored, "d/"},
		"a kill before the folders":   {func(r string) { _ = os.MkdirAll(filepath.Join(r, "d/e"), 0o777) }, "d/e/a", fileOf("x", 0o644), absent(2), "", AlreadyThere, ""},
		"a link over a file":          {func(r string) { mk(r, "a", "x", 0o644) }, "a", fileOf("x", 0o644), linkOf("../out"), "../out", Restored, "a>../out"},
		"a link where nothing is":     {func(string) {}, "d/a", absent(1), linkOf("b"), "b", Restored, "d/a>b"},
		"a file over a link":          {func(r string) { mk(r, "b", "b", 0o644); _ = os.Symlink("b", filepath.Join(r, "a")) }, "a", linkOf("b"), fileOf("x", 0o644), "x", Restored, "a=644 x b=644 b"},
		"a link goes, not its end":    {func(r string) { mk(r, "b", "b", 0o644); _ = os.Symlink("b", filepath.Join(r, "a")) }, "a", linkOf("b"), absent(0), "", Restored, "b=644 b"},
		"a link elsewhere":            {func(r string) { _ = os.Symlink("b", filepath.Join(r, "a")) }, "a", linkOf("c"), absent(0), "", LeftAlone, "a>b"},
		"an empty folder in the way":  {func(r string) { _ = os.Mkdir(filepath.Join(r, "a"), 0o777) }, "a", absent(0), fileOf("x", 0o644), "x", Restored, "a=644 x"},
		"a folder in the way":         {func(r string) { mk(r, "a/b", "y", 0o644) }, "a", absent(0), fileOf("x", 0o644), "x", LeftAlone, "a/b=644 y"},
		"a file in the way":           {func(r string) { mk(r, "a", "y", 0o644) }, "a/b", absent(1), fileOf("x", 0o644), "x", LeftAlone, "a=644 y"},
		"behind a link":               {func(r string) { mk(r, "d/a", "x", 0o644); _ = os.Symlink("d", filepath.Join(r, "l")) }, "l/a", fileOf("x", 0o644), fileOf("y", 0o644), "y", LeftAlone, "d/a=644 x l>d"},
		"gone behind a link":          {func(r string) { mk(r, "d/a", "x", 0o644); _ = os.Symlink("d", filepath.Join(r, "l")) }, "l/a", fileOf("x", 0o644), absent(1), "", AlreadyThere, "d/a=644 x l>d"},
		"behind a link, folders":      {func(r string) { mk(r, "d/a", "x", 0o644); _ = os.Symlink("d", filepath.Join(r, "l")) }, "l/new/a", absent(1), fileOf("y", 0o644), "y", LeftAlone, "d/a=644 x l>d"},
		"foreign is nothing of ours":  {func(r string) { mk(r, "a", "x", 0o644) }, "a", fileOf("x", 0o644), api.FileVersion{Kind: api.KindOther}, "", Restored, ""},
		"foreign that is gone":        {func(string) {}, "a", api.FileVersion{Kind: api.KindOther}, fileOf("x", 0o644), "x", Restored, "a=644 x"},
		"foreign that is there":       {func(r string) { _ = syscall.Mkfifo(filepath.Join(r, "a"), 0o600) }, "a", api.FileVersion{Kind: api.KindOther}, fileOf("x", 0o644), "x", LeftAlone, "a=pipe"},
	} {
		t.Run(name, func(t *testing.T) {
			w, root := open(t)
			c.make(root)
			if got := place(t, w, c.rel, c.from, c.to, c.text); got != c.want {
				t.Errorf("it says %d, not %d", got, c.want)
			}
			if d := cmp.Diff(c.tree, things(t, root)); d != "" {
				t.Error(d)
			}
			if c.want == Restored && c.to.Kind != api.KindOther {
				if got := place(t, w, c.rel, c.from, c.to, c.text); got != AlreadyThere {
					t.Errorf("the second time it says %d", got)
				}
			}
		})
	}
}

func mk(root, rel, text string, mode fs.FileMode) {
	path := filepath.Join(root, rel)
	_ = os.MkdirAll(filepath.Dir(path), 0o777)
	_ = os.WriteFile(path, []byte(text), 0o600)
	_ = os.Chmod(path, mode)
}

// things are all files and links, and folders that are empty, in one line.
func things(t *testing.T, root string) string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		info, err := d.Info()
		switch {
		case err != nil:
		case d.IsDir():
			if list, _ := os.ReadDir(path); len(list) == 0 {
				out = append(out, rel+"/")
			}
		case info.Mode()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			out = append(out, rel+">"+to)
		case !info.Mode().IsRegular():
			out = append(out, rel+"=pipe")
		default:
			_ = os.Chmod(path, info.Mode()|0o400)
			data, _ := os.ReadFile(path)
			_ = os.Chmod(path, info.Mode())
			out = append(out, fmt.Sprintf("%s=%o %s", rel, info.Mode().Perm(), data))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, " ")
}

// Whatever a log names as a path, nothing outside and nothing of git's is touched.
func TestPlaceKeepsToTheWorkspace(t *testing.T) {
	w, root := open(t)
	mk(root, "../out", "x", 0o644)
	mk(root, ".git/config", "x", 0o644)
	for _, rel := range []string{"../out", "/etc/passwd", root + "/a", ".git/config", "sub/.GIT/hooks/x", ".git", "", ".", "a/../b", "a//b", "a\x00b", "./a", ".git./x", strings.Repeat("a/", maxPath)} {
		_, err := w.NewRestorer().Restore(t.Context(), rel, fileOf("x", 0o644), absent(0), nil)
		if !errors.Is(err, ErrPath) {
			t.Errorf("%.40q: %v", rel, err)
		}
		if _, err := w.EntryAt(t.Context(), rel); !errors.Is(err, ErrPath) {
			t.Errorf("a look at %.40q: %v", rel, err)
		}
		if _, err := w.ReadEntry(t.Context(), rel, 0); !errors.Is(err, ErrPath) {
			t.Errorf("reading %.40q: %v", rel, err)
		}
	}
	if got := things(t, filepath.Dir(root)); got != "out=644 x ws/.git/config=644 x" {
		t.Error(got)
	}
}

// What the store gives is checked again before it is written, and a caller that gave up
// finds nothing changed.
func TestPlaceIsAllOrNothing(t *testing.T) {
	w, root := open(t)
	mk(root, "a", "old", 0o644)
	lost := errors.New("lost")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		data func() ([]byte, error)
	}{
		"another content": {t.Context(), func() ([]byte, error) { return []byte("something else"), nil }},
		"no content":      {t.Context(), func() ([]byte, error) { return nil, lost }},
		"given up":        {gone, func() ([]byte, error) { return []byte("new"), nil }},
	} {
		for _, rel := range []string{"a", "d/e/a"} {
			from := fileOf("old", 0o644)
			if rel != "a" {
				from = absent(2)
			}
			if _, err := w.NewRestorer().Restore(c.ctx, rel, from, fileOf("new", 0o644), c.data); err == nil || !strings.Contains(err.Error(), rel) {
				t.Errorf("%s: got %v, want an error and strings.Contains(err.Error(), rel)", name, err)
			}
		}
	}
	if got := things(t, root); got != "a=644 old" {
		t.Error(got)
	}
}

// However often a folder is exchanged for a link that leads out while files are put in
// it, none ends outside.
func TestPlaceIsNotLedOutMeanwhile(t *testing.T) {
	tr := newTrap(t, swapFolder("../outside"))
	before := things(t, tr.outside)
	states, texts := []api.FileVersion{fileOf("inside", 0o644), fileOf("SECRET", 0o644), fileOf("new", 0o600)}, []string{"inside", "SECRET", "new"}
	for i := range 300 {
		b := tr.w.NewRestorer()
		to := (i + 1) % 3
		_, _ = b.Restore(t.Context(), "d/f", states[i%3], states[to], func() ([]byte, error) { return []byte(texts[to]), nil })
		_, _ = b.Restore(t.Context(), "d/new", absent(0), fileOf("x", 0o644), func() ([]byte, error) { return []byte("x"), nil })
		_, _ = b.Restore(t.Context(), "d/new", fileOf("x", 0o644), absent(1), nil)
		_, _ = b.Restore(t.Context(), "d/sub/f", fileOf("SECRET", 0o644), absent(1), nil)
	}
	tr.end()
	if got := things(t, tr.outside); got != before || tr.swaps == 0 {
		t.Errorf("%s, after %d swaps", got, tr.swaps)
	}
}

func TestThingsAndMissingFolders(t *testing.T) {
	w, root := open(t)
	mk(root, "d/a", "x", 0o640)
	mk(root, "file", "x", 0o644)
	fixture.Link(t, "d", filepath.Join(root, "l"))
	for rel, want := range map[string]api.FileVersion{
		"d/a":      fileOf("x", 0o640),
		"d":        absent(0),
		"d/b":      absent(0),
		"n/m/b":    absent(2),
		"d/n/b":    absent(1),
		"file/b":   absent(1),
		"file/b/c": absent(2),
		"l":        linkOf("d"),
		"l/a":      {Kind: api.KindOther, Dirs: 1},
		"l/n/a":    {Kind: api.KindOther, Dirs: 2},
	} {
		got, err := w.EntryAt(t.Context(), rel)
		if err != nil || got != want {
			t.Errorf("%s: got %+v %v, want no error and got = %v", rel, got, err, want)
		}
	}
	for rel, want := range map[string]string{"d/a": "x", "l": "d"} {
		if data, err := w.ReadEntry(t.Context(), rel, 1); err != nil || string(data) != want {
			t.Errorf("%s: got %q %v, want no error and string(data) = %v", rel, data, err, want)
		}
	}
	var large *TooLargeError
	mk(root, "large", "xx", 0o644)
	if _, err := w.ReadEntry(t.Context(), "large", 1); !errors.As(err, &large) {
		t.Error(err)
	}
	if _, err := w.ReadEntry(t.Context(), "l/a", 0); err == nil {
		t.Error("it was read through a link")
	}
}

// A folder that may not be written to is said to be that; the name of our temporary file,
// which could not be made in it, tells nobody anything.
func TestPlaceAllInAClosedFolder(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("no folder is closed to this user")
	}
	w, root := open(t)
	mk(root, "ro/f", "old", 0o644)
	if err := os.Chmod(filepath.Join(root, "ro"), 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(root, "ro"), 0o755) })
	o := RestoreStep{Path: "ro/f", From: fileOf("old", 0o644), To: fileOf("new", 0o644), Data: func() ([]byte, error) { return []byte("new"), nil }}
	err := w.NewRestorer().RestoreAll(t.Context(), []RestoreStep{o}, func(int, RestoreResult) { t.Error("it was put back") })
	if want := "put back ro/f: its folder may not be written to: permission denied"; err == nil || err.Error() != want || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v, want %s", err, want)
	}
}

// Many things at once: each gets its name or stays as it was, in whatever order files,
// links and deletions come, and an error says of which it is and leaves nothing of those
// behind it.
func TestPlaceAll(t *testing.T) {
	for _, spoiled := range []int{-1, 1, maxOpenRestores + 7} {
		w, root := open(t)
		var orders []RestoreStep
		var want []string
		for i := range maxOpenRestores*2 + 5 {
			rel, to := fmt.Sprintf("d%d/f%03d", i%3, i), fileOf(fmt.Sprint(i), 0o644)
			o := RestoreStep{Path: rel, From: absent(1), To: to, Data: func() ([]byte, error) { return fmt.Append(nil, i), nil }}
			if i == spoiled {
				o.Data = func() ([]byte, error) { return nil, errors.New("lost") }
			}
			if i%50 == 49 {
				mk(root, rel, "theirs", 0o644)
			}
			orders, want = append(orders, o), append(want, rel)
		}
		did := map[int]RestoreResult{}
		b := w.NewRestorer()
		err := b.RestoreAll(t.Context(), orders, func(i int, put RestoreResult) {
			if _, twice := did[i]; twice {
				t.Errorf("order %d is told twice", i)
			}
			did[i] = put
		})
		if (err != nil) != (spoiled >= 0) || spoiled >= 0 && !strings.Contains(err.Error(), want[spoiled]) {
			t.Fatalf("spoiled %d: %v", spoiled, err)
		}
		if err := b.Sync(); err != nil {
			t.Fatal(err)
		}
		for i, rel := range want {
			got, told := did[i]
			data, err := os.ReadFile(filepath.Join(root, rel))
			switch {
			case i%50 == 49:
				if string(data) != "theirs" || told && got != LeftAlone {
					t.Errorf("%s is %q, %d", rel, data, got)
				}
			case told && (got != Restored || string(data) != fmt.Sprint(i)):
				t.Errorf("%s: %d, and holds %q", rel, got, data)
			case !told && (spoiled < 0 || err == nil):
				t.Errorf("%s was not told of, and holds %q", rel, data)
			}
		}
		if left := things(t, root); strings.Contains(left, ".roost-") {
			t.Errorf("temporary files stay: %.300s", left)
		}
	}
}
