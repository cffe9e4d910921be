package agent_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/filetool"
	"github.com/roost-dev/roost/workspace"
)

const modified = "# Recently Modified Files\nThese files have been modified since you last accessed them (file was just edited so you may need to re-read it before editing):\n"

// fileBench is a bench on a real folder, with the tools that read and write files.
type fileBench struct {
	*bench
	dir string
	ws  *workspace.Workspace
}

func newFileBench(t *testing.T, turns ...turn) *fileBench {
	t.Helper()
	g := &fileBench{bench: newBench(t, turns...), dir: t.TempDir()}
	g.clock = time.Now().UnixMilli()
	var err error
	g.ws, err = workspace.Open(g.dir)
	g.must(err)
	g.tools = append(g.tools, filetool.ReadFile(), filetool.WriteToFile(), filetool.ApplyDiff())
	g.agent.Tools.List = g.tools
	return g
}

func (g *fileBench) run(text string) agent.Outcome {
	g.t.Helper()
	g.agent.Host.Workspace = g.ws
	return g.start(agent.Input{Text: text})
}

func (g *fileBench) put(name, text string) {
	g.t.Helper()
	name = filepath.Join(g.dir, name)
	g.must(os.MkdirAll(filepath.Dir(name), 0o755))
	g.must(os.WriteFile(name, []byte(text), 0o644))
}

// at does something while the model thinks about the n-th reply.
func (g *fileBench) at(n int, do func()) {
	g.model.during = func(_ context.Context, req llm.Request) {
		if req.Replies+1 == n {
			do()
		}
	}
}

// news is what the n-th request of all (0 = the first) tells of changed files, with the
// model's newest turn.
func (g *fileBench) news(n int) string {
	g.t.Helper()
	if n >= len(g.model.requests) {
		g.t.Fatalf("there were %d requests", len(g.model.requests))
	}
	m := g.model.requests[n].Messages
	text := strings.ReplaceAll(string(m[len(m)-1].Content), `\n`, "\n")
	_, text, ok := strings.Cut(text, modified)
	if !ok {
		return ""
	}
	text, _, _ = strings.Cut(text, "\n\n# Current Time")
	return text
}

// changes are the file.changed events of the log, as path, source and by.
func (g *fileBench) changes() []string {
	var out []string
	for _, c := range g.disk.commits {
		for _, raw := range c.Events {
			if e, err := task.Decode(raw); err == nil {
				if f, ok := e.(task.FileChanged); ok {
					out = append(out, strings.TrimSpace(f.Path+" "+f.Source+" "+f.By))
				}
			}
		}
	}
	return out
}

func read(id, path string) call { return call{id, "read_file", fmt.Sprintf(`{"path":%q}`, path)} }

func write(id, path, content string) call {
	return call{id, "write_to_file", fmt.Sprintf(`{"path":%q,"content":%q}`, path, content)}
}

func replace(id, path, old, fresh string) call {
	return call{id, "apply_diff", fmt.Sprintf(`{"path":%q,"diff":%q}`, path, "<<<<<<< SEARCH\n"+old+"\n=======\n"+fresh+"\n>>>>>>> REPLACE")}
}

// A change is told in the next turn, with what changed, and never again; the person is
// told too, and Roo's records say user_edited. A file that was told whole is read.
func TestAChangedFileIsToldOnce(t *testing.T) {
	g := newFileBench(t, turn{calls: []call{read("r1", "a.txt"), read("r2", "b.txt")}}, turn{calls: []call{use("l1", "look", "x")}}, turn{calls: []call{use("l2", "look", "x")}})
	g.put("a.txt", "one\ntwo\n")
	g.put("b.txt", "b\n")
	g.at(2, func() { g.put("a.txt", "one\n2\n") })
	want(t, g.run("go"), "completed", "")
	if got := g.news(2); !strings.HasPrefix(got, "a.txt\n\nWhat changed in a.txt:\n--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2") {
		t.Errorf("told %q", got)
	}
	if g.news(0)+g.news(1)+g.news(3) != "" {
		t.Error("told more than once, or of nothing")
	}
	if got := strings.Join(g.changes(), ", "); got != "a.txt read_tool, b.txt read_tool, a.txt user_edited other, a.txt read_tool" {
		t.Error(got)
	}
	if all := strings.Join(g.notices, "\n"); strings.Count(all, "a.txt changed") != 1 || strings.Contains(all, "b.txt") {
		t.Error(all)
	}
	want(t, g.run("and on"), "completed", "")
	if got := g.news(len(g.model.requests) - 1); got != "" {
		t.Errorf("a restart told again: %q", got)
	}
}

// The check before a call's body serves the report of its turn for a moment, unless the call may change any file. So a
// change while a call runs is in that turn's report, or in the next one if the call was quick.
func TestAChangeWhileACallRuns(t *testing.T) {
	for _, c := range []struct {
		name, tool string
		took       int64 // milliseconds
		request    int   // that reports the change
	}{
		{"quick call", "look", 0, 3},
		{"slow call", "look", 1000, 2},
		{"quick command", "act", 0, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newFileBench(t,
				turn{calls: []call{read("r1", "a.txt")}},
				turn{calls: []call{use("c1", c.tool, "x")}},
				turn{calls: []call{use("c2", "look", "y")}})
			g.put("a.txt", "one\n")
			g.hook = func(entry string) {
				if entry == "run "+c.tool+" x" {
					g.put("a.txt", "another\n")
					g.clock += c.took
				}
			}
			want(t, g.run("go"), "completed", "")
			for n := range g.model.requests {
				if got, is := strings.HasPrefix(g.news(n), "a.txt"), n == c.request; got != is {
					t.Errorf("request %d reports the change: %v, want %v", n, got, is)
				}
			}
		})
	}
}

// What a command changed is said to be the command's; what somebody changed before it
// ran is not.
func TestWhoChangedAFile(t *testing.T) {
	g := newFileBench(t, turn{calls: []call{read("r1", "mine"), read("r2", "theirs")}}, turn{calls: []call{use("c1", "act", "make")}})
	g.put("mine", "1")
	g.put("theirs", "1")
	g.tool("act").run = g.effect(func() { g.put("mine", "22") })
	g.at(2, func() { g.put("theirs", "22") })
	want(t, g.run("go"), "completed", "")
	got := g.news(2)
	if !strings.Contains(got, "mine (changed by a command)\n") || !strings.Contains("\n"+got, "\ntheirs\n") {
		t.Error(got)
	}
	if all := strings.Join(g.changes(), ", "); !strings.Contains(all, "mine user_edited command") || !strings.Contains(all, "theirs user_edited other") {
		t.Error(all)
	}
}

// A file that is changed and, once that is told, changed back is told of as what it is.
func TestAFileThatIsBack(t *testing.T) {
	look := turn{calls: []call{use("l1", "look", "x")}}
	g := newFileBench(t, turn{calls: []call{read("r1", "a")}}, look, turn{calls: []call{use("l2", "look", "x")}})
	big := strings.Repeat("a long line\n", 20_000) // too large to tell what changed
	g.put("a", big)
	g.model.during = func(_ context.Context, req llm.Request) {
		switch req.Replies + 1 {
		case 2:
			g.put("a", big+"x")
		case 3:
			g.put("a", big)
		}
	}
	want(t, g.run("go"), "completed", "")
	if g.news(2) != "a" || g.news(3) != "a (again as you last saw it)" {
		t.Errorf("%q, then %q", g.news(2), g.news(3))
	}
}

// A run that was killed while it asked tells of changes before it asks again.
func TestChangesAreToldBeforeARequestIsMadeAgain(t *testing.T) {
	g := newFileBench(t, turn{calls: []call{read("r1", "a")}}, turn{fails: []failure{{err: &llm.Error{Provider: "test", Kind: llm.Auth, Status: 401, Message: "no"}}}, calls: []call{use("l", "look", "x")}})
	g.put("a", "1\n")
	if out := g.run("go"); out.State != "failed" {
		t.Fatal(out)
	}
	g.put("a", "2\n")
	g.agent.Host.Workspace = g.ws
	want(t, g.start(agent.Input{Yes: true}), "completed", "")
	if got := g.news(2); got != "a" { // what it held is not known any more
		t.Errorf("got %q, want got = \"a\"", got)
	}
}

// The difference of a file whose path leads out of the workspace by now is not shown.
func TestNothingFromOutsideIsTold(t *testing.T) {
	out := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(out, []byte("the secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := newFileBench(t, turn{calls: []call{read("r1", "a")}}, turn{calls: []call{use("l1", "look", "x")}}, turn{calls: []call{write("w", "a", "mine")}})
	g.put("a", "1\n")
	g.put("hidden", "2\n")
	g.at(2, func() {
		g.must(os.Remove(filepath.Join(g.dir, "a")))
		if err := os.Symlink(out, filepath.Join(g.dir, "a")); err != nil {
			t.Skip(err)
		}
	})
	want(t, g.run("go"), "completed", "")
	if g.news(2) != "a" {
		t.Errorf("told %q", g.news(2))
	}
	for _, m := range g.model.requests[len(g.model.requests)-1].Messages {
		if strings.Contains(string(m.Content), "the secret") {
			t.Errorf("sent: %s", m.Content)
		}
	}
	if text, _ := os.ReadFile(out); string(text) != "the secret\n" {
		t.Errorf("it holds %q", text)
	}
}

// Secrets in what changed are hidden like those in the output of tools.
func TestSecretsInChangesAreHidden(t *testing.T) {
	g := newFileBench(t, turn{calls: []call{read("r1", "a")}}, turn{calls: []call{use("l1", "look", "x")}})
	g.put("a", "key\n")
	g.agent.Host.Masks = redact.New(redact.Known{Value: "hunter2-hunter2-hunter2"})
	g.at(2, func() { g.put("a", "key hunter2-hunter2-hunter2\n") })
	want(t, g.run("go"), "completed", "")
	if got := g.news(2); got == "" || strings.Contains(got, "hunter2") {
		t.Errorf("told %q", got)
	}
}

// The agent's own writes are no news, however many and however quick they are.
func TestOwnWritesAreNoNews(t *testing.T) {
	n := 60
	if os.Getenv("ROOST_TEST_LARGE") != "" {
		n = 10_000
	}
	var turns []turn
	for i := range n {
		path := fmt.Sprint("f", i%7)
		calls := []call{write(fmt.Sprint("w", i), path, fmt.Sprintf("%d\nx\n", i))}
		if i%5 == 4 {
			calls = append(calls, replace(fmt.Sprint("d", i), path, fmt.Sprint(i), "edited"), read(fmt.Sprint("r", i), path))
		}
		if i%max(n/100, 1) == 0 {
			turns = append(turns, turn{})
		}
		turns[len(turns)-1].calls = append(turns[len(turns)-1].calls, calls...)
	}
	g := newFileBench(t, turns...)
	want(t, g.run("go"), "completed", "")
	for i := range g.model.requests {
		if got := g.news(i); got != "" {
			t.Fatalf("request %d told %q", i, got)
		}
	}
	for _, c := range g.changes() {
		if strings.Contains(c, "user_edited") {
			t.Fatal(c)
		}
	}
}

// effect is the body of a fake tool that changes the world.
func (g *fileBench) effect(do func()) func(context.Context, tool.Output, string) (tool.Result, error) {
	return func(context.Context, tool.Output, string) (tool.Result, error) {
		do()
		return tool.Result{Text: "done"}, nil
	}
}
