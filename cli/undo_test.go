package cli

import (
	"context"
	"strings"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/internal/testing/clitest"
)

// Undo and redo complete tasks that are listed and those in the trash.
func TestUndoCompletions(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	storage := base + "/store"
	many(t, storage, 2)
	run := func(args ...string) (string, int) {
		a, out, _ := clitest.New(t, "ROOST_ROOT="+base+"/root", "ROOST_CACHE="+base+"/cache", "ROOST_SOURCES="+storage)
		code := Run(context.Background(), a, args)
		return out.String(), code
	}
	if out, code := run("delete", "1776200000000"); code != failure.ExitDone {
		t.Fatal(out)
	}
	for _, command := range []string{"undo", "redo"} {
		out, _ := run("__complete", command, "")
		if !strings.Contains(out, "1776200001000\ttask 1 of many") || !strings.Contains(out, ":1776200000000\ttask 0 of many") {
			t.Errorf(`%s: got %s, want strings.Contains(out, "1776200001000\ttask 1 of many") and strings.Contains(out, ":1776200000000\ttask 0 of many")`,
				command, out)
		}
		if out, _ := run("__complete", command, "1776200001000", ""); strings.Contains(out, "many") {
			t.Errorf("a second task: %s", out)
		}
	}
}
