package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/testing/crashtest"
	"github.com/roost-dev/roost/internal/testing/crashtest/job"
	"github.com/roost-dev/roost/internal/testing/mcptest"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
)

func TestMain(m *testing.M) {
	mcptest.Main()
	goleak.VerifyTestMain(m)
}

// A short job, for the same reason.
func TestJobs(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	call := func(tool string, input map[string]any) job.Step {
		return job.Step{Calls: []job.Call{{Tool: tool, Input: input}}}
	}
	short := job.Job{Plans: map[string][]job.Step{"main": {
		call("write_to_file", map[string]any{"path": "a", "content": "b\n"}), call("attempt_completion", map[string]any{"result": "done"}),
	}}}
	code, err := jobs(ctx, short, 4, 1, 2)
	if code != 0 || err != nil {
		t.Fatalf("it ended with %d, %v", code, err)
	}
}

// A few rounds of the real thing, so that the loop itself does not rot.
func TestLoop(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	code, err := loop(ctx, 8, 1, 2)
	if code != 0 || err != nil {
		t.Fatalf("it ended with %d, %v", code, err)
	}
}

// look is a task with the commands named, each begun so often.
func look(begun map[string]int, outcome string) crashtest.Look {
	var l crashtest.Look
	for name, n := range begun {
		input, _ := json.Marshal(map[string]string{"command": "echo " + name + " >> lines.txt; sleep 0.02"}) // strings always marshal
		c := task.Call{ID: "id-" + name, Name: "execute_command"}
		if outcome != "" {
			c.Finished = &task.ToolFinished{Outcome: outcome}
		}
		l.Calls = append(l.Calls, crashtest.Made{Call: c, Input: input})
		for range n {
			event := fmt.Sprintf(`{"type":"tool.started","call":"id-%s"}`, name)
			l.Commits = append(l.Commits, journal.Commit{Events: []json.RawMessage{json.RawMessage(event)}})
		}
	}
	return l
}

// What the commands did is held against what the journal says of them.
func TestLinesAreHeldAgainstTheJournal(t *testing.T) {
	for name, c := range map[string]struct {
		acted   string
		begun   map[string]int
		outcome string
		says    string
	}{
		"as it should be":           {"a1", map[string]int{"a1": 1}, "ok", ""},
		"killed before it acted":    {"", map[string]int{"a1": 1}, "unknown", ""},
		"killed after it acted":     {"a1", map[string]int{"a1": 1}, "unknown", ""},
		"not begun":                 {"", map[string]int{"a1": 0}, "", ""},
		"acted twice":               {"a1 a1", map[string]int{"a1": 1}, "unknown", "acted 2 times"},
		"begun twice":               {"a1", map[string]int{"a1": 2}, "unknown", "begun 2 times"},
		"acted before it was begun": {"a1", map[string]int{"a1": 0}, "", "begun 0 times"},
		"a result and no deed":      {"", map[string]int{"a1": 1}, "ok", "has a result and acted 0 times"},
		"a deed of no reply":        {"a1 b7", map[string]int{"a1": 1}, "ok", "in no reply"},
	} {
		t.Run(name, func(t *testing.T) {
			v := &victim{bench: &crashtest.Bench{Workspace: t.TempDir()}}
			if c.acted != "" {
				text := strings.ReplaceAll(c.acted, " ", "\n") + "\n"
				if err := os.WriteFile(filepath.Join(v.bench.Workspace, "lines.txt"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := v.lines(look(c.begun, c.outcome))
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want (err == nil) = (c.says == \"\") and (no error or strings.Contains(err.Error(), c.says))",
					err)
			}
		})
	}
}

// The same seed means the same moments, and each task has moments of its own.
func TestSeedsDecideTheMoments(t *testing.T) {
	moments := func(seed, k uint64) (out []int64) {
		v := newVictim(&tally{}, "roost", t.TempDir(), seed, k)
		if v.err != nil {
			t.Fatal(v.err)
		}
		for range 5 {
			out = append(out, v.random.Int64N(int64(killWithin)))
		}
		return out
	}
	if a, b := fmt.Sprint(moments(7, 1)), fmt.Sprint(moments(7, 1)); a != b {
		t.Errorf("%s and %s", a, b)
	}
	if a, b := fmt.Sprint(moments(7, 1)), fmt.Sprint(moments(7, 2)); a == b {
		t.Error("two tasks are killed at the same moments")
	}
}
