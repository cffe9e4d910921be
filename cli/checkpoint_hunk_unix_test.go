//go:build unix

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
)

// One hunk of a file goes back by its number; --stat names who made each change.
func TestRestoreAHunk(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	file := filepath.Join(s.ws, "lines.txt")
	lines := func(first, last string) string { return first + strings.Repeat("same\n", 20) + last }
	must(t, os.WriteFile(file, []byte(lines("one\n", "end\n")), 0o600))
	s.roost("run", "--yes", "--provider", "script", "-C", s.ws, "--model", s.script(
		call("read_file", `{path: lines.txt}`)+
			call("write_to_file", fmt.Sprintf(`{path: lines.txt, content: %q}`, lines("two\n", "END\n")))+finish("done")), "go on")
	id := s.list()[0].ID
	if r := s.roost("checkpoint", "diff", id, "0", "now", "--stat"); !strings.Contains(r.out, "by agent: write_to_file #") {
		t.Errorf("got %s%s, want the agent's call", r.out, r.err)
	}
	if r := s.roost("checkpoint", "restore", id, "0", "--path", "lines.txt", "--hunk", "3"); r.code != failure.ExitNotFound {
		t.Errorf("hunk 3 of 2: got exit %d, want %d\n%s%s", r.code, failure.ExitNotFound, r.out, r.err)
	}
	if r := s.roost("checkpoint", "restore", id, "0", "--hunk", "1"); r.code != failure.ExitUsage {
		t.Errorf("without a path: got exit %d, want %d\n%s%s", r.code, failure.ExitUsage, r.out, r.err)
	}
	if r := s.roost("checkpoint", "restore", id, "0", "--path", "lines.txt", "--hunk", "2", "--dry-run"); !strings.Contains(r.out, "-END") {
		t.Errorf("the dry run: got %s%s, want what it would write", r.out, r.err)
	}
	if r := s.roost("checkpoint", "restore", id, "0", "--path", "lines.txt", "--hunk", "2"); r.code != 0 {
		t.Errorf("got exit %d, want 0\n%s%s", r.code, r.out, r.err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != lines("two\n", "end\n") {
		t.Errorf("got %q %v, want the second hunk back", got, err)
	}
}
