package agent_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/task/rewind"
)

// A call whose outcome a person took back is not done again, whatever its file holds by
// now: also not a write that left no trace, which after a kill would simply be made. What
// stands there since is not recorded as the task's.
func TestATakenBackCallIsNotDoneAgain(t *testing.T) {
	for _, tt := range []struct{ name, holds, outcome, says string }{
		{"taken back as well", "0\n", "unknown", "Its change was taken back as well"},
		{"still there", "1\n", "ok", "The file holds its change"},
		{"something else", "a person's\n", "unknown", "The file is something else by now"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, _ := newKeptBench(t, turn{calls: []call{write("w1", "a", "1\n"), use("c1", "act", "b=1\n")}}, finish("done"), finish("done"))
			g.put("a", "0\n")
			want(t, g.run("go"), "completed", "")
			saved, s := g.saved(), g.disk.state
			e, err := rewind.At(s, slices.IndexFunc(kinds(s), func(kind string) bool { return strings.Contains(kind, "ask:tool") }), false)
			if err != nil || !slices.Equal(e.Calls, []string{"w1", "c1"}) {
				t.Fatalf(`got %+v, %v, want no error and slices.Equal(e.Calls, []string{"w1", "c1"})`, e, err)
			}
			g.must(g.disk.Commit(context.Background(), e))
			g.put("a", tt.holds)
			g.put("b", "a person's\n")
			g.trace = nil
			g.agent.Host.Checkpoints, g.agent.Host.Workspace = &memoryStore{g: g}, g.ws
			want(t, g.start(agent.Input{Text: "something else"}), "completed", "")
			g.holds("a", tt.holds)
			g.holds("b", "a person's\n")
			for _, entry := range g.trace {
				if strings.HasPrefix(entry, "run ") {
					t.Errorf("done again: %s", entry)
				}
			}
			w, c := g.disk.state.Call("w1"), g.disk.state.Call("c1")
			if w.Finished.Outcome != tt.outcome || !strings.Contains(g.result("w1"), tt.says) || c.Finished.Outcome != "unknown" || !strings.Contains(g.result("c1"), "It was not run again") {
				t.Errorf("%s: %s; %s: %s", w.Finished.Outcome, g.result("w1"), c.Finished.Outcome, g.result("c1"))
			}
			g.saves(saved...)
		})
	}
}

// A file that a person changed behind the task's write, in the same turn, is recorded as
// changed by others: a restore asks about it.
func TestOthersChangeAFileWithinTheTurn(t *testing.T) {
	g, _ := newKeptBench(t, turn{calls: []call{write("w1", "a", "1\n"), write("w2", "b", "2\n"), use("l1", "look", "x")}}, finish("done"))
	g.put("a", "0\n")
	g.hook = func(entry string) {
		if entry == "run look x" {
			g.put("a", "a person's\n")
		}
	}
	want(t, g.run("go"), "completed", "")
	g.saves("c1 before a", "c2 before b", "c3 turn b", "c4 others a")
}
