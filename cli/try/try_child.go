package try

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/internal/failpoint"
)

// killPoint is where the first process dies: a command runs and has printed
// something, so what it did before that is done.
const killPoint = "tool.output"

// childRun is what one process of the trial did.
type childRun struct {
	task   string
	seq    uint64 // the newest durable event it showed
	end    string // how it ended, in words
	code   int
	killed bool
}

// child runs roost as a separate process and shows its events.
func (t *trial) child(ctx context.Context, kill string, args ...string) (childRun, error) {
	var r childRun
	exe, err := os.Executable()
	if err != nil {
		return r, fmt.Errorf("find this program: %w", err)
	}
	cache := filepath.Join(t.dir, "cache")
	args = append([]string{"--root", t.root, "--cache", cache, "--sources", "none", "--json", "--no-input"}, args...)
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Args[0] = "roost"
	// Stopped, it saves and ends its commands; killed, it could not.
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, 3*time.Second
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "ROOST_") { // the user's settings do not apply here
			cmd.Env = append(cmd.Env, e)
		}
	}
	cmd.Env = append(cmd.Env, "ROOST_CONFIG="+filepath.Join(t.dir, "config.toml")) // which does not exist
	cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+filepath.Join(t.dir, "state"))     // the keys of the root go with it
	cmd.Env = append(cmd.Env, "TMPDIR="+t.dir)                                     // what a killed process leaves there goes with the rest
	if kill != "" {
		cmd.Env = append(cmd.Env, failpoint.Env+"="+kill)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, w, err := os.Pipe()
	if err != nil {
		return r, fmt.Errorf("start a second roost: %w", err)
	}
	defer stdout.Close()
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		w.Close()
		return r, fmt.Errorf("start a second roost: %w", err)
	}
	w.Close()
	read := t.events(stdout, &r)
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return r, fmt.Errorf("wait for the second roost: %w", err)
	}
	r.end, r.code = cmd.ProcessState.String(), cmd.ProcessState.ExitCode()
	r.killed = !cmd.ProcessState.Exited() || kill != "" && r.code == 1 && stderr.Len() == 0 // no signals on Windows
	switch {
	case read != nil:
		return r, fmt.Errorf("read the second roost's events: %w", read)
	case kill == "" && r.code != 0:
		return r, t.broken(fmt.Sprintf("roost %s: %s: %s", args[7], r.end, stderr.String()))
	case r.task == "":
		return r, t.broken(fmt.Sprintf("no event came: %s: %s", r.end, stderr.String()))
	}
	return r, nil
}

// events shows a child's events until it ends. A line that the kill cut short is
// no event.
func (t *trial) events(r io.Reader, run *childRun) error {
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			t.d.Flush()
			return nil
		}
		if err != nil {
			return err
		}
		var head struct {
			Type string    `json:"type"`
			Task string    `json:"task_id"`
			Seq  uint64    `json:"seq"`
			At   time.Time `json:"at"`
		}
		if json.Unmarshal(line, &head) != nil {
			continue
		}
		if run.task == "" {
			run.task = head.Task
		}
		run.seq = max(run.seq, head.Seq)
		at := int64(0)
		if !head.At.IsZero() {
			at = head.At.UnixMilli()
		}
		t.d.Show(display.Event{Type: head.Type, At: at, Data: line})
	}
}
