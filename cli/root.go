package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/editing"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/hosting"
	"github.com/roost-dev/roost/cli/running"
	"github.com/roost-dev/roost/cli/settings"
	"github.com/roost-dev/roost/cli/tasks"
	"github.com/roost-dev/roost/cli/try"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/workspace/shell"
)

// commands are help, version and completion; the other commands are in rooms of their own.
type commands struct{ *app.App }

// Main runs roost with the process's arguments and returns its exit code.
func Main() int {
	shell.HideSelf()
	dir, _ := os.Getwd() // the command that needs an unreadable folder reports it
	a := &app.App{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Getenv, Dir: dir, Now: time.Now,
		InTTY: isTerminal(os.Stdin), OutTTY: isTerminal(os.Stdout), ErrTTY: isTerminal(os.Stderr),
	}
	if a.ErrTTY {
		a.Width, _, _ = term.GetSize(int(os.Stderr.Fd()))
	} else if a.OutTTY {
		a.Width, _, _ = term.GetSize(int(os.Stdout.Fd()))
	}
	app.SurviveBrokenPipes()
	return Run(context.Background(), a, os.Args[1:])
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Run runs one command line and returns its exit code. Errors are printed to Err.
func Run(ctx context.Context, a *app.App, args []string) int {
	out := &app.Output{W: a.Out, JSON: &a.Flags.JSON}
	if a.OutTTY {
		out.Screen = redact.TerminalJSON(a.Out)
		defer func() { _ = out.Screen.Close() }() // the rest of a character
	}
	a.Out = out
	root := rootCommand(a)
	help := &app.Output{W: out} // which cobra prints without looking whether it could
	root.SetOut(help)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil && help.Err != nil {
		err = fmt.Errorf("print the help: %w", help.Err)
	}
	if err == nil || out.Gone && app.ReaderGone(err) {
		return failure.ExitDone
	}
	if !a.Flags.JSON { // a wrong flag may have ended parsing before --json was seen
		for _, arg := range args {
			if arg == "--" {
				break
			}
			a.Flags.JSON = a.Flags.JSON || arg == "--json"
		}
	}
	f := failure.Of(err)
	f.Advise(cmd, cmd.Flags().Args())
	a.Tell(f)
	return f.Exit
}

// rootCommand puts the rooms together: each has the commands of one subject.
func rootCommand(a *app.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "roost",
		Short: "Run the tasks of coding agents, and keep them",
		Long: "Roost runs the tasks of coding agents and keeps them: nothing is lost by a crash,\n" +
			"and every task, also those of Roo Code and its relatives, can be continued.",
		SilenceErrors: true, SilenceUsage: true,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return failure.UnknownCommand(cmd, args[0])
			}
			return tasks.Welcome(a, cmd)
		},
	}
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(failure.FlagError)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SuggestionsMinimumDistance = 2
	p := root.PersistentFlags()
	p.StringVar(&a.Flags.Root, "root", "", "Roost's own `folder` (ROOST_ROOT; default $XDG_DATA_HOME/roost)")
	p.StringVar(&a.Flags.Cache, "cache", "", "`folder` for derived data (ROOST_CACHE; default $XDG_CACHE_HOME/roost)")
	p.StringVar(&a.Flags.Sources, "sources", "", "other tools' storages: auto, none or `DIR,...` (ROOST_SOURCES; default auto)")
	p.StringVar(&a.Flags.Server, "server", "", "use a running server at `URL` (ROOST_SERVER)")
	p.BoolVar(&a.Flags.JSON, "json", false, "print JSON")
	p.BoolVarP(&a.Flags.Quiet, "quiet", "q", false, "print no progress")
	p.BoolVarP(&a.Flags.Verbose, "verbose", "v", false, "print more progress")
	p.BoolVar(&a.Flags.NoColour, "no-color", a.Env("NO_COLOR") != "", "no colours (NO_COLOR)")
	p.BoolVar(&a.Flags.NoInput, "no-input", false, "never ask anything")
	app.Complete(root, "root", app.Folders)
	app.Complete(root, "cache", app.Folders)
	app.Complete(root, "sources", app.Words("auto", "none"))
	app.Complete(root, "server", cobra.NoFileCompletions)
	c := &commands{a}
	root.SetHelpCommand(c.helpCommand())
	root.AddCommand(running.Commands(a, running.Parts{Pick: tasks.Pick, Run: Run})...)
	root.AddCommand(tasks.Commands(a)...)
	root.AddCommand(editing.Commands(a)...)
	root.AddCommand(hosting.Commands(a)...)
	root.AddCommand(settings.Commands(a)...)
	root.AddCommand(a.OnlyHere(try.Command(a)), c.versionCommand(), c.completionCommand())
	return root
}
