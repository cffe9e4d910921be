package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/task"
)

// killedInCommand plays a command that changed files and was killed with the run, and the
// next run.
func killedInCommand(t *testing.T, later string, spoil func(*memoryStore)) *fileBench {
	t.Helper()
	g, s := newKeptBench(t, turn{calls: []call{write("w1", "a", "1\n")}}, turn{calls: []call{use("c1", "act", "b=1\n")}})
	g.put("a", "0\n")
	g.put("gone", "was\n")
	ctx, cancel := context.WithCancelCause(context.Background())
	g.hook = func(entry string) {
		if entry == "run act b=1\n" {
			g.put("a", "by the command\n")
			g.put("c", "made\n")
			g.disk.refuse = func(string) error { return errors.New("killed") } // nothing of its outcome is recorded
			cancel(errors.New("killed"))
		}
	}
	g.agent.Host.Workspace = g.ws
	g.startWith(ctx, agent.Input{Text: "go"})
	if c := g.disk.state.Call("c1"); c == nil || c.Outcome() != task.OutcomeUnknown {
		t.Fatalf("the call is %+v", c)
	}
	g.disk.refuse, g.hook = nil, nil
	s.later = later
	if spoil != nil {
		spoil(s)
	}
	g.agent.Host.Workspace, g.agent.Host.Checkpoints = g.ws, s
	want(t, g.start(agent.Input{Yes: true}), "completed", "")
	if len(s.kept) != 0 {
		t.Error("the survey is kept although the outcome is recorded")
	}
	return g
}

// What a command changed that was killed with the run is recorded as changed by it, also
// of files that the task did not know; model and person are told which those are.
func TestWhatAKilledCommandChanged(t *testing.T) {
	g := killedInCommand(t, "", nil)
	g.saves("c1 before a", "c2 turn a", "c3 command a b* c*")
	if c := g.disk.state.Checkpoints[2]; c.Call != "c1" {
		t.Errorf("it is bound to %q", c.Call)
	}
	if told := strings.Join(g.notices, "\n"); !strings.Contains(told, "3 files changed by act before it was interrupted: a, b, c") {
		t.Error(told)
	}
	if result := string(g.disk.state.Call("c1").Finished.Result); !strings.Contains(result, "3 files changed while it ran: a, b, c.") {
		t.Error(result)
	}
}

// What changed after it, and who knows by whom, counts as somebody else's.
func TestWhatChangedSinceACommandWasKilled(t *testing.T) {
	g := killedInCommand(t, "c", nil)
	g.saves("c1 before a", "c2 turn a", "c3 others c*", "c4 command a b*")
	if told := strings.Join(g.notices, "\n"); !strings.Contains(told, "1 file changed since act was interrupted") {
		t.Error(told)
	}
}

// Without a survey what became of known files is all that can be told, and not by whom:
// a person may have worked since, and a restore must not take that for the command's.
func TestAKilledCommandWithoutASurvey(t *testing.T) {
	for name, spoil := range map[string]func(*memoryStore){
		"lost":    func(s *memoryStore) { s.kept = nil },
		"trouble": func(s *memoryStore) { s.fail = failOnce("interrupted"); s.kept = nil },
	} {
		t.Run(name, func(t *testing.T) {
			g := killedInCommand(t, "", spoil)
			g.saves("c1 before a", "c2 turn a", "c3 others a")
			if told := strings.Join(g.notices, "\n"); !strings.Contains(told, "the survey of the workspace from before act is lost") {
				t.Error(told)
			}
			if result := string(g.disk.state.Call("c1").Finished.Result); !strings.Contains(result, "by whom is not known: a.") {
				t.Error(result)
			}
		})
	}
}

func failOnce(op string) func(string) error {
	failed := false
	return func(now string) error {
		if now == op && !failed {
			failed = true
			return errors.New("the disk says no")
		}
		return nil
	}
}
