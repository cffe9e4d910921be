package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
)

// A command does not read the keys out of the Roost that runs it. Root reads everything, so it
// is done as somebody else.
func TestACommandCannotReadRoostsEnvironment(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	model := s.script(call("execute_command", `{command: "cat /proc/$PPID/comm > comm; base64 /proc/$PPID/environ > environ; dd if=/proc/$PPID/mem count=0; echo $? > mem; ls /proc/$PPID/fd > fd; true", cwd: null, timeout: null}`) + finish("done"))
	s.asNobody()
	s.env("ANTHROPIC_API_KEY=sk-ant-api03-" + strings.Repeat("k", 80))
	r := s.roost("run", "--provider", "script", "--model", model, "-C", s.ws, "--yes", "look")
	if r.code != failure.ExitDone {
		t.Fatalf("exit %d\n%s", r.code, r.err)
	}
	got := map[string]string{}
	for _, name := range []string{"comm", "environ", "mem", "fd"} {
		data, err := os.ReadFile(filepath.Join(s.ws, name))
		must(t, err)
		got[name] = strings.TrimSpace(string(data))
	}
	if got["comm"] != "roost" || got["environ"] != "" || got["mem"] == "0" || got["fd"] != "" {
		t.Errorf("the command read %q", got)
	}
}
