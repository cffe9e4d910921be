//go:build linux

package crashtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/crashtest"
	"github.com/roost-dev/roost/internal/testing/mcptest"
)

// A call of an MCP server's tool is cut by a kill: it is not made again, unless the
// server says that the tool only reads; and no server is left.
func TestKilledDuringACallOfAServer(t *testing.T) {
	for _, r := range []struct {
		name, how string
		tool      string
		fail      string // "" = killed from outside, once the tool runs
		marks     string // what the server's log holds in the end
		unknown   bool
	}{
		{name: "inside the tool", tool: "slow", marks: "slow", unknown: true},
		{name: "inside the tool of a server that does not want to go", how: "stubborn", tool: "slow", marks: "slow", unknown: true},
		{name: "before it is asked", tool: "mark", fail: "tool.started:1", unknown: true},
		{name: "after its answer", tool: "mark", fail: "tool.ran:1", marks: "x", unknown: true},
		{name: "a tool that only reads", tool: "echo", fail: "tool.ran:1"},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			b := newBench(t, "script", []crashtest.Turn{
				{Text: "I ask.", Calls: []crashtest.Call{{Name: "mcp--s--" + r.tool, Input: map[string]any{"text": "x", "n": 3_600_000}}}},
				crashtest.Complete("All is done."),
			})
			log := filepath.Join(b.Dir, "server.log")
			define(t, b, r.how, log)
			args := append(append([]string{"run", "--yes"}, b.Model...), "-C", b.Workspace, "the words")
			first, err := b.RunUntil(ctx, r.fail, written(ctx, log, r.fail == ""), args...)
			if err != nil || !first.Killed {
				t.Fatalf("got %+v, %v, want no error and first.Killed", first, err)
			}
			if r.how == "" {
				if left := b.Gone(20 * time.Second); len(left) > 0 {
					t.Errorf("the kill left %v", left)
				}
			}
			ids, err := b.Tasks()
			if err != nil || len(ids) != 1 {
				t.Fatalf("tasks %v, %v", ids, err)
			}
			if last := start(ctx, t, b, "", "resume", ids[0], "--yes"); last.Code != 0 {
				t.Fatalf("resume: %d: %s", last.Code, last.Errors)
			}
			after := look(ctx, t, b, ids[0])
			for _, err := range []error{crashtest.CheckHistories(after), after.CheckFiles()} {
				if err != nil {
					t.Error(err)
				}
			}
			doctor(ctx, t, b)
			want := "ok"
			if r.unknown {
				want = "unknown"
			}
			if c := after.Calls[0]; after.Status != "completed" || c.Finished == nil || c.Finished.Outcome != want {
				t.Errorf("status %s, call %s", after.Status, after.Calls[0].Result)
			}
			if told := strings.Contains(fmt.Sprintf("%s", after.API), "It was not run again"); told != r.unknown {
				t.Errorf("the model was told that it is not known: %v: %s", told, after.API)
			}
			data, _ := os.ReadFile(log)
			if got := strings.Fields(string(data)); len(got) > 0 != (r.marks != "") || len(got) > 0 && (got[0] != r.marks || strings.Count(string(data), r.marks) != 1) {
				t.Errorf("the server's log is %q, wanted %q once", data, r.marks)
			}
			if left := b.Gone(20 * time.Second); len(left) > 0 {
				t.Errorf("processes %v are left", left)
			}
		})
	}
}

// define makes this test's binary the server s of the bench.
func define(t *testing.T, b *crashtest.Bench, how, log string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"s": map[string]any{
		"command": exe, "env": map[string]string{mcptest.Env: how, mcptest.LogEnv: log}, "timeout": 3600,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(b.Dir, "home", ".config", "roost")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mcp.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// written is closed when the server's log holds something; never, unless it is waited
// for.
func written(ctx context.Context, log string, wait bool) <-chan struct{} {
	there := make(chan struct{})
	if !wait {
		return there
	}
	go func() {
		defer close(there)
		for ctx.Err() == nil {
			if info, err := os.Stat(log); err == nil && info.Size() > 0 {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	return there
}
