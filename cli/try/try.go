// Package try demonstrates that Roost loses nothing: it kills a scripted task in a folder of its own, continues the task,
// and checks the files. It touches no task of the user and needs no model.
package try

import (
	"bufio"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/local"
	"github.com/roost-dev/roost/service"
	"github.com/roost-dev/roost/view"
)

//go:embed try.yaml
var tryScript []byte

// tryTime bounds the whole demonstration.
const tryTime = 90 * time.Second

// trial is one demonstration: a task in a scratch folder, killed and resumed.
type trial struct {
	a         *app.App
	d         *display.Display
	dir       string
	root      string
	workspace string
	script    string
	keep      bool
	checks    []check
}

// check is one condition that must hold after the restart.
type check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

// Command returns the command roost try.
func Command(a *app.App) *cobra.Command {
	var keep bool
	cmd := help.Command("try", func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), tryTime)
		defer cancel()
		ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
		t, err := newTrial(a, keep)
		if err != nil {
			return err
		}
		err = t.run(ctx)
		if errors.Is(ctx.Err(), context.Canceled) { // the cause is the signal, not the error that it led to
			err = failure.New(failure.ExitInterrupt, "cancelled", "show that nothing is lost",
				"it was stopped", "roost try")
		}
		return errors.Join(err, t.clean())
	})
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the task and its folder, and print how to look at it")
	return cmd
}

func newTrial(a *app.App, keep bool) (*trial, error) {
	dir, err := os.MkdirTemp("", "roost-try-")
	if err != nil {
		return nil, fmt.Errorf("make a scratch folder: %w", err)
	}
	t := &trial{
		a: a, dir: dir, root: filepath.Join(dir, "root"), workspace: filepath.Join(dir, "workspace"),
		script: filepath.Join(dir, "script.yaml"), keep: keep,
		d: display.New(a.Err, display.Options{Theme: a.Colours(a.ErrTTY), Width: a.Width, Quiet: a.Flags.Quiet || a.Flags.JSON, Live: a.ErrTTY}),
	}
	err = os.Mkdir(t.workspace, 0o700)
	if err == nil {
		err = os.WriteFile(t.script, tryScript, 0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a scratch workspace: %w", err), t.clean())
	}
	return t, nil
}

func (t *trial) clean() error {
	if t.keep {
		t.a.Say("kept: %s  (delete it with: rm -r %s)", t.dir, api.ShellWord(t.dir))
		return nil
	}
	return api.Failed(os.RemoveAll(t.dir), "clear the scratch folder")
}

func (t *trial) step(text string) { t.d.Line(view.Head, text) }
func (t *trial) fact(text string) { t.d.Line(view.Dim, "  "+text) }

func (t *trial) run(ctx context.Context) error {
	t.step("1. A task starts. Its model is a script, so it needs no key and costs nothing; everything else is real.")
	killed, err := t.child(ctx, killPoint, "run", "--provider", "script", "--model", t.script, "-C", t.workspace, "--yes",
		"Write a note and a line into the diary.")
	if err != nil {
		return err
	}
	t.step("2. Roost was killed (kill -9) in the middle of a command. It had no time to save or clean up.")
	if !killed.killed {
		return t.broken("the process was not killed (" + killed.end + ")")
	}
	s, err := local.Open(local.Options{Root: t.root, Cache: filepath.Join(t.dir, "cache"), Now: t.a.Now})
	if err != nil {
		return err
	}
	before, err := t.look(ctx, s, killed.task)
	if err != nil {
		return err
	}
	t.fact(fmt.Sprintf("already on disk: %d saved steps, %d messages", len(before.Commits), len(before.UI)))
	t.fact(fmt.Sprintf("the command had begun and written %d line; how it ended is not recorded", before.diary))
	t.step("3. The task continues, as with: roost resume " + killed.task)
	resumed, err := t.child(ctx, "", "resume", killed.task, "--yes")
	if err != nil {
		return err
	}
	after, err := t.look(ctx, s, killed.task)
	if err != nil {
		return err
	}
	t.step("4. Was anything lost, or done twice? The files before and after:")
	t.judge(killed, resumed, before, after)
	if err := t.verdict(); err != nil {
		return err
	}
	t.next(killed.task)
	return nil
}

func (t *trial) broken(why string) error {
	return failure.New(failure.ExitFailed, "try_failed", "show that nothing is lost", why,
		"roost try --keep  # and look into the folder")
}

// verdict prints the checks and fails if one of them failed.
func (t *trial) verdict() error {
	bad := 0
	for _, c := range t.checks {
		if !c.OK {
			bad++
		}
	}
	if t.a.Flags.JSON {
		out := struct {
			OK     bool    `json:"ok"`
			Checks []check `json:"checks"`
		}{bad == 0, t.checks}
		if err := t.a.PrintJSON(out); err != nil {
			return err
		}
	} else {
		style := t.a.OutStyle()
		var lines []string
		for _, c := range t.checks {
			mark, s := "✓", view.Good
			if !c.OK {
				mark, s = "✗", view.Bad
			}
			lines = append(lines, style.Paint(s, "  "+mark+" "+c.Name)+style.Paint(view.Dim, " ("+display.OneLine(c.Detail)+")"))
		}
		t.a.Painted(lines)
	}
	if bad > 0 {
		return t.broken(fmt.Sprintf("%d of %d checks did not hold", bad, len(t.checks)))
	}
	return nil
}

// next prints commands that the user can try next.
func (t *trial) next(id string) {
	t.step("Nothing was lost. What you can do now:")
	exe, _ := os.Executable() // without it, the advice for an installed program fits
	if strings.Contains(exe, string(filepath.Separator)+"go-build") {
		t.fact("install Roost (this one goes away with `go run`): go install github.com/roost-dev/roost/cmd/roost@latest")
	}
	if t.keep {
		t.fact("read this task: roost --root " + api.ShellWord(t.root) + " show " + id)
	}
	if !slices.ContainsFunc(setup.Providers(), func(p string) bool { return t.a.Place().KeyVariable(p) != "" }) {
		t.fact("store the key of a model, if you have not yet: roost auth set anthropic")
	}
	t.fact("give a model work in this folder: roost run \"what to do\", or talk with it: roost chat")
	t.fact("find and continue your tasks, also those of Roo Code and Cline: roost list, roost resume ID")
}

// onDisk is the content of a trial's folder at one moment.
type onDisk struct {
	service.Evidence
	diary int // lines
	note  string
}

func (t *trial) look(ctx context.Context, s *local.Roost, id string) (o onDisk, err error) {
	all := s.Service()
	defer all.Close()
	if o.Evidence, err = all.Evidence(ctx, id); err != nil {
		return o, err
	}
	var files [2]string
	for i, name := range []string{"diary.txt", "note.txt"} {
		data, err := os.ReadFile(filepath.Join(t.workspace, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return o, fmt.Errorf("read the scratch workspace: %w", err)
		}
		files[i] = string(data)
	}
	o.diary, o.note = strings.Count(files[0], "once"), files[1]
	return o, nil
}

func (t *trial) check(ok bool, name, detail string, args ...any) {
	t.checks = append(t.checks, check{Name: name, OK: ok, Detail: fmt.Sprintf(detail, args...)})
}

// judge checks the state after the restart.
func (t *trial) judge(killed, resumed childRun, before, after onDisk) {
	n := len(before.Commits)
	t.check(killed.seq <= uint64(n), "all that was shown had been saved", "step %d of %d was the last one shown", killed.seq, n)
	same := len(after.Commits) > n && slices.Equal(before.Commits, after.Commits[:min(n, len(after.Commits))])
	t.check(same, "every saved step is still there, unchanged", "%d before, %d after", n, len(after.Commits))
	api := len(after.API) >= len(before.API) && slices.Equal(before.API, after.API[:min(len(before.API), len(after.API))])
	t.check(api, "every message for the model is still there", "%d before, %d after", len(before.API), len(after.API))
	t.check(before.diary == 1 && after.diary == 1, "the command ran once, not twice", "it wrote %d line before the restart, %d after",
		before.diary, after.diary)
	t.check(strings.Contains(after.note, "before the kill") && before.note == after.note,
		"the file written before the kill is whole", "%d bytes", len(after.note))
	open, reported := 0, 0
	for id, was := range before.Calls {
		if was == "unknown" {
			open++
			if after.Calls[id] == "unknown" && after.Results[id] == 1 {
				reported++
			}
		}
	}
	t.check(open == 1 && reported == 1, "the model learned, once, that the command's outcome is unknown",
		"%d interrupted, %d reported", open, reported)
	once := true
	for _, n := range after.Results {
		once = once && n == 1
	}
	t.check(once, "every tool result is there exactly once", "%d results", len(after.Results))
	t.check(resumed.code == 0 && after.Status == "completed", "the task continued to its end", "%s", after.Status)
	for _, name := range []string{"ui_messages.json", "api_conversation_history.json", "history_item.json"} {
		data, err := os.ReadFile(filepath.Join(after.Folder, name))
		t.check(err == nil && esjson.Valid(data), "Roo's "+name+" is whole", "%d bytes", len(data))
	}
}

// killPoint is the failpoint at which the first process is killed: a command runs and has printed output, so its
// earlier effects exist.
const killPoint = "tool.output"

// childRun is the result of one process of the trial.
type childRun struct {
	task   string
	seq    uint64 // the newest durable event that it showed
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
	// After an interrupt roost saves and ends its commands; after a kill it could not.
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, 3*time.Second
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "ROOST_") { // the user's settings do not apply here
			cmd.Env = append(cmd.Env, e)
		}
	}
	cmd.Env = append(cmd.Env,
		"ROOST_CONFIG="+filepath.Join(t.dir, "config.toml"), // which does not exist
		"XDG_STATE_HOME="+filepath.Join(t.dir, "state"),     // for the keys of the root
		"TMPDIR="+t.dir) // clean removes what a killed process leaves there
	if kill != "" {
		cmd.Env = append(cmd.Env, failpoint.Env+"="+kill)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return r, fmt.Errorf("start a second roost: %w", err)
	}
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

// events shows a child's events until it ends. It ignores a line that the kill cut short.
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
			Type string `json:"type"`
			Task string `json:"task_id"`
			Seq  uint64 `json:"seq"`
		}
		if json.Unmarshal(line, &head) != nil {
			continue
		}
		run.task = cmp.Or(run.task, head.Task)
		run.seq = max(run.seq, head.Seq)
		t.d.Show(head.Type, line)
	}
}
