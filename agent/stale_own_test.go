package agent_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/llm"
)

// newReadBench is a fixture whose model reads f and then takes some more turns.
func newReadBench(t *testing.T, turns int, also ...call) *fileBench {
	t.Helper()
	var list []turn
	list = append(list, turn{calls: append([]call{read("r", "f")}, also...)})
	for i := range turns {
		list = append(list, turn{calls: []call{use(fmt.Sprint("l", i), "look", fmt.Sprint(i))}})
	}
	g := newFileBench(t, list...)
	g.put("f", "three\n")
	g.old(filepath.Join(g.dir, "f"))
	return g
}

// A command that changes a file through a hard link elsewhere is noticed.
func TestACommandMayDoAnything(t *testing.T) {
	g := newReadBench(t, 1, use("k", "look", "k"))
	elsewhere := filepath.Join(t.TempDir(), "link")
	g.put("f", "three\n")
	g.model.turns = append(g.model.turns, turn{calls: []call{use("c", "act", "make")}})
	g.tool("act").run = g.effect(func() {
		g.must(os.Link(filepath.Join(g.dir, "f"), elsewhere))
		g.must(os.WriteFile(elsewhere, []byte("other\n"), 0o644))
	})
	want(t, g.run("go"), "completed", "")
	if got := g.news(3); got == "" {
		t.Error("not noticed")
	}
}

// Every change of many is told in the turn after it, while the run's own writes, in the
// same folders and turns, are not.
func TestOutsideChangesAmongOwnWrites(t *testing.T) {
	const rounds = 40
	turns := []turn{{calls: []call{read("r", "d/theirs")}}}
	for i := range rounds {
		turns = append(turns, turn{calls: []call{write(fmt.Sprint("w", i), "own", fmt.Sprint(i)), write(fmt.Sprint("v", i), "d/own", fmt.Sprint(i))}})
	}
	g := newFileBench(t, turns...)
	g.put("d/theirs", "0\n")
	changed := func(n int) bool { return n > 1 && n%3 == 0 }
	g.model.during = func(_ context.Context, req llm.Request) {
		if n := req.Replies + 1; changed(n) {
			g.put("tmp", fmt.Sprint(n, "\n"))
			g.must(os.Rename(filepath.Join(g.dir, "tmp"), filepath.Join(g.dir, "d/theirs")))
		}
	}
	want(t, g.run("go"), "completed", "")
	for i := range g.model.requests {
		name, _, _ := strings.Cut(g.news(i), "\n")
		if (name == "d/theirs") != changed(i) || name != "" && !changed(i) {
			t.Errorf("request %d told %q", i, name)
		}
	}
}
