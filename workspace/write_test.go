//go:build unix

package workspace

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// AnyContent, passed to Write as the expected hash, stands for the content that the file has.
const AnyContent = "any"

// Write applies the change of one file.
func (w *Workspace) Write(ctx context.Context, p Path, data []byte, expect string) (FileState, error) {
	for try := 0; ; try++ {
		c := Change{Path: p, Data: data, Expect: expect}
		if expect == AnyContent {
			now, err := w.StatPath(ctx, p)
			if err != nil {
				return FileState{}, err
			}
			c.Expect = now.Hash
		}
		states, err := w.Apply(ctx, []Change{c})
		switch {
		case err == nil:
			return states[0], nil
		case expect != AnyContent || !errors.Is(err, ErrChanged) || try == 1000:
			return FileState{}, err
		}
	}
}

// resolve is Resolve for paths that are fine.
func resolve(t *testing.T, w *Workspace, path string) Path {
	t.Helper()
	p, err := w.Resolve(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// tree describes all that is under a folder: kind and mode, or content.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		switch {
		case d.Type().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil && !errors.Is(err, fs.ErrPermission) {
				return err
			}
			out[rel] = string(data)
		case d.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			out[rel] = "-> " + to
		default:
			out[rel] = d.Type().String()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// unchanged runs a function and fails if it changed anything under root.
func unchanged(t *testing.T, root string, fn func()) {
	t.Helper()
	before := tree(t, root)
	fn()
	if d := cmp.Diff(before, tree(t, root)); d != "" {
		t.Errorf("something was changed: %s", d)
	}
}

func TestWriteKeepsBytes(t *testing.T) {
	w, root := open(t)
	p := resolve(t, w, "f")
	rapid.Check(t, func(r *rapid.T) {
		piece := rapid.SampledFrom([]string{"a", "\n", "\r\n", "\r", "\x00", "\ufeff", "\xff\xfe", "é", " ", "\t"})
		data := []byte(strings.Join(rapid.SliceOf(piece).Draw(r, "pieces"), ""))
		st, err := w.Write(t.Context(), p, data, AnyContent)
		if err != nil {
			r.Fatal(err)
		}
		got, now, err := w.Read(t.Context(), p, 0)
		if err != nil || !bytes.Equal(got, data) {
			r.Fatalf("wrote %q, read %q, %v", data, got, err)
		}
		if d := cmp.Diff(st, now); d != "" {
			r.Fatalf("the state that Write gave is not that of the file: %s", d)
		}
	})
	if d := cmp.Diff([]string{".", "f"}, keysOf(tree(t, root))); d != "" {
		t.Errorf("left behind: %s", d)
	}
}

func keysOf(m map[string]string) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func TestWriteKeepsTheMode(t *testing.T) {
	w, root := open(t)
	name := filepath.Join(root, "f")
	for _, mode := range []fs.FileMode{0o600, 0o640, 0o644, 0o755, 0o700, 0o666, 0o200, 0o755 | fs.ModeSetuid, 0o755 | fs.ModeSetgid} {
		fixture.WriteFile(t, name, "old")
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(t.Context(), resolve(t, w, "f"), []byte("new"), HashOf([]byte("old"))); err != nil {
			t.Errorf("%v: got %v, want no error", mode, err)
			continue
		}
		info, err := os.Stat(name)
		if err != nil || info.Mode() != mode {
			t.Errorf("%v became %v, %v", mode, info.Mode(), err)
		}
	}
	old := syscall.Umask(0o027)
	defer syscall.Umask(old)
	if _, err := w.Write(t.Context(), resolve(t, w, "d/new"), nil, ""); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]fs.FileMode{"d": 0o750 | fs.ModeDir, "d/new": 0o640} {
		if info, err := os.Stat(filepath.Join(root, path)); err != nil || info.Mode() != want {
			t.Errorf("%s has mode %v, the umask gives %v", path, info.Mode(), want)
		}
	}
}

// A private file must not be readable by others while it is written either.
func TestTheTemporaryFileIsAsPrivateAsItsTarget(t *testing.T) {
	w, root := open(t)
	name := filepath.Join(root, "f")
	fixture.WriteFile(t, name, "old secret")
	if err := os.Chmod(name, 0o600); err != nil {
		t.Fatal(err)
	}
	p := resolve(t, w, "f")
	info, err := os.Lstat(p.Real)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := w.pinFolder(root, true)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.release(true)
	tmp, err := createTemp(dir.Root, "f", info != nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tmp.discard()
	if got, err := os.Stat(filepath.Join(root, tmp.name)); err != nil || got.Mode().Perm() != 0o600 {
		t.Errorf("before its first byte it has mode %v, %v", got.Mode(), err)
	}
}

func TestReadOnlyFilesStay(t *testing.T) {
	w, root := open(t)
	fixture.WriteFile(t, filepath.Join(root, "f"), "precious")
	for _, mode := range []fs.FileMode{0o444, 0o400, 0o555} {
		if err := os.Chmod(filepath.Join(root, "f"), mode); err != nil {
			t.Fatal(err)
		}
		unchanged(t, root, func() {
			_, err := w.Write(t.Context(), resolve(t, w, "f"), []byte("x"), AnyContent)
			if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "read-only") {
				t.Errorf("%v: got %v, want errors.Is(err, fs.ErrPermission) and strings.Contains(err.Error(), \"read-only\")",
					mode, err)
			}
		})
	}
}

// Hard links: the file is a new one, the other name keeps the old content. It is
// what the package says, so nobody should find it changed by accident.
func TestOtherNamesKeepTheOldContent(t *testing.T) {
	w, root := open(t)
	fixture.WriteFile(t, filepath.Join(root, "f"), "old")
	if err := os.Link(filepath.Join(root, "f"), filepath.Join(root, "..", "other")); err != nil {
		t.Skip(err)
	}
	if _, err := w.Write(t.Context(), resolve(t, w, "f"), []byte("new"), AnyContent); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(filepath.Join(root, "..", "other")); string(data) != "old" {
		t.Errorf("the other name holds %q", data)
	}
	info, err := os.Stat(filepath.Join(root, "f"))
	if err != nil || info.Sys().(*syscall.Stat_t).Nlink != 1 {
		t.Errorf("the new file has another name: %v", err)
	}
}

func TestWhatIsNoFileStays(t *testing.T) {
	w, root := open(t)
	if err := syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	fixture.WriteFile(t, filepath.Join(root, "dir", "x"), "x")
	fixture.WriteFile(t, filepath.Join(root, "file"), "x")
	tests := []struct {
		path string
		want error
	}{
		{"pipe", ErrNotRegular},
		{"dir", ErrNotRegular},
		{"dir/", ErrNotRegular},
		{".", ErrNotRegular},
		{"/dev/null", ErrNotRegular},
		{"/dev/tty", ErrNotRegular},
		{"file/below", syscall.ENOTDIR},
		{"file/far/below", syscall.ENOTDIR},
		{"pipe/below", syscall.ENOTDIR},
	}
	for _, tt := range tests {
		unchanged(t, root, func() {
			if _, err := w.Write(t.Context(), resolve(t, w, tt.path), []byte("x"), AnyContent); !errors.Is(err, tt.want) {
				t.Errorf("Write(%s): %v, want %v", tt.path, err, tt.want)
			}
		})
	}
}

func TestAFailedWriteLeavesNothing(t *testing.T) {
	w, root := open(t)
	fixture.WriteFile(t, filepath.Join(root, "f"), "theirs")
	fixture.WriteFile(t, filepath.Join(root, "kept", "x"), "")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name, path, expect string
		ctx                context.Context
		want               error
	}{
		{"changed", "f", HashOf([]byte("other")), t.Context(), ErrChanged},
		{"there already", "f", "", t.Context(), ErrChanged},
		{"not there", "new", HashOf(nil), t.Context(), ErrChanged},
		{"not there, in new folders", "a/b/c/new", HashOf(nil), t.Context(), ErrChanged},
		{"not there, below a folder", "kept/b/new", HashOf(nil), t.Context(), ErrChanged},
		{"cancelled", "f", AnyContent, cancelled, context.Canceled},
		{"cancelled, in new folders", "a/b/new", AnyContent, cancelled, context.Canceled},
		{"name too long", strings.Repeat("n", 254) + "é", "", t.Context(), ErrPath},
	}
	for _, tt := range tests {
		unchanged(t, root, func() {
			p, err := w.Resolve(tt.path)
			if err == nil {
				_, err = w.Write(tt.ctx, p, []byte("ours"), tt.expect)
			}
			if !errors.Is(err, tt.want) {
				t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
			}
		})
	}
}

func TestTheWorkspaceIsNotMadeAgain(t *testing.T) {
	w, root := open(t)
	p := resolve(t, w, "d/f")
	if err := os.RemoveAll(root); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(t.Context(), p, []byte("x"), ""); !errors.Is(err, ErrMissing) {
		t.Errorf("Write: %v", err)
	}
	if _, err := os.Lstat(root); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the workspace that was gone is there again")
	}
	if _, err := w.Sweep(p); err != nil {
		t.Errorf("Sweep: %v", err)
	}
}

func TestNamesOfAllKinds(t *testing.T) {
	w, root := open(t)
	for _, name := range []string{
		"two\nlines", "tab\tand\x1b[31mred", "caf\xe9", "\xff\xfe", "-rf", " blank ", "~", "$HOME", "*?[a]", "a\\b", "'\"`", "..a", "...", "\u202egnp.exe", "é", "e\u0301", strings.Repeat("n", 255),
	} {
		p, err := w.Resolve(name)
		if err != nil || p.Outside || p.Real != filepath.Join(root, name) {
			t.Errorf("%q: got %+v, %v, want no error and not p.Outside and p.Real = filepath.Join(root, name)",
				name, p, err)
			continue
		}
		st, err := w.Write(t.Context(), p, []byte(name), "")
		if err != nil {
			t.Errorf("%q: got %v, want no error", name, err)
			continue
		}
		if data, now, err := w.Read(t.Context(), p, 0); err != nil || string(data) != name || now != st {
			t.Errorf("%q: read %q, %v", name, data, err)
		}
		if entries, _ := os.ReadDir(root); len(entries) != 1 || entries[0].Name() != name {
			t.Errorf("%q stands as %v", name, entries)
		}
		os.Remove(p.Real)
	}
}

// What a model may give as a path: whatever it is, the answer is a judgement or an
// error, and a file that is written lies where it was said to.
func FuzzResolveAndWrite(f *testing.F) {
	for _, s := range []string{"a", "../x", "in/a", "out/a", "a\x00", "./../ws/a", "in/../../ws/in", "out/../a", strings.Repeat("../", 50) + "etc", "\xff/\n", "loop/x", "//a//", "a/."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if filepath.IsAbs(path) {
			path = path[1:]
		}
		w, root := open(t)
		if err := os.Mkdir(filepath.Join(root, "in"), 0o700); err != nil {
			t.Fatal(err)
		}
		outside := filepath.Join(root, "..", "outside")
		if err := os.Mkdir(outside, 0o700); err != nil {
			t.Fatal(err)
		}
		fixture.Link(t, "../outside", filepath.Join(root, "out"))
		fixture.Link(t, "loop", filepath.Join(root, "loop"))
		p, err := w.Resolve(path)
		if err != nil {
			return
		}
		if _, inside := Within(root, p.Real); inside == p.Outside {
			t.Fatalf("%q: got %+v, want inside != p.Outside", path, p)
		}
		if p.Outside {
			return
		}
		if _, err := w.Write(t.Context(), p, []byte("x"), ""); err == nil {
			if data, err := os.ReadFile(p.Real); err != nil || string(data) != "x" {
				t.Fatalf("%q is not at %q: %v", path, p.Real, err)
			}
		}
		if left := tree(t, outside); len(left) != 1 {
			t.Fatalf("%q wrote outside: %v", path, left)
		}
	})
}
