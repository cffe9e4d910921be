//go:build linux

package crashtest_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/crashtest"
)

// A run is killed while a hook runs, or right after it. The call before which the hook ran was not started, so it runs
// after the resume, and the hook runs once more. A hook after a command leaves the command's outcome unknown; after a
// write the file shows it. No process of a hook is left.
func TestKilledDuringAHook(t *testing.T) {
	command := crashtest.Call{Name: "execute_command", Input: map[string]any{"command": "echo ran >> ran.txt", "cwd": nil, "timeout": nil}}
	write := crashtest.Call{Name: "write_to_file", Input: map[string]any{"path": "a.txt", "content": "a\n"}}
	for _, r := range []struct {
		name, on, fail string // "" = killed from outside, while the hook hangs
		call           crashtest.Call
		hooks          int // how often the hook ran in the end
		outcome, ran   string
	}{
		{"inside a hook before a command", "before_tool", "", command, 2, "ok", "ran\n"},
		{"after a hook before a command", "before_tool", "hook.ran:1", command, 2, "ok", "ran\n"},
		{"inside a hook after a command", "after_tool", "", command, 1, "unknown", "ran\n"},
		{"inside a hook after a write", "after_tool", "", write, 1, "ok", ""},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			b := newBench(t, "script", []crashtest.Turn{{Text: "I do it.", Calls: []crashtest.Call{r.call}}, crashtest.Complete("All is done.")})
			log := filepath.Join(b.Dir, "hook.log")
			dir := filepath.Join(b.Dir, "home", ".config", "roost")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			line := "echo x >> " + log
			if r.fail == "" { // the hook of the killed run hangs behind its line; the next one ends
				line = "test -e " + log + " || hang=1; " + line + "; test -z \\\"$hang\\\" || sleep 3600"
			}
			settings := "[hooks.h]\non = \"" + r.on + "\"\ntool = \"command|write\"\ncommand = \"" + line + "\"\n"
			if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(settings), 0o600); err != nil {
				t.Fatal(err)
			}
			args := append(append([]string{"run", "--approve", "all"}, b.Model...), "-C", b.Workspace, "the words")
			first, err := b.RunUntil(ctx, r.fail, written(ctx, log, r.fail == ""), args...)
			if err != nil || !first.Killed {
				t.Fatalf("got %+v, %v, want a killed run", first, err)
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
			if c := after.Calls[0]; c.Finished == nil || c.Finished.Outcome != r.outcome {
				t.Errorf("got the outcome %+v, want %s", c.Finished, r.outcome)
			}
			if data, _ := os.ReadFile(log); strings.Count(string(data), "x") != r.hooks {
				t.Errorf("the hook ran %d times, want %d", strings.Count(string(data), "x"), r.hooks)
			}
			if data, _ := os.ReadFile(filepath.Join(b.Workspace, "ran.txt")); string(data) != r.ran {
				t.Errorf("the command left %q, want %q", data, r.ran)
			}
			if left := b.Gone(20 * time.Second); len(left) > 0 {
				t.Errorf("processes %v are left", left)
			}
		})
	}
}
