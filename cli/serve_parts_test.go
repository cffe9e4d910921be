package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The unit is one that systemd takes, and stops no earlier than roost does by itself.
func TestServiceUnit(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "contrib", "roost.service"))
	must(t, err)
	for _, want := range []string{"roost serve --drain-timeout 30s", "KillSignal=SIGTERM", "TimeoutStopSec=45", "SuccessExitStatus=130 143", "Restart=on-failure", "NoNewPrivileges=yes"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the unit lacks %s", want)
		}
	}
	if strings.Contains(string(text), "UMask=") { // Roost's own files are private by their modes
		t.Error("got a UMask, want none: files that agents make in a project would have other modes than from a shell")
	}
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze")
	}
	dir := t.TempDir()
	exe, err := os.Executable()
	must(t, err)
	unit := filepath.Join(dir, "roost.service")
	must(t, os.WriteFile(unit, []byte(strings.ReplaceAll(string(text), "%h/.local/bin/roost", exe)), 0o600))
	cmd := exec.Command(verify, "--user", "verify", unit)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("got %v\n%s, want no error", err, out)
	}
}
