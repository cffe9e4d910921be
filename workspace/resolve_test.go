//go:build unix

package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// The judge of where a path leads is the standard library, for paths that exist.
func TestLinksAgainstTheLibrary(t *testing.T) {
	w, root := open(t)
	top := filepath.Dir(root)
	for _, d := range []string{"ws/a/b", "ws/c", "out/a"} {
		if err := os.MkdirAll(filepath.Join(top, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	fixture.WriteFile(t, filepath.Join(root, "a", "f"), "")
	fixture.WriteFile(t, filepath.Join(top, "out", "f"), "")
	names := []string{"a", "b", "c", "f", "..", ".", "l1", "l2", "l3", "a", "missing"}
	target := rapid.Custom(func(r *rapid.T) string {
		s := strings.Join(rapid.SliceOfN(rapid.SampledFrom(names), 1, 4).Draw(r, "target"), "/")
		if rapid.IntRange(0, 3).Draw(r, "absolute") == 0 {
			return filepath.Join(root, s)
		}
		return s
	})
	same := 0
	rapid.Check(t, func(r *rapid.T) {
		for _, place := range []string{"ws/l1", "ws/a/l2", "ws/c/l3", "out/l1"} {
			name := filepath.Join(top, place)
			os.Remove(name)
			if err := os.Symlink(target.Draw(r, place), name); err != nil {
				r.Fatal(err)
			}
		}
		for range 5 {
			// Clean as Resolve makes them; links may still hold "..".
			path := filepath.Join(root, strings.Join(rapid.SliceOfN(rapid.SampledFrom(names), 1, 5).Draw(r, "path"), "/"))
			want, wantErr := filepath.EvalSymlinks(path)
			got, info, err := followLinks(path)
			if wantErr != nil {
				if err == nil && info != nil && !os.IsNotExist(wantErr) && !isNotDir(wantErr) {
					r.Fatalf("%s leads to %s here, the library says %v", path, got, wantErr)
				}
				continue
			}
			same++
			if err != nil || got != want {
				r.Fatalf("%s leads to %s, %v; the library says %s", path, got, err, want)
			}
			real, err := os.Stat(path)
			if err != nil || info == nil || !os.SameFile(info, real) {
				r.Fatalf("%s: %v is not what stands there: %v", path, info, err)
			}
			p, err := w.Resolve(path)
			if err != nil || p.Real != want || p.Outside == (want == root || strings.HasPrefix(want, root+"/")) ||
				p.LinkedOutside != (p.Outside && (path == root || strings.HasPrefix(path, root+"/"))) {
				r.Fatalf("%+v %v", p, err)
			}
		}
	})
	t.Logf("%d paths compared", same)
}

func TestChainsOfLinks(t *testing.T) {
	w, root := open(t)
	fixture.WriteFile(t, filepath.Join(root, "l0"), "end")
	for i := 1; i <= 45; i++ {
		fixture.Link(t, fmt.Sprintf("l%d", i-1), filepath.Join(root, fmt.Sprintf("l%d", i)))
	}
	if p := resolve(t, w, "l40"); p.Real != filepath.Join(root, "l0") {
		t.Errorf("40 links lead to %s", p.Real)
	}
	if _, err := w.Resolve("l41"); !errors.Is(err, ErrPath) {
		t.Errorf("41 links: %v", err)
	}
	// Each name doubles the way: it must not take long to refuse.
	fixture.Link(t, "x/x/x/x/x/x/x/x", filepath.Join(root, "x"))
	if _, err := w.Resolve("x/y"); !errors.Is(err, ErrPath) {
		t.Errorf("a link through itself: %v", err)
	}
}

// The workspace folder may be put elsewhere and replaced by a link while the
// program runs: what is behind the link is not the workspace.
func TestTheRootIsLookedAtAgain(t *testing.T) {
	w, root := open(t)
	fixture.WriteFile(t, filepath.Join(root, "f"), "inside")
	inside := resolve(t, w, "f")
	moved, other := root+"-moved", root+"-other"
	fixture.WriteFile(t, filepath.Join(other, "f"), "outside")
	if err := os.Rename(root, moved); err != nil {
		t.Fatal(err)
	}
	fixture.Link(t, other, root)
	if p := resolve(t, w, "f"); !p.Outside || p.Real != filepath.Join(other, "f") {
		t.Errorf("behind a link: %+v", p)
	}
	if _, _, err := w.Read(t.Context(), inside, 0); !errors.Is(err, ErrChanged) {
		t.Errorf("an older judgement was used for reading: %v", err)
	}
	if _, err := w.Write(t.Context(), inside, []byte("x"), AnyContent); !errors.Is(err, ErrChanged) {
		t.Errorf("an older judgement was used for writing: %v", err)
	}
	// The same folder again by another way is the same workspace.
	os.Remove(root)
	if err := os.Rename(moved, root); err != nil {
		t.Fatal(err)
	}
	if p := resolve(t, w, "f"); p != inside {
		t.Errorf("back in its place: %+v", p)
	}
	// And a new folder in its place, as a fresh clone is, too.
	if err := os.RemoveAll(root); err != nil {
		t.Fatal(err)
	}
	fixture.WriteFile(t, filepath.Join(root, "f"), "new")
	if data, _, err := w.Read(t.Context(), resolve(t, w, "f"), 0); string(data) != "new" {
		t.Errorf("made anew: %q %v", data, err)
	}
}

func TestProtectedAndIgnoredThroughLinks(t *testing.T) {
	w, root := open(t)
	fixture.WriteFile(t, filepath.Join(root, IgnoreFile), "secret\n*.key\nlogs/\n")
	fixture.WriteFile(t, filepath.Join(root, "secret", "s"), "")
	fixture.WriteFile(t, filepath.Join(root, "logs", "l"), "")
	fixture.WriteFile(t, filepath.Join(root, ".roo", "rules.md"), "")
	fixture.WriteFile(t, filepath.Join(root, "plain"), "")
	for name, to := range map[string]string{"viaDir": "secret", "viaFile": "secret/s", "viaRoo": ".roo", "back": ".", "new.key": "plain", "AGENTS.md": "plain"} {
		fixture.Link(t, to, filepath.Join(root, name))
	}
	tests := []struct {
		path               string
		ignored, protected bool
	}{
		{"plain", false, false},
		{"secret/s", true, false},
		{"secret/new/deep", true, false},
		{"viaDir/s", true, false},
		{"viaDir/new", true, false},
		{"viaFile", true, false},
		{"back/secret/s", true, false},
		{"back/back/plain", false, false},
		{"a.key", true, false},
		{"A.KEY", true, false},
		{"logs", true, false},
		{"logs/l", true, false},
		{"other/logs", false, false}, // a file of that name, if any
		{"new.key", false, false},    // what it leads to counts
		{".roo/rules.md", false, true},
		{"viaRoo/rules.md", false, true},
		{"viaRoo/new.md", false, true},
		{".roo", false, false},
		{"sub/.roo/x", false, false},
		{"AGENTS.md", false, true}, // its name counts too: it will be read by it
		{"sub/AGENTS.md", false, true},
		{"agents.MD", false, true},
		{".vscode/settings.json", false, true},
		{"x.code-workspace", false, true},
		{IgnoreFile, true, true},
		{".", false, false},
		{"../secret", false, false},
	}
	for _, tt := range tests {
		p := resolve(t, w, tt.path)
		if p.Ignored != tt.ignored || p.Protected != tt.protected {
			t.Errorf("%s: ignored %v, protected %v, want %v, %v", tt.path, p.Ignored, p.Protected, tt.ignored, tt.protected)
		}
	}
}

func TestAFolderThatMayNotBeEntered(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may enter every folder")
	}
	w, root := open(t)
	fixture.WriteFile(t, filepath.Join(root, "locked", "f"), "")
	if err := os.Chmod(filepath.Join(root, "locked"), 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(filepath.Join(root, "locked"), 0o700) }()
	if _, err := w.Resolve("locked/f"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("Resolve: %v", err)
	}
}

func BenchmarkResolve(b *testing.B) {
	dir, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	deep := filepath.Join(dir, "internal", "package", "below")
	if err := os.MkdirAll(deep, 0o700); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(deep, "file.go"), nil, 0o600); err != nil {
		b.Fatal(err)
	}
	for _, rules := range []string{"", "*.key\nsecret/\n"} {
		if rules != "" {
			if err := os.WriteFile(filepath.Join(dir, IgnoreFile), []byte(rules), 0o600); err != nil {
				b.Fatal(err)
			}
		}
		w, err := Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("rules=%v", rules != ""), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.Resolve("internal/package/below/file.go"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestWithin(t *testing.T) {
	for _, tt := range []struct{ root, path, rel string }{
		{"/a/b", "/a/b", "."},
		{"/a/b", "/a/b/c", "c"},
		{"/a/b", "/a/b/..c/d", "..c/d"},
		{"/a/b", "/a/bc", ""},
		{"/a/b", "/a", ""},
		{"/a/b", "/", ""},
		{"/", "/", "."},
		{"/", "/a", "a"},
		{"/a/b", "/A/b/c", ""},
	} {
		if rel, ok := Within(tt.root, tt.path); rel != tt.rel || ok != (tt.rel != "") {
			t.Errorf("%s in %s: %q %v", tt.path, tt.root, rel, ok)
		}
	}
}

// A workspace may be the whole disk, as in a container.
func TestTheRootOfTheDisk(t *testing.T) {
	w, err := Open("/")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p, err := w.Resolve(filepath.Join(dir, "f"))
	if err != nil || p.Outside || p.Real != filepath.Join(dir, "f") || p.Readable != strings.TrimPrefix(p.Real, "/") {
		t.Fatalf(`got %+v, %v, want no error and not p.Outside and p.Real = filepath.Join(dir, "f") and p.Readable = strings.TrimPrefix(p.Real, "/")`,
			p, err)
	}
	if _, err := w.Write(t.Context(), p, []byte("x"), ""); err != nil {
		t.Fatal(err)
	}
	if data, _, err := w.Read(t.Context(), p, 0); err != nil || string(data) != "x" {
		t.Errorf("got %q, %v, want no error and string(data) = \"x\"", data, err)
	}
	if _, err := w.Write(t.Context(), resolve(t, w, "/"), nil, AnyContent); !errors.Is(err, ErrNotRegular) {
		t.Errorf("the root itself: %v", err)
	}
}
