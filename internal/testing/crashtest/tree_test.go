package crashtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/crashtest"
)

// A tree of three tasks, each of which leaves a line, is killed at each step of what
// holds them together, and resumed at its root or below.
var treeRows = []struct {
	name    string
	fail    string
	again   string // where the second child dies too
	resume  string // the task that is resumed: root, or the deepest one
	waits   string // statuses after the kill, root first, as far as tasks are there
	servers bool   // with every provider
}{
	{name: "intent saved, child not made", fail: "subtask.started", waits: "delegated"},
	{name: "intent saved, grandchild not made", fail: "subtask.started:2", waits: "delegated delegated"},
	{name: "child made, no run of it", fail: "subtask.created", waits: "delegated idle", servers: true},
	{name: "grandchild made, no run of it", fail: "subtask.created:2", waits: "delegated delegated idle"},
	{name: "grandchild made, resumed by itself", fail: "subtask.created:2", resume: "two", waits: "delegated delegated idle"},
	{name: "after the child's command", fail: "tool.ran:2", waits: "delegated interrupted", servers: true},
	{name: "after the grandchild's command", fail: "tool.ran:3", waits: "delegated delegated interrupted"},
	{name: "after the grandchild's command, resumed by itself", fail: "tool.ran:3", resume: "two", waits: "delegated delegated interrupted"},
	{name: "grandchild completed, its files not written", fail: "run.ended", waits: "delegated delegated completed"},
	{name: "grandchild completed, not told", fail: "subtask.untold", waits: "delegated delegated completed", servers: true},
	{name: "grandchild completed, not told, resumed by itself", fail: "subtask.untold", resume: "two", waits: "delegated delegated completed"},
	{name: "grandchild completed, resumed, not told again", fail: "subtask.untold", resume: "two", again: "subtask.waking", waits: "delegated delegated completed"},
	{name: "child completed, not told", fail: "subtask.untold:2", waits: "delegated completed completed"},
	{name: "grandchild's end committed, not on the disk", fail: "subtask.ended", waits: "delegated delegated completed"},
	{name: "child's end committed, not on the disk", fail: "subtask.ended:2", waits: "delegated completed completed"},
	{name: "killed twice on the way down", fail: "subtask.started", again: "subtask.created", waits: "delegated"},
	{name: "killed on the way down and on the way up", fail: "subtask.created:2", again: "subtask.ended", waits: "delegated delegated idle"},
	{name: "in the root's own end", fail: "run.ended:3", waits: "completed completed completed"},
}

// treeTurns are what the three tasks do: a line each, then the next one.
func treeTurns() []crashtest.Turn {
	line := func(who string) crashtest.Call {
		return crashtest.Call{Name: "execute_command", Input: map[string]any{"command": "echo " + who + " >> lines.txt", "cwd": nil, "timeout": nil}}
	}
	child := func(words string) crashtest.Call {
		return crashtest.Call{Name: "new_task", Input: map[string]any{"mode": "code", "message": words, "todos": nil}}
	}
	return []crashtest.Turn{
		{Text: "The root works.", Calls: []crashtest.Call{line("root")}},
		{Text: "And delegates.", Calls: []crashtest.Call{child("the words of ONE")}},
		crashtest.Complete("Root is done."),
		{Task: "words of ONE"},
		{Text: "One works and delegates.", Calls: []crashtest.Call{line("one"), child("the words of TWO")}},
		crashtest.Complete("One is done."),
		{Task: "words of TWO"},
		{Text: "Two works.", Calls: []crashtest.Call{line("two")}},
		crashtest.Complete("Two is done."),
	}
}

// family finds the tasks of a tree, the root first, as far as they are there.
func family(ctx context.Context, t *testing.T, b *crashtest.Bench) []crashtest.Look {
	t.Helper()
	ids, err := b.Tasks()
	if err != nil {
		t.Fatal(err)
	}
	var out []crashtest.Look
	parent := ""
	for range ids {
		for _, id := range ids {
			l := look(ctx, t, b, id)
			if born := l.Events("task.created"); len(born) == 1 {
				if of, _ := esjson.GetString(born[0], "parent"); of == parent {
					out = append(out, l)
					parent = id
					break
				}
			}
		}
	}
	if len(out) != len(ids) && len(out)+1 != len(ids) { // the last one may not be born yet
		t.Fatalf("%d tasks in %d folders: each has one child at most", len(out), len(ids))
	}
	return out
}

func statuses(tree []crashtest.Look) string {
	var list []string
	for _, l := range tree {
		list = append(list, l.Status)
	}
	return strings.Join(list, " ")
}

func TestATreeKilledDuring(t *testing.T) {
	for _, r := range treeRows {
		providers := []string{"script"}
		if r.servers {
			providers = append(providers, "anthropic", "openai", "openai-compatible", "google")
		}
		for _, provider := range providers {
			t.Run(r.name+"/"+provider, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
				defer cancel()
				b := newBench(t, provider, treeTurns())
				first := start(ctx, t, b, r.fail, treeRun(b)...)
				if !first.Killed {
					t.Fatalf("it ended by itself: %d: %s", first.Code, first.Errors)
				}
				before := family(ctx, t, b)
				if got := statuses(before); got != r.waits {
					t.Errorf("after the kill: %s, want %s", got, r.waits)
				}
				id := before[0].Ref.ID
				if r.resume == "two" {
					id = before[2].Ref.ID
				}
				args := []string{"resume", id, "--yes"}
				if r.again != "" {
					if second := start(ctx, t, b, r.again, args...); !second.Killed {
						t.Fatalf("the second one ended by itself: %d: %s", second.Code, second.Errors)
					}
				}
				last := start(ctx, t, b, "", args...)
				if last.Code != 0 {
					t.Fatalf("resume: %d: %s", last.Code, last.Errors)
				}
				judgeTree(ctx, t, b, before, true)
				if end := string(last.Lines[len(last.Lines)-1]); !strings.Contains(end, `"run.ended"`) || !strings.Contains(end, before[0].Ref.ID) {
					t.Errorf("the last line is %s", end)
				}
				for _, l := range family(ctx, t, b) {
					if _, err := crashtest.CheckPrinted(last.Lines, l); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

// judgeTree holds the end of a tree against what must be true whatever was killed. Of a
// command that a kill may have cut it is not certain that it acted.
func judgeTree(ctx context.Context, t *testing.T, b *crashtest.Bench, before []crashtest.Look, certain bool) {
	t.Helper()
	after := family(ctx, t, b)
	if got := statuses(after); got != "completed completed completed" {
		t.Fatalf("in the end: %s", got)
	}
	for i, l := range before {
		if err := crashtest.CheckPrefix(l, after[i]); err != nil {
			t.Error(err)
		}
	}
	data, _ := os.ReadFile(filepath.Join(b.Workspace, "lines.txt"))
	for i, who := range []string{"root", "one", "two"} {
		l := after[i]
		for _, err := range []error{crashtest.CheckHistories(l), l.CheckFiles()} {
			if err != nil {
				t.Errorf("%s: got %v, want no error", who, err)
			}
		}
		if n := l.Started("execute_command"); n != 1 {
			t.Errorf("%s: its command was begun %d times", who, n)
		}
		cut := !certain && slices.ContainsFunc(l.Calls, func(c crashtest.Made) bool { return c.Finished != nil && c.Finished.Outcome == "unknown" })
		if n := strings.Count(string(data), who+"\n"); n != 1 && !(cut && n == 0) {
			t.Errorf("%s acted %d times", who, n)
		}
		if n := len(l.Events("subtask.started")); n != 1 && i < 2 {
			t.Errorf("%s started %d subtasks", who, n)
		}
		if i == 0 {
			continue
		}
		api, _ := json.Marshal(after[i-1].API)
		ui, _ := json.Marshal(after[i-1].UI)
		result := map[string]string{"one": "One is done.", "two": "Two is done."}[who]
		want := fmt.Sprintf(`Subtask %s completed.\n\nResult:\n%s`, l.Ref.ID, result)
		if n := strings.Count(string(api), want); n != 1 {
			t.Errorf("%s: its parent's model is told %d times", who, n)
		}
		if n := strings.Count(string(ui), `"subtask_result"`); n != 1 {
			t.Errorf("%s: its parent's person is told %d times", who, n)
		}
		if n := len(after[i-1].Events("subtask.ended")); n != 1 {
			t.Errorf("%s: its end is committed %d times", who, n)
		}
	}
	doctor(ctx, t, b)
	if left := b.Gone(30 * time.Second); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

// treeKillsVar says how many trees are killed at random moments.
const treeKillsVar = "ROOST_TREE_KILLS"

// A tree that is killed at any moment, and again while it is resumed, ends the same.
func TestATreeKilledAtAnyMoment(t *testing.T) {
	n := 30
	if testing.Short() {
		n = 6
	}
	if text := os.Getenv(treeKillsVar); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	whole := newBench(t, "script", treeTurns())
	unkilled := start(t.Context(), t, whole, "", treeRun(whole)...)
	if unkilled.Code != 0 {
		t.Fatalf("without a kill: %d: %s", unkilled.Code, unkilled.Errors)
	}
	for i := range n {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
			defer cancel()
			r := rand.New(rand.NewPCG(uint64(i), 5))
			b := newBench(t, "script", treeTurns())
			args := treeRun(b)
			for kills := 3; ; kills-- {
				kill := time.Duration(0)
				if kills > 0 {
					kill = time.Duration(1 + r.Int64N(int64(unkilled.Took)))
				}
				c, err := b.Run(ctx, "", kill, args...)
				if err != nil || !c.Killed && c.Code != 0 {
					t.Fatalf("it ended with %d: %v, %s", c.Code, err, c.Errors)
				}
				tree := family(ctx, t, b)
				var open []string
				for _, l := range tree {
					if l.Status != "completed" {
						open = append(open, l.Ref.ID)
					}
				}
				switch {
				case len(tree) == 0 || len(tree[0].UI) == 0:
					return // nothing was acknowledged: a new run is another tree
				case len(open) > 0:
					args = []string{"resume", open[r.IntN(len(open))], "--yes"}
				case c.Killed: // all is done, but for the files of the one that was killed last
					args = []string{"resume", tree[0].Ref.ID}
				default:
					judgeTree(ctx, t, b, nil, false)
					return
				}
			}
		})
	}
}

func treeRun(b *crashtest.Bench) []string {
	return append(append([]string{"run"}, b.Model...), "--yes", "-C", b.Workspace, "the words")
}
