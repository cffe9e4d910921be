package try

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/local"
	"github.com/roost-dev/roost/view"
)

//go:embed try.yaml
var tryScript []byte

// tryTime bounds the whole demonstration.
const tryTime = 90 * time.Second

// trial is one demonstration: a task in a scratch folder, killed and resumed.
type trial struct {
	a         *commands
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

// commands is the trial with the invocation that it belongs to.
type commands struct{ *app.App }

// Command is roost try.
func Command(app *app.App) *cobra.Command {
	a := &commands{app}
	var keep bool
	cmd := &cobra.Command{
		Use:   "try",
		Short: "See a task survive a kill: no key, no set-up",
		Long: "Runs a real task in a scratch folder with the scripted model, kills itself in the\n" +
			"middle of a command, restarts, and checks that nothing was lost and nothing was\n" +
			"done twice. It ends with 0 only if every check held.",
		Args: failure.Arguments(0, 0, "roost try"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), tryTime)
			defer cancel()
			ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
			defer stop()
			t, err := a.trial(keep)
			if err != nil {
				return err
			}
			err = t.run(ctx)
			if errors.Is(ctx.Err(), context.Canceled) { // the cause is the signal, not the error that it led to
				err = &failure.Failure{
					Exit: failure.ExitInterrupt,
					Code: "cancelled",
					What: "show that nothing is lost",
					Why:  "it was stopped",
					Try:  "roost try",
				}
			}
			return errors.Join(err, t.clean())
		},
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the scratch folder and print its path")
	return cmd
}

func (a *commands) trial(keep bool) (*trial, error) {
	dir, err := os.MkdirTemp("", "roost-try-")
	if err != nil {
		return nil, fmt.Errorf("make a scratch folder: %w", err)
	}
	t := &trial{
		a: a, dir: dir, root: filepath.Join(dir, "root"), workspace: filepath.Join(dir, "workspace"),
		script: filepath.Join(dir, "script.yaml"), keep: keep,
		d: display.New(a.Err, display.Options{Colour: a.Colour(), Width: a.Width, Quiet: a.Flags.Quiet || a.Flags.JSON, Live: a.ErrTTY}),
	}
	if err := os.Mkdir(t.workspace, 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("make a scratch workspace: %w", err), t.clean())
	}
	if err := os.WriteFile(t.script, tryScript, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("write the script: %w", err), t.clean())
	}
	return t, nil
}

func (t *trial) clean() error {
	if t.keep {
		t.a.Say("kept: %s", t.dir)
		return nil
	}
	if err := os.RemoveAll(t.dir); err != nil {
		return fmt.Errorf("clear the scratch folder: %w", err)
	}
	return nil
}

func (t *trial) step(text string) { t.d.Line(view.Head, text) }
func (t *trial) fact(text string) { t.d.Line(view.Dim, "  "+text) }

func (t *trial) run(ctx context.Context) error {
	t.step("1. A task starts. The model is a script; loop, tools and journal are the real ones.")
	killed, err := t.child(ctx, killPoint, "run", "--provider", "script", "--model", t.script, "-C", t.workspace, "--yes",
		"Write a note and a line into the diary.")
	if err != nil {
		return err
	}
	t.step("2. The process was ended by SIGKILL while the command ran. Nothing could be cleaned up.")
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
	t.fact(fmt.Sprintf("on disk: %d commits, %d messages for the person, %d for the model", len(before.Commits), len(before.UI),
		len(before.API)))
	t.fact(fmt.Sprintf("the dead process had shown what it did up to commit %d", killed.seq))
	t.fact(fmt.Sprintf("the command had started; its outcome is not recorded; the diary has %d line", before.diary))
	t.step("3. roost resume " + killed.task)
	resumed, err := t.child(ctx, "", "resume", killed.task, "--yes")
	if err != nil {
		return err
	}
	after, err := t.look(ctx, s, killed.task)
	if err != nil {
		return err
	}
	t.step("4. What must be true now:")
	t.judge(killed, resumed, before, after)
	return t.verdict()
}

func (t *trial) broken(why string) error {
	return &failure.Failure{
		Exit: failure.ExitFailed,
		Code: "try_failed",
		What: "show that nothing is lost",
		Why:  why,
		Try:  "roost try --keep  # and look into the folder",
	}
}

// verdict prints the checks and fails when one of them does not hold.
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
		if err := app.Encode(t.a.Out, out, false); err != nil {
			return err
		}
	} else {
		style := t.a.OutStyle()
		var b bytes.Buffer
		for _, c := range t.checks {
			mark, s := "✓", view.Good
			if !c.OK {
				mark, s = "✗", view.Bad
			}
			fmt.Fprintln(&b, style.Paint(s, fmt.Sprintf("  %s %s", mark, c.Name))+style.Paint(view.Dim, " ("+display.OneLine(c.Detail)+")"))
		}
		if _, err := t.a.Out.Write(b.Bytes()); err != nil {
			return fmt.Errorf("print the checks: %w", err)
		}
	}
	if bad > 0 {
		return t.broken(fmt.Sprintf("%d of %d checks did not hold", bad, len(t.checks)))
	}
	t.step("Start your own: roost run \"what to do\". Continue any task: roost resume.")
	return nil
}
