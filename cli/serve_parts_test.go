package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
)

// What a run is asked for here is what a server is asked for, member by member.
func TestRequestsAsAServerTakesThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		req  engine.Request
		want string
	}{
		{"words alone", engine.Request{Text: "do it", Choice: setup.Choice{Workspace: "/ws"}}, `{"workspace":"/ws","message":{"text":"do it"}}`},
		{"an image alone", engine.Request{Images: []string{"data:x"}, Choice: setup.Choice{Workspace: "/ws"}}, `{"workspace":"/ws","message":{"text":"","images":["data:x"]}}`},
		{"no words", engine.Request{Choice: setup.Choice{Workspace: "/ws"}}, `{"workspace":"/ws"}`},
		{"all", engine.Request{
			Text:   "x",
			Choice: setup.Choice{Workspace: "/ws", Mode: "ask", Provider: "openai", Model: "m", BaseURL: "http://b", Profile: "p", Approve: "read", Allow: []string{"git log"}, Deny: []string{"rm"}, Limits: &api.RunLimits{MaxTurns: 3, MaxCostMicros: 500000, IdleTimeoutMS: 90000, TotalTimeoutMS: 3600000}},
			Origin: "cli",
		}, `{"workspace":"/ws","mode":"ask","provider":"openai","model":"m","base_url":"http://b","profile":"p","message":{"text":"x"},"limits":{"max_turns":3,"max_cost":"0.50","idle_timeout":"1m30s","total_timeout":"1h0m0s"},"approve":"read","allow":["git log"],"deny":["rm"],"origin":"cli"}`},
		{"limits taken away", engine.Request{Choice: setup.Choice{Workspace: "/ws", Limits: &api.RunLimits{MaxTurns: -1, MaxCostMicros: -1, IdleTimeoutMS: -1}}},
			`{"workspace":"/ws","limits":{"max_turns":0,"max_cost":"0.00","idle_timeout":"0s"}}`},
	} {
		got, err := json.Marshal(newTaskOf(c.req))
		must(t, err)
		var x, y api.NewTask
		must(t, json.Unmarshal(got, &x))
		must(t, json.Unmarshal([]byte(c.want), &y))
		if diff := cmp.Diff(y, x); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		again := newRunOf(c.req)
		if diff := cmp.Diff(x.Limits, again.Limits); diff != "" || (again.Message == nil) != (x.Message == nil) || again.Approve != x.Approve {
			t.Errorf("%s: going on is asked for otherwise: %+v", c.name, again)
		}
	}
}

// A flag that a server would not hear of is refused, and not left out in silence.
func TestDetachRefusesWhatAServerIsNotTold(t *testing.T) {
	t.Parallel()
	for _, name := range onlyHere {
		r := runFlags{}
		cmd := &cobra.Command{Use: "run"}
		(&App{}).addRunFlags(cmd, &r)
		f := cmd.Flags().Lookup(name)
		if f == nil {
			t.Errorf("no flag is called %s", name)
			continue
		}
		f.Changed = true
		if err := r.refuseLocalFlags(cmd); err != nil {
			t.Errorf("--%s without --detach: %v", name, err)
		}
		r.detach = true
		if err := r.refuseLocalFlags(cmd); err == nil || !strings.Contains(failureOf(err).Error(), name) {
			t.Errorf("--%s with --detach: %v", name, err)
		}
	}
}

func TestMemoryLimitLeavesRoom(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int64{0: memoryFloor, 100 << 20: memoryFloor, 128 << 20: memoryFloor, 300 << 20: 664 << 20} {
		if got := memoryFor(live); got != want {
			t.Errorf("%d in use: a limit of %d, want %d", live, got, want)
		}
	}
}

func TestServerText(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := api.Server{PID: 7, URL: "http://x\x1b[31m", StartedAt: "2026-01-02T03:04:00.000Z", Version: "v1", Recovery: "failed", Draining: true, Runs: api.Load{Running: 1, Waiting: 2, Queued: 3}, Limits: api.Bounds{MaxRuns: 8}}
	got := serverText(s, now)
	for _, want := range []string{"process 7", "1 at work of at most 8, 2 waiting for a person, 3 queued", "starts no more runs", "earlier server left: failed"} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "\x1b") {
		t.Errorf("a server's words reach the terminal raw: %q", got)
	}
	if got := serverText(api.Server{Stopping: true}, now); !strings.Contains(got, "a process with a socket") || !strings.Contains(got, "it is stopping") {
		t.Error(got)
	}
}

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
		t.Errorf("%v\n%s", err, out)
	}
}
