//go:build unix

package agent_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/agent"
)

// ways are the ways in which a file gets another content, or seems to. told is what the
// model is told of it; "" for what is no change.
var ways = []struct {
	name, told string
	do         func(g *fileBench, path string)
}{
	{"in place", "f", func(g *fileBench, p string) { g.must(os.WriteFile(p, []byte("other\n"), 0o644)) }},
	{"in place, as long", "f", func(g *fileBench, p string) { g.must(os.WriteFile(p, []byte("THREE\n"), 0o644)) }},
	{"in place, as long and as old", "f", func(g *fileBench, p string) { g.must(os.WriteFile(p, []byte("THREE\n"), 0o644)); g.old(p) }},
	{"one byte", "f", func(g *fileBench, p string) {
		f, err := os.OpenFile(p, os.O_WRONLY, 0)
		g.must(err)
		_, err = f.WriteAt([]byte("T"), 0)
		g.must(err)
		g.must(f.Close())
	}},
	{"renamed over", "f", func(g *fileBench, p string) {
		g.put("tmp", "other\n")
		g.must(os.Rename(filepath.Join(g.dir, "tmp"), p))
	}},
	{"renamed over, as long and as old", "f", func(g *fileBench, p string) {
		g.put("tmp", "THREE\n")
		g.old(filepath.Join(g.dir, "tmp"))
		g.must(os.Rename(filepath.Join(g.dir, "tmp"), p))
	}},
	{"cut", "f", func(g *fileBench, p string) { g.must(os.Truncate(p, 2)) }},
	{"emptied", "f", func(g *fileBench, p string) { g.must(os.Truncate(p, 0)) }},
	{"grown with zeros", "f", func(g *fileBench, p string) { g.must(os.Truncate(p, 20)) }},
	{"appended", "f", func(g *fileBench, p string) {
		f, err := os.OpenFile(p, os.O_WRONLY|os.O_APPEND, 0)
		g.must(err)
		_, err = f.WriteString("more\n")
		g.must(err)
		g.must(f.Close())
	}},
	{"mapped", "f", func(g *fileBench, p string) {
		f, err := os.OpenFile(p, os.O_RDWR, 0)
		g.must(err)
		defer f.Close()
		m, err := syscall.Mmap(int(f.Fd()), 0, 6, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
		g.must(err)
		m[0] = 'T'
		g.must(syscall.Munmap(m))
	}},
	{"an editor's backup and a new file", "f", func(g *fileBench, p string) {
		g.must(os.Rename(p, p+"~"))
		g.must(os.WriteFile(p, []byte("other\n"), 0o644))
	}},
	{"written with other line ends", "f", func(g *fileBench, p string) { g.must(os.WriteFile(p, []byte("three\r\n"), 0o644)) }},
	{"a hard link to another", "f", func(g *fileBench, p string) {
		g.put("tmp", "other\n")
		g.must(os.Remove(p))
		g.must(os.Link(filepath.Join(g.dir, "tmp"), p))
	}},
	{"a link to another", "f", func(g *fileBench, p string) {
		g.put("tmp", "other\n")
		g.must(os.Remove(p))
		g.must(os.Symlink("tmp", p))
	}},
	{"git checkout of another commit", "f", func(g *fileBench, p string) { g.git("checkout", "-q", "other") }},
	{"removed", "f (deleted)", func(g *fileBench, p string) { g.must(os.Remove(p)) }},
	{"moved away", "f (deleted)", func(g *fileBench, p string) { g.must(os.Rename(p, p+".bak")) }},
	{"renamed by letter case only", "f (deleted)", func(g *fileBench, p string) { g.must(os.Rename(p, filepath.Join(filepath.Dir(p), "F"))) }},
	{"a dangling link", "f (deleted)", func(g *fileBench, p string) { g.must(os.Remove(p)); g.must(os.Symlink("nowhere", p)) }},
	{"a folder", "f (no file any more)", func(g *fileBench, p string) { g.must(os.Remove(p)); g.must(os.Mkdir(p, 0o755)) }},
	{"a pipe", "f (no file any more)", func(g *fileBench, p string) { g.must(os.Remove(p)); g.must(syscall.Mkfifo(p, 0o600)) }},

	{"nothing", "", func(*fileBench, string) {}},
	{"touched", "", func(g *fileBench, p string) { now := time.Now().Add(time.Hour); g.must(os.Chtimes(p, now, now)) }},
	{"another mode", "", func(g *fileBench, p string) { g.must(os.Chmod(p, 0o600)) }},
	{"the same bytes again", "", func(g *fileBench, p string) { g.must(os.WriteFile(p, []byte("three\n"), 0o644)) }},
	{"the same bytes renamed over", "", func(g *fileBench, p string) {
		g.put("tmp", "three\n")
		g.must(os.Rename(filepath.Join(g.dir, "tmp"), p))
	}},
	{"changed and back", "", func(g *fileBench, p string) {
		g.must(os.WriteFile(p, []byte("other\n"), 0o644))
		g.must(os.WriteFile(p, []byte("three\n"), 0o644))
	}},
	{"removed and made again", "", func(g *fileBench, p string) { g.must(os.Remove(p)); g.must(os.WriteFile(p, []byte("three\n"), 0o600)) }},
	{"git checkout and back", "", func(g *fileBench, p string) { g.git("checkout", "-q", "other"); g.git("checkout", "-q", "-") }},
	{"git stash and pop", "", func(g *fileBench, p string) {
		g.put("own", "2")
		g.git("stash", "-q")
		g.git("stash", "pop", "-q")
	}},
	{"a hard link more", "", func(g *fileBench, p string) { g.must(os.Link(p, p+".2")) }},
	{"a link to the same bytes", "", func(g *fileBench, p string) { g.must(os.Rename(p, p+".2")); g.must(os.Symlink("f.2", p)) }},
	{"another file changed", "", func(g *fileBench, p string) { g.put("tmp", "new") }},
}

// old gives a file the times that f began with.
func (g *fileBench) old(path string) { g.must(os.Chtimes(path, longAgo, longAgo)) }

var longAgo = time.Unix(1_700_000_000, 0)

func (g *fileBench) git(args ...string) {
	g.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		g.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// newUnreadBench is a fixture whose model reads f.
func newUnreadBench(t *testing.T, git bool, turns ...turn) *fileBench {
	g := newFileBench(t, append([]turn{{calls: []call{read("r", "f")}}}, turns...)...)
	g.put("f", "three\n")
	g.put("own", "1")
	if git {
		g.git("init", "-q")
		g.git("add", "f", "own")
		g.git("commit", "-qm", "one")
		g.git("checkout", "-qb", "other")
		g.put("f", "other\n")
		g.git("commit", "-qam", "two")
		g.git("checkout", "-q", "-")
	}
	g.old(filepath.Join(g.dir, "f"))
	return g
}

// Every way of changing a file is judged by what the file holds then, while a run goes
// on and after a restart.
func TestWaysOfChangingAFile(t *testing.T) {
	for _, w := range ways {
		git := strings.HasPrefix(w.name, "git ")
		if _, err := exec.LookPath("git"); git && err != nil {
			continue
		}
		first := func(g *fileBench, n int) string {
			line, _, _ := strings.Cut(g.news(n), "\n")
			return line
		}
		t.Run("live, "+w.name, func(t *testing.T) {
			g := newUnreadBench(t, git, turn{calls: []call{use("k", "look", "x")}}, turn{calls: []call{use("l", "look", "x")}}, turn{calls: []call{use("m", "look", "x")}})
			g.at(3, func() { w.do(g, filepath.Join(g.dir, "f")) })
			want(t, g.run("go"), "completed", "")
			if got := g.news(2); got != "" {
				t.Errorf("told of nothing: %q", got)
			}
			if got := first(g, 3); got != w.told {
				t.Errorf("told %q, want %q", got, w.told)
			}
			if got := g.news(4); got != "" {
				t.Errorf("told again: %q", got)
			}
		})
		t.Run("after a restart, "+w.name, func(t *testing.T) {
			g := newUnreadBench(t, git)
			want(t, g.run("go"), "completed", "")
			w.do(g, filepath.Join(g.dir, "f"))
			n := len(g.model.requests)
			want(t, g.run("on"), "completed", "")
			if got := first(g, n); got != w.told {
				t.Errorf("told %q, want %q", got, w.told)
			}
			n = len(g.model.requests)
			want(t, g.run("on"), "completed", "")
			if got := g.news(n); got != "" {
				t.Errorf("told again: %q", got)
			}
		})
	}
}

// A folder on the way that leads elsewhere now makes its files other ones.
func TestAFolderThatWasSwapped(t *testing.T) {
	g := newFileBench(t, turn{calls: []call{read("r", "d/f")}}, turn{calls: []call{use("l", "look", "x")}})
	g.put("d/f", "1\n")
	g.put("e/f", "2\n")
	g.at(2, func() {
		g.must(os.Rename(filepath.Join(g.dir, "d"), filepath.Join(g.dir, "was")))
		g.must(os.Symlink("e", filepath.Join(g.dir, "d")))
	})
	want(t, g.run("go"), "completed", "")
	if got := g.news(2); !strings.HasPrefix(got, "d/f\n") {
		t.Errorf("told %q", got)
	}
}

// Files that nobody touches are no news in any turn; -v prints what looking costs.
func TestManyKnownFilesAreNoNews(t *testing.T) {
	files := 100
	if os.Getenv("ROOST_TEST_LARGE") != "" {
		files = 1000
	}
	var calls []call
	for i := range files {
		calls = append(calls, read(fmt.Sprint("r", i), fmt.Sprintf("d%d/f%d", i%10, i)))
	}
	var spent []time.Duration
	var at time.Time
	turns := []turn{{calls: calls}}
	for i := range 8 {
		turns = append(turns, turn{calls: []call{use(fmt.Sprint("l", i), "look", fmt.Sprint(i))}})
	}
	g := newFileBench(t, turns...)
	for i := range files {
		name := fmt.Sprintf("d%d/f%d", i%10, i)
		g.put(name, "x\n")
		g.old(filepath.Join(g.dir, name))
	}
	g.hook = func(entry string) {
		switch {
		case strings.HasPrefix(entry, "run look "):
			at = time.Now()
		case !at.IsZero() && strings.HasPrefix(entry, "commit "):
			spent, at = append(spent, time.Since(at)), time.Time{}
		}
	}
	g.agent.Host.Workspace = g.ws
	want(t, g.start(agent.Input{Text: "go"}), "completed", "")
	for i := range g.model.requests {
		if got := g.news(i); got != "" {
			t.Errorf("request %d told %q", i, got)
		}
	}
	t.Logf("from a call's run to its commit, with a look at %d files: %v", files, spent)
}
