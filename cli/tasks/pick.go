package tasks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/picker"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/local"
)

// welcome is roost without a command: on a terminal the picker, else help. Without any
// task, it prints where it looked for tasks.
func (a *commands) welcome(cmd *cobra.Command) error {
	if !a.Interactive() {
		return cmd.Help()
	}
	s, err := a.Open()
	if err != nil {
		return err
	}
	names, err := taskNames(cmd.Context(), s)
	if err != nil {
		return err
	}
	if len(names) == 0 || !a.canDraw() {
		return a.plainWelcome(cmd, s)
	}
	choice, err := a.draw(cmd.Context(), s, "")
	if err != nil {
		return err
	}
	if choice.Verb != picker.Resume {
		a.Say("%s", choice.Found) // it stays when the screen has gone
		return nil
	}
	return again(cmd, "resume", choice.Task.Key)
}

// taskNames are the ids of all tasks.
func taskNames(ctx context.Context, s *local.Roost) ([]api.Name, error) {
	all := s.Service()
	defer all.Close()
	return all.Names(ctx)
}

// again runs another command of the program, as if the user had typed it.
func again(cmd *cobra.Command, name string, args ...string) error {
	sub, _, err := cmd.Root().Find([]string{name})
	if err != nil {
		return err
	}
	sub.SetContext(cmd.Context())
	return sub.RunE(sub, args)
}

// picks lets a person choose the task of a command that was given none.
func (a *commands) picks(cmd *cobra.Command) *cobra.Command {
	check, run := cmd.Args, cmd.RunE
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && a.Interactive() {
			return nil
		}
		return check(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			s, err := a.Open()
			if err != nil {
				return err
			}
			id, err := a.pick(cmd.Context(), s, cmd.Name())
			if err != nil {
				return err
			}
			args = []string{id}
		}
		return run(cmd, args)
	}
	return cmd
}

// pick lets the user choose one task. purpose is one word, for messages.
func (a *commands) pick(ctx context.Context, s *local.Roost, purpose string) (string, error) {
	if !a.Interactive() {
		return "", failure.Usage(purpose+" a task", "no task was named, and "+app.ErrNoTerminal.Error(), "roost list  # then roost "+purpose+" ID")
	}
	names, err := taskNames(ctx, s)
	if err != nil {
		return "", err
	}
	if len(names) == 0 {
		return "", &failure.Failure{
			Exit: failure.ExitNotFound,
			Code: "task_not_found",
			What: purpose + " a task",
			Why:  "there is none",
			Try:  `roost run "what to do"`,
		}
	}
	if !a.canDraw() {
		return a.plainPick(ctx, s, purpose)
	}
	choice, err := a.draw(ctx, s, purpose)
	if err != nil {
		return "", err
	}
	if choice.Verb == picker.Leave {
		return "", notChosen(purpose)
	}
	return choice.Task.Key, nil
}

func notChosen(purpose string) error {
	return &failure.Failure{Exit: failure.ExitCancelled, Code: "cancelled", What: "choose a task", Why: "none was chosen", Try: "roost " + purpose + " ID"}
}

// canDraw reports whether the terminal is one that a screen can be drawn on.
func (a *commands) canDraw() bool {
	_, in := a.In.(*os.File)
	_, out := a.Err.(*os.File)
	return in && out && a.Env("TERM") != "dumb" && a.Env("TERM") != ""
}

// draw shows the picker on stderr: what stdout gets is the command's result.
func (a *commands) draw(ctx context.Context, s *local.Roost, purpose string) (picker.Choice, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.Engine() == nil { // it runs nothing here, and lets tasks be deleted
		s.Start(engine.Options{}, true)
		defer func() { _ = s.Close(ctx) }()
	}
	c, end, err := a.Local(s)
	if err != nil {
		return picker.Choice{}, err
	}
	defer end()
	all := s.Service()
	defer all.Close()
	d := &pickerBackend{commands: a, all: all, client: c}
	ended, code := d.untilSignal(cancel)
	in, _ := a.In.(*os.File)
	out, _ := a.Err.(*os.File)
	choice, err := picker.Run(ctx, d, in, out, picker.Options{
		Colour: a.Colour(), Now: a.Now, Purpose: purpose, Pager: a.Pager() != "",
	})
	ended()
	exit := int(code.Load())
	if choice.Interrupted {
		exit = failure.ExitInterrupt
	}
	if exit != 0 {
		return choice, &failure.Failure{
			Exit: exit,
			Code: "cancelled",
			What: "choose a task",
			Why:  "it was interrupted; nothing is lost",
			Try:  "roost",
		}
	}
	if errors.Is(err, picker.ErrPanic) {
		return choice, fmt.Errorf("%w because of an error in the picker; use roost list and roost resume ID instead", err)
	}
	return choice, err
}

// untilSignal ends the screen on a signal, which restores the terminal. While a pager has
// the terminal, an interrupt goes to the pager.
func (d *pickerBackend) untilSignal(end func()) (stop func(), code *atomic.Int32) {
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(ch, syscall.SIGHUP)
	}
	code = new(atomic.Int32)
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for {
			select {
			case <-quit:
				return
			case sig := <-ch:
				if sig == os.Interrupt && (d.paging.Load() || time.Since(time.Unix(0, d.closed.Load())) < app.Bounce) {
					continue // it also ends the pager, perhaps before this process gets it
				}
				code.CompareAndSwap(0, int32(app.SignalExit(sig)))
				end()
			}
		}
	}()
	return func() {
		signal.Stop(ch)
		close(quit)
		<-gone
	}, code
}

// editors are the folders of editors as people call them.
var editors = map[string]string{
	"code": "VS Code", "code - insiders": "VS Code Insiders", "vscodium": "VSCodium", "cursor": "Cursor", "windsurf": "Windsurf",
	".vscode-server": "VS Code remote", ".vscode-server-insiders": "VS Code Insiders remote", ".cursor-server": "Cursor remote",
	".windsurf-server": "Windsurf remote", "code-server": "code-server", ".vscodium-server": "VSCodium remote",
}

// sourceLabel names a storage for people: its editor, and the tool.
func sourceLabel(src api.SourceState) string {
	if src.Name == api.OwnSource {
		return "Roost"
	}
	editor := src.Name
	parts := strings.Split(strings.ReplaceAll(src.Path, `\`, "/"), "/")
	if i := slices.Index(parts, "globalStorage"); i >= 2 {
		at := i - 2 // <editor>/User/globalStorage
		if parts[at] == "data" && at > 0 {
			at--
		}
		editor = parts[at]
		if known := editors[strings.ToLower(editor)]; known != "" {
			editor = known
		}
	}
	tool := src.Tool
	if tool == "" {
		return editor
	}
	return editor + "/" + strings.ToUpper(tool[:1]) + tool[1:]
}
