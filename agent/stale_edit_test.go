package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/task"
)

func (g *fileBench) holds(name, text string) {
	g.t.Helper()
	if got, err := os.ReadFile(filepath.Join(g.dir, name)); err != nil || string(got) != text {
		g.t.Errorf("%s holds %q (%v), want %q", name, got, err, text)
	}
}

// result is what the model was told of a call.
func (g *fileBench) result(id string) string {
	g.t.Helper()
	c := g.disk.state.Call(id)
	if c == nil || c.Finished == nil {
		g.t.Fatalf("call %s has no result", id)
	}
	raw, err := c.Result()
	g.must(err)
	return strings.ReplaceAll(string(raw), `\n`, "\n")
}

// A whole file is not written over what somebody else changed: the model is told what,
// and then it may. In between nothing is lost.
func TestAChangedFileIsNotOverwritten(t *testing.T) {
	g := newFileBench(t, turn{calls: []call{read("r", "f")}}, turn{calls: []call{write("w1", "f", "one\nmine\n")}}, turn{calls: []call{write("w2", "f", "theirs\nmine\n")}})
	g.put("f", "one\ntwo\n")
	g.at(2, func() { g.put("f", "theirs\ntwo\n") })
	want(t, g.run("go"), "completed", "")
	got := g.result("w1")
	if !strings.Contains(got, "f has changed since you last saw it, so it was left as it is.") || !strings.Contains(got, "\n-one\n+theirs\n two\n") {
		t.Error(got)
	}
	if g.news(2) != "" {
		t.Errorf("told twice: %q", g.news(2))
	}
	g.holds("f", "theirs\nmine\n")
	if got := strings.Join(g.changes(), ", "); got != "f read_tool, f user_edited other, f read_tool, f roo_edited" {
		t.Error(got)
	}
	if len(g.asked) != 0 || !strings.Contains(strings.Join(g.notices, "\n"), "write_to_file: f changed since the model saw it") {
		t.Errorf("asked %v, notices %v", g.asked, g.notices)
	}
}

// A file that the model's own command changed is told as that, also when it is refused.
func TestAWriteBehindACommand(t *testing.T) {
	g := newFileBench(t, turn{calls: []call{read("r", "f"), use("c", "act", "format"), write("w", "f", "mine\n")}})
	g.put("f", "one\n")
	g.tool("act").run = g.effect(func() { g.put("f", "  one\n") })
	want(t, g.run("go"), "completed", "")
	if got := strings.Join(g.changes(), ", "); got != "f read_tool, f user_edited command, f read_tool" {
		t.Error(got)
	}
	g.holds("f", "  one\n")
}

// What is too large to be told has to be read first; being told of it is not enough.
func TestALargeChangedFileHasToBeRead(t *testing.T) {
	big := strings.Repeat("a line of it\n", 10_000)
	g := newFileBench(t, turn{calls: []call{read("r", "f")}}, turn{calls: []call{use("l", "look", "x")}},
		turn{calls: []call{write("w1", "f", "mine")}}, turn{calls: []call{write("w2", "f", "mine, again")}}, turn{calls: []call{read("r2", "f"), write("w3", "f", "mine")}})
	g.put("f", big)
	g.at(2, func() { g.put("f", big+"more\n") })
	want(t, g.run("go"), "completed", "")
	if g.news(2) != "f" {
		t.Errorf("told %q", g.news(2))
	}
	for _, id := range []string{"w1", "w2"} {
		if got := g.result(id); !strings.Contains(got, "Read it, and make your change") {
			t.Error(got)
		}
	}
	g.holds("f", "mine")
}

// After a restart the old content is not known any more: a small file is told as it is.
func TestAFileChangedWhileNothingRanIsNotOverwritten(t *testing.T) {
	g := newFileBench(t, turn{calls: []call{read("r", "f")}}, turn{calls: []call{{"done", "attempt_completion", `{"result":"x"}`}}}, turn{calls: []call{write("w1", "f", "mine\n")}}, turn{calls: []call{write("w2", "f", "both\n")}})
	g.put("f", "one\n")
	want(t, g.run("go"), "completed", "")
	g.put("f", "theirs\n")
	want(t, g.run("on"), "completed", "")
	if got := g.result("w1"); !strings.Contains(got, "It is now:\n1 | theirs\n") {
		t.Error(got)
	}
	g.holds("f", "both\n")
}

// A change of some lines is made where its lines are there, and tells what else is new.
func TestALineIsChangedInAChangedFile(t *testing.T) {
	g := newFileBench(t, turn{calls: []call{read("r", "f")}}, turn{calls: []call{replace("d", "f", "two", "2")}}, turn{calls: []call{write("w", "f", "all\n")}})
	g.put("f", "one\ntwo\nthree\n")
	g.at(2, func() { g.put("f", "ONE\ntwo\nthree\n") })
	want(t, g.run("go"), "completed", "")
	got := g.result("d")
	if !strings.Contains(got, "modified") || !strings.Contains(got, "Your change was made in what was there. What changed:") || !strings.Contains(got, "\n-one\n+ONE\n two\n") {
		t.Error(got)
	}
	if all := strings.Join(g.changes(), ", "); !strings.HasPrefix(all, "f read_tool, f user_edited, f roo_edited, f roo_edited") {
		t.Error(all)
	}
	g.holds("f", "all\n")
}

// A write that was killed before it could say that it was done is the agent's own.
func TestAKilledWriteIsNoNews(t *testing.T) {
	g := newFileBench(t, turn{calls: []call{read("r", "f"), write("w", "f", "mine\n")}}, turn{calls: []call{write("w2", "f", "mine too\n")}})
	g.put("f", "one\n")
	want(t, g.run("go"), "completed", "")
	started := 0
	for i, c := range g.disk.commits {
		for _, raw := range c.Events {
			if e, err := task.Decode(raw); err == nil {
				if s, ok := e.(task.ToolStarted); ok && s.Call == "w" {
					started = i + 1
				}
			}
		}
	}
	g.disk = newDisk(g.bench, g.disk.commits[:started])
	g.put("f", "mine\n")
	g.prepare()
	g.model.requests = nil
	g.agent.Host.Workspace = g.ws
	want(t, g.start(agent.Input{Yes: true}), "completed", "")
	for i := range g.model.requests {
		if got := g.news(i); got != "" {
			t.Errorf("request %d told %q", i, got)
		}
	}
	g.holds("f", "mine too\n")
	if all := strings.Join(g.changes(), ", "); all != "f read_tool, f roo_edited, f roo_edited" {
		t.Error(all)
	}
}

// Wherever a run is killed after a file was changed, the next one's history tells of it
// once.
func TestAChangeIsToldOnceOverAKill(t *testing.T) {
	g := newFileBench(t, turn{calls: []call{read("r", "f")}}, turn{calls: []call{use("l", "look", "x")}}, turn{text: "so", calls: []call{use("m", "look", "y")}})
	g.put("f", "one\n")
	first := 0
	g.at(2, func() { first = len(g.disk.commits); g.put("f", "two\n") })
	want(t, g.run("go"), "completed", "")
	g.model.during = nil
	all := g.disk.commits
	for n := first; n < len(all); n++ {
		g.disk = newDisk(g.bench, all[:n])
		g.prepare()
		g.agent.Host.Workspace = g.ws
		want(t, g.start(agent.Input{Yes: true}), "completed", "")
		times := 0
		for _, m := range g.disk.state.API() {
			times += strings.Count(string(m.Raw()), "# Recently Modified Files")
		}
		if times != 1 {
			t.Errorf("killed after commit %d: told %d times", n, times)
		}
	}
}
