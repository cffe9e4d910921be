package crashtest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/crashtest"
)

// TestKilledDuringAPatch: a patch of several files is cut anywhere. What was not begun
// is made once, what is whole is not made again, and of a part the model is told which
// files are changed, so that it can do the rest.
func TestKilledDuringAPatch(t *testing.T) {
	const patch = "*** Begin Patch\n*** Update File: a\n@@\n-1\n+2\n*** Add File: new/b\n+b\n*** Delete File: c\n*** End Patch"
	const rest = "*** Begin Patch\n*** Add File: new/b\n+b\n*** Delete File: c\n*** End Patch"
	for _, r := range []struct {
		name, fail string
		rest       bool
		outcome    string
		want       string // must stand in the model's history
	}{
		{"not begun", "tool.started", false, "ok", `"operation\":\"deleted\"`},
		{"before the first rename", "tool.write.before", false, "ok", `"operation\":\"deleted\"`},
		{"after the first rename", "tool.write.after", true, "unknown", "Changed: a. Not changed: c, new/b."},
		{"after the last rename", "tool.write.after:3", false, "ok", "it was not made again"},
		{"no result", "tool.ran", false, "ok", "it was not made again"},
	} {
		for _, provider := range []string{"script", "anthropic"} {
			t.Run(r.name+"/"+provider, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				turns := []crashtest.Turn{{Text: "The patch.", Calls: []crashtest.Call{{Name: "apply_patch", Input: map[string]any{"patch": patch}}}}}
				if r.rest {
					turns = append(turns, crashtest.Turn{Text: "The rest.", Calls: []crashtest.Call{{Name: "apply_patch", Input: map[string]any{"patch": rest}}}})
				}
				b := newBench(t, provider, append(turns, crashtest.Complete("Done.")))
				for _, name := range []string{"a", "c"} {
					if err := os.WriteFile(filepath.Join(b.Workspace, name), []byte("1\n"), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				first := start(ctx, t, b, r.fail, append(append([]string{"run"}, b.Model...), "--yes", "-C", b.Workspace, "the words")...)
				ids, err := b.Tasks()
				if err != nil || len(ids) != 1 || !first.Killed {
					t.Fatalf("tasks %v, %v; killed %t: %s", ids, err, first.Killed, first.Errors)
				}
				before := look(ctx, t, b, ids[0])
				last := start(ctx, t, b, "", "resume", ids[0], "--yes")
				if last.Code != 0 {
					t.Fatalf("resume: %d: %s", last.Code, last.Errors)
				}
				after := look(ctx, t, b, ids[0])
				for _, err := range []error{crashtest.CheckPrefix(before, after), crashtest.CheckHistories(after), after.CheckFiles()} {
					if err != nil {
						t.Error(err)
					}
				}
				if got := after.Calls[0].Finished.Outcome; got != r.outcome || after.Status != "completed" {
					t.Errorf("the patch is %s, the task %s; wanted %s", got, after.Status, r.outcome)
				}
				if api := fmt.Sprintf("%s", after.API); !strings.Contains(api, r.want) {
					t.Errorf("the model was not told %q: %s", r.want, api)
				}
				got := map[string]string{}
				err = filepath.WalkDir(b.Workspace, func(path string, d os.DirEntry, err error) error {
					if err == nil && d.Type().IsRegular() {
						rel, _ := filepath.Rel(b.Workspace, path)
						data, _ := os.ReadFile(path)
						got[filepath.ToSlash(rel)] = string(data)
					}
					return err
				})
				if err != nil || len(got) != 2 || got["a"] != "2\n" || got["new/b"] != "b\n" {
					t.Errorf("the workspace holds %q, %v", got, err)
				}
				doctor(ctx, t, b)
			})
		}
	}
}
