package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

func open(t *testing.T) (*Workspace, string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "ws")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	w, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	return w, root
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	fixture.WriteFile(t, filepath.Join(dir, "file"), "")
	for _, path := range []string{filepath.Join(dir, "gone"), filepath.Join(dir, "file")} {
		if _, err := Open(path); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), path) {
			t.Errorf("Open(%s): %v", path, err)
		}
	}
	if _, err := Open("a\x00b"); !errors.Is(err, ErrPath) {
		t.Error(err)
	}
}

func TestResolve(t *testing.T) {
	w, root := open(t)
	out := filepath.Join(root, "..", "out")
	fixture.WriteFile(t, filepath.Join(out, "f"), "x")
	fixture.WriteFile(t, filepath.Join(root, "d", "f"), "x")
	fixture.Link(t, out, filepath.Join(root, "esc"))
	fixture.Link(t, filepath.Join(out, "new"), filepath.Join(root, "dangling"))
	fixture.Link(t, "d", filepath.Join(root, "in"))
	fixture.Link(t, "../ws/d/../d/f", filepath.Join(root, "back"))
	fixture.Link(t, root, filepath.Join(root, "..", "again"))
	out = filepath.Clean(out)
	tests := []struct {
		given, real, readable string
		outside               bool
	}{
		{"d/f", root + "/d/f", "d/f", false},
		{"./d//f", root + "/d/f", "d/f", false},
		{".", root, "ws", false},
		{"", root, "ws", false},
		{root, root, "ws", false},
		{"d/..", root, "ws", false},
		{"new/deep/x", root + "/new/deep/x", "new/deep/x", false},
		{"..", filepath.Dir(root), filepath.Dir(root), true},
		{"../wsx", filepath.Dir(root) + "/wsx", filepath.Dir(root) + "/wsx", true},
		{"..x", root + "/..x", "..x", false},
		{"esc/f", out + "/f", "esc/f", true},
		{"esc/new/x", out + "/new/x", "esc/new/x", true},
		{"dangling", out + "/new", "dangling", true},
		{"in/new", root + "/d/new", "in/new", false},
		{"back", root + "/d/f", "back", false},
		{filepath.Dir(root) + "/again/d/f", root + "/d/f", "d/f", false},
		{"d/f/through", root + "/d/f/through", "d/f/through", false},
	}
	for _, tt := range tests {
		p, err := w.Resolve(tt.given)
		if err != nil {
			t.Errorf("%s: got %v, want no error", tt.given, err)
			continue
		}
		if p.Real != tt.real || p.Readable != tt.readable || p.Outside != tt.outside {
			t.Errorf("%s: got %+v, want p.Real = tt.real and p.Readable = tt.readable and p.Outside = tt.outside",
				tt.given, p)
		}
	}
	fixture.Link(t, "loop", filepath.Join(root, "loop"))
	for _, bad := range []string{"a\x00b", strings.Repeat("a/", 3000), strings.Repeat("a", 300), "loop", "loop/x"} {
		if _, err := w.Resolve(bad); !errors.Is(err, ErrPath) {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
}

func TestRootThroughLink(t *testing.T) {
	_, root := open(t)
	alias := filepath.Join(root, "..", "alias")
	fixture.Link(t, root, alias)
	w, err := Open(alias)
	if err != nil {
		t.Fatal(err)
	}
	p, err := w.Resolve(filepath.Join(filepath.Dir(root), "alias", "new.txt"))
	if err != nil || w.Root() != root || p.Outside || p.Readable != "new.txt" {
		t.Errorf("got %+v %v, want no error and w.Root() = root and not p.Outside and p.Readable = \"new.txt\"",
			p, err)
	}
}

func TestRulesAreReloadedAndFailClosed(t *testing.T) {
	w, root := open(t)
	ignored := func() bool {
		p, err := w.Resolve("a.key")
		if err != nil {
			t.Fatal(err)
		}
		return p.Ignored
	}
	name := filepath.Join(root, IgnoreFile)
	for _, text := range []string{"", "*.key\n", "*.kez\n", "*.key\n"} {
		fixture.WriteFile(t, name, text)
		if got := ignored(); got != strings.Contains(text, ".key") {
			t.Errorf("%q: got %v, want got = strings.Contains(text, \".key\")", text, got)
		}
	}
	os.Remove(name)
	if ignored() {
		t.Error("rules outlived their file")
	}
	if err := os.Mkdir(name, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Resolve("a.key"); err == nil {
		t.Error("unreadable rules let everything through")
	}
}

func TestWrite(t *testing.T) {
	ctx := context.Background()
	w, root := open(t)
	write := func(path, data, expect string) (FileState, error) {
		p, err := w.Resolve(path)
		if err != nil {
			t.Fatal(err)
		}
		return w.Write(ctx, p, []byte(data), expect)
	}
	st, err := write("x/y/z", "one", "")
	if err != nil || st.Hash != HashOf([]byte("one")) || st.Path != "x/y/z" || st.Size != 3 {
		t.Fatalf(`got %+v %v, want no error and st.Hash = HashOf([]byte("one")) and st.Path = "x/y/z" and st.Size = 3`,
			st, err)
	}
	again, err := w.Stat(ctx, "x/y/z")
	if err != nil || again != st {
		t.Errorf("%v %s", err, cmp.Diff(st, again))
	}
	if _, err := write("x/y/z", "two", ""); !errors.Is(err, ErrChanged) {
		t.Errorf("there was a file: %v", err)
	}
	if _, err := write("x/y/z", "two", HashOf([]byte("other"))); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
	name := filepath.Join(root, "x/y/z")
	if err := os.Chmod(name, 0o751); err != nil {
		t.Fatal(err)
	}
	fixture.Link(t, "x/y/z", filepath.Join(root, "l"))
	if _, err := write("l", "two", st.Hash); err != nil {
		t.Fatal(err)
	}
	info, _ := os.Lstat(filepath.Join(root, "l"))
	if data, _ := os.ReadFile(name); string(data) != "two" || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("got %q %v, want string(data) = \"two\" and info.Mode()&os.ModeSymlink != 0", data, info.Mode())
	}
	if info, _ := os.Stat(name); runtime.GOOS != "windows" && info.Mode().Perm() != 0o751 {
		t.Errorf("mode %v", info.Mode())
	}
	for _, path := range []string{".", "x", "x/y"} {
		if _, err := write(path, "no", AnyContent); !errors.Is(err, ErrNotRegular) {
			t.Errorf("%s: got %v, want errors.Is(err, ErrNotRegular)", path, err)
		}
	}
	if st, err := write("../out/new", "far", ""); err != nil || !filepath.IsAbs(st.Path) {
		t.Errorf("got %+v %v, want no error and filepath.IsAbs(st.Path)", st, err)
	}
	if left, _ := filepath.Glob(filepath.Join(root, "x/y/.*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A folder that becomes a link to elsewhere between judgement and writing.
func TestWriteSwappedFolder(t *testing.T) {
	w, root := open(t)
	fixture.WriteFile(t, filepath.Join(root, "d", "f"), "x")
	out := filepath.Join(root, "..", "out")
	if err := os.Mkdir(out, 0o700); err != nil {
		t.Fatal(err)
	}
	p, err := w.Resolve("d/f")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(root, "d"), filepath.Join(root, "d2")); err != nil {
		t.Fatal(err)
	}
	fixture.Link(t, out, filepath.Join(root, "d"))
	if _, err := w.Write(context.Background(), p, []byte("y"), AnyContent); !errors.Is(err, ErrChanged) {
		t.Errorf("Write: %v", err)
	}
	// Even after a judgement that came too early: the pinned folder refuses.
	if dir, err := w.pinFolder(filepath.Dir(p.Real), true); err == nil {
		dir.release(true)
		t.Error("a link led out of the workspace")
	}
	if entries, _ := os.ReadDir(out); len(entries) > 0 {
		t.Errorf("written outside: %v", entries)
	}
}

func TestConcurrentWritesAreWhole(t *testing.T) {
	w, root := open(t)
	p, err := w.Resolve("f")
	if err != nil {
		t.Fatal(err)
	}
	fixture.WriteFile(t, filepath.Join(root, "f"), strings.Repeat("0", 5000))
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 10 {
				if _, err := w.Write(context.Background(), p, []byte(strings.Repeat(fmt.Sprint(i), 5000)), AnyContent); err != nil {
					t.Error(err)
				}
				data, _, err := w.Read(context.Background(), p, 0)
				if err != nil || len(data) != 5000 || strings.Trim(string(data), string(data[:1])) != "" {
					t.Errorf("half a file: %d bytes, %v", len(data), err)
				}
			}
		}()
	}
	wg.Wait()
}

func TestStat(t *testing.T) {
	w, root := open(t)
	ctx := context.Background()
	if st, err := w.Stat(ctx, "no/such"); err != nil || st.Exists() {
		t.Errorf("got %+v %v, want no error and not st.Exists()", st, err)
	}
	if _, err := w.Stat(ctx, "."); !errors.Is(err, ErrNotRegular) {
		t.Error(err)
	}
	fixture.WriteFile(t, filepath.Join(root, "f"), "abc")
	p, _ := w.Resolve("f")
	st, err := w.StatPath(ctx, p)
	if err != nil || !st.Exists() {
		t.Errorf("got %+v, %v, want a file", st, err)
	}
	var large *TooLargeError
	if _, _, err := w.Read(ctx, p, 2); !errors.As(err, &large) || large.Size != 3 {
		t.Error(err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := w.StatPath(cancelled, p); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestBlockedWord(t *testing.T) {
	w, root := open(t)
	fixture.WriteFile(t, filepath.Join(root, IgnoreFile), "*.key\nsecret/\n")
	fixture.WriteFile(t, filepath.Join(root, "secret/s"), "")
	tests := []struct{ command, want string }{
		{"cat a.key", "a.key"}, {"cat ok", ""}, {"echo a.key", ""}, {"CAT -n ok a.key", "a.key"},
		{"cat ok|cat a.key", "a.key"}, {`cat "a.key"`, "a.key"}, {"cat 'a'.key", "a.key"}, {"/bin/cat secret/s", "secret/s"},
		{"cat " + root + "/a.key", root + "/a.key"}, {"wc <a.key", "a.key"}, {"<a.key wc", "a.key"}, {"echo x >a.key", ""},
		{"true && (head a.key)", "a.key"}, {"echo $(cat a.key)", "a.key"}, {"cat a\\.key", "a.key"}, {"type secret\\s", "secret/s"},
		{"cat 'unclosed a.key", "unclosed a.key"}, {"", ""}, {"|;&", ""}, {"grep -e a.key", "a.key"},
	}
	for _, tt := range tests {
		got, err := w.BlockedWord(tt.command)
		if err != nil || got != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.command, got, err, tt.want)
		}
	}
}

// The judge of the matcher is git itself.
func TestIgnoreAgainstGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git here")
	}
	dir := t.TempDir()
	gitRun := func(stdin string, args ...string) string {
		cmd := exec.Command(git, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME="+dir)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.Output()
		var exit *exec.ExitError
		if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
			t.Fatalf("git %v: %v", args, err)
		}
		return string(out)
	}
	gitRun("", "init", "-q")
	var paths []string
	for _, a := range []string{"a", "b", "ab", "foo", "x.log", "A"} {
		paths = append(paths, a)
		for _, b := range []string{"a", "foo", "c.txt"} {
			paths = append(paths, a+"/"+b)
			for _, c := range []string{"b", "x.log"} {
				paths = append(paths, a+"/"+b+"/"+c)
			}
		}
	}
	piece := rapid.SampledFrom([]string{"a", "b", "foo", "*", "**", "?", "[ab]", "[!a]", "*.log", "c.txt", "a*", "f?o", "[a-c]", "x.*", "\\a", "[^b]*", "***", "a**b", "[[:alpha:]]"})
	line := rapid.Custom(func(r *rapid.T) string {
		s := strings.Join(rapid.SliceOfN(piece, 1, 3).Draw(r, "pieces"), "/")
		s = rapid.SampledFrom([]string{"", "", "", "!", "/", "!/"}).Draw(r, "before") + s
		return s + rapid.SampledFrom([]string{"", "", "/", " ", "/**"}).Draw(r, "after")
	})
	checked := 0
	rapid.Check(t, func(r *rapid.T) {
		text := strings.Join(rapid.SliceOfN(line, 1, 6).Draw(r, "lines"), "\n") + "\n"
		fixture.WriteFile(t, filepath.Join(dir, ".git/info/exclude"), text)
		// No such files exist, so git takes every path as a file.
		out := gitRun(strings.Join(paths, "\x00"), "check-ignore", "--no-index", "-z", "--stdin")
		hidden := map[string]bool{}
		for _, p := range strings.Split(out, "\x00") {
			hidden[p] = true
		}
		ig := ParseIgnore(text, false)
		for _, p := range paths {
			checked++
			if got := ig.Hides(p, false); got != hidden[p] {
				r.Fatalf("rules %q, path %q: %v, git says %v", text, p, got, hidden[p])
			}
		}
	})
	t.Logf("%d verdicts compared with git", checked)
}

func FuzzIgnore(f *testing.F) {
	f.Add("*.log\n!a\n[a-\n\\", "a/b.log")
	f.Add("a/**/b\n[[:x:]]\n", "\xff/\x00")
	f.Fuzz(func(t *testing.T, text, path string) {
		ig := ParseIgnore(text, true)
		if ig.Hides(path, false) && !ig.Hides(path+"/below", false) {
			t.Errorf("%q hides %q but not what is in it", text, path)
		}
	})
}

func ExampleWorkspace_Resolve() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	w, err := Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range []string{"src/../main.go", ".roo/rules.md", "../elsewhere"} {
		p, _ := w.Resolve(path)
		fmt.Println(filepath.Base(p.Readable), p.Outside, p.Protected)
	}
	// Output:
	// main.go false false
	// rules.md false true
	// elsewhere true false
}
