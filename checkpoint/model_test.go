package checkpoint

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
)

// seen is what a test sees at a path by itself, without the package.
type seen struct {
	kind string
	mode uint32
	text string
}

// everything is all that stands in a workspace but for git's own.
func everything(t *rapid.T, root string) map[string]seen {
	out := map[string]seen{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".git" {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		rel, _ := filepath.Rel(root, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case info.IsDir():
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			out[Recorded(rel)] = seen{kind: api.KindLink, text: target}
		default:
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			out[Recorded(rel)] = seen{api.KindFile, uint32(info.Mode().Perm()), string(data)}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// anyEdit does something to a workspace, as a command could.
func anyEdit(t *rapid.T, root string) string {
	names := []string{"a", "b", "a.b", "x\xff", "n\nl", "sub"}
	dirs := []string{"", "d", "d/e", "a", "sub", "sub/deep"}
	at := filepath.Join(root, rapid.SampledFrom(dirs).Draw(t, "dir"), rapid.SampledFrom(names).Draw(t, "name"))
	text := rapid.SampledFrom([]string{"", "1", "2", "3\n", "four\r\n"}).Draw(t, "text")
	// What fails, because a file stands where a folder should, changes nothing.
	switch op := rapid.SampledFrom([]string{"write", "write", "write", "append", "chmod", "remove", "link", "rename", "touch", "same"}).Draw(t, "op"); op {
	case "write":
		_ = os.MkdirAll(filepath.Dir(at), 0o777)
		_ = os.WriteFile(at, []byte(text), 0o644)
	case "append":
		if info, err := os.Lstat(at); err == nil && info.Mode().IsRegular() {
			f, err := os.OpenFile(at, os.O_WRONLY|os.O_APPEND, 0)
			if err == nil {
				_, _ = f.WriteString(text)
				_ = f.Close()
			}
		}
	case "chmod":
		if info, err := os.Lstat(at); err == nil && info.Mode().IsRegular() {
			_ = os.Chmod(at, rapid.SampledFrom([]fs.FileMode{0o644, 0o755, 0o600}).Draw(t, "mode"))
		}
	case "remove":
		_ = os.RemoveAll(at)
	case "link":
		_ = os.MkdirAll(filepath.Dir(at), 0o777)
		_ = os.Symlink(rapid.SampledFrom([]string{"a", "../a", "d", "/nowhere", "."}).Draw(t, "target"), at)
	case "rename":
		_ = os.Rename(at, filepath.Join(root, rapid.SampledFrom(names).Draw(t, "to")))
	case "touch":
		_ = os.Chtimes(at, farPast, farPast)
	case "same":
		if info, err := os.Lstat(at); err == nil && info.Mode().IsRegular() {
			data, _ := os.ReadFile(at)
			_ = os.Remove(at)
			_ = os.WriteFile(at, data, info.Mode().Perm())
			_ = os.Chmod(at, info.Mode().Perm())
		}
	}
	return at
}

// Whatever happens between two looks: what is told is the true difference, with the
// contents of both sides.
func TestChangesAreTheDifference(t *testing.T) {
	t.Run("without git", func(t *testing.T) { few(t, 25); changesAreTheDifference(t, Options{Git: "none"}, false) })
	t.Run("with git", func(t *testing.T) { few(t, 6); changesAreTheDifference(t, Options{}, true) })
}

// few bounds the cases of a property whose cases are dear, unless more are asked for.
func few(t *testing.T, n int) {
	checks := flag.Lookup("rapid.checks")
	if old := checks.Value.String(); old == checks.DefValue {
		_ = checks.Value.Set(strconv.Itoa(n))
		t.Cleanup(func() { _ = checks.Value.Set(old) })
	}
}

func changesAreTheDifference(t *testing.T, o Options, git bool) {
	rapid.Check(t, func(rt *rapid.T) {
		l := newBench(t, o)
		for range rapid.IntRange(0, 12).Draw(rt, "edits before") {
			anyEdit(rt, l.root)
		}
		if git {
			l.write("tracked", "1")
			l.commitAll(l.root)
		}
		for range rapid.IntRange(1, 3).Draw(rt, "commands") {
			if rapid.Bool().Draw(rt, "another process") {
				l.k = l.open(o)
			}
			before := everything(rt, l.root)
			s, err := l.k.Survey(t.Context())
			if err != nil {
				rt.Fatal(err)
			}
			if u := s.unheld; u.String() != "" {
				rt.Fatalf("unheld: %v", u)
			}
			for range rapid.IntRange(0, 8).Draw(rt, "edits") {
				anyEdit(rt, l.root)
			}
			if git && rapid.Bool().Draw(rt, "commit") {
				l.write("tracked", fmt.Sprint(rapid.Int().Draw(rt, "n")))
				l.commitAll(l.root)
			}
			after := everything(rt, l.root)
			list, err := s.Changes(t.Context())
			if err != nil {
				rt.Fatal(err)
			}
			got, want := map[string][2]seen{}, map[string][2]seen{}
			for _, f := range list {
				got[f.Path] = [2]seen{l.seen(*f.Was), l.seen(f.Now)}
			}
			gone := seen{kind: api.KindGone}
			or := func(m map[string]seen, p string) seen {
				if v, ok := m[p]; ok {
					return v
				}
				return gone
			}
			for _, m := range []map[string]seen{before, after} {
				for p := range m {
					if d := [2]seen{or(before, p), or(after, p)}; d[0] != d[1] {
						want[p] = d
					}
				}
			}
			if d := cmp.Diff(want, got, cmp.AllowUnexported(seen{})); d != "" {
				rt.Fatal(d)
			}
		}
	})
}

func (l *bench) seen(v api.FileVersion) seen {
	s := seen{kind: v.Kind, mode: v.Mode}
	if v.Kind == api.KindFile || v.Kind == api.KindLink {
		s.text = l.content(v)
	}
	return s
}
