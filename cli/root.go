// Package cli is the command line of Roost: it reads flags, puts the packages of commands together and returns an exit
// code. It has no rules of its own; the engine and the store decide what a command does.
//
// stdout is the result only: the final text of a run, a table, one JSON document,
// or NDJSON where the command documents it. Progress, questions and warnings go to
// stderr. No command asks without a terminal. Exit codes are decided in one
// place, package failure.
//
// The packages of commands are tasks, running, editing, hosting, settings and try. They share package app and do not import
// each other; where one needs another, this package passes a function in.
package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/editing"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	"github.com/roost-dev/roost/cli/hosting"
	"github.com/roost-dev/roost/cli/running"
	"github.com/roost-dev/roost/cli/settings"
	"github.com/roost-dev/roost/cli/tasks"
	"github.com/roost-dev/roost/cli/try"
	"github.com/roost-dev/roost/workspace/shell"
)

// commands are help, version and completion; the other commands are in packages of their own.
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
		a.Width, a.Height, _ = term.GetSize(int(os.Stderr.Fd()))
	} else if a.OutTTY {
		a.Width, a.Height, _ = term.GetSize(int(os.Stdout.Fd()))
	}
	app.SurviveBrokenPipes()
	return Run(context.Background(), a, os.Args[1:])
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Run runs one command line and returns its exit code. Errors are printed to Err.
func Run(ctx context.Context, a *app.App, args []string) int {
	out := app.NewOutput(a.Out, a.OutTTY, &a.Flags.JSON)
	a.Out = out
	root := rootCommand(a)
	root.SetArgs(args)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		(&commands{a}).complete(root)
	}
	cmd, err := root.ExecuteContextC(ctx)
	printed := out.Close()
	if err == nil {
		err = printed
	}
	if err == nil || app.ReaderGone(printed) && app.ReaderGone(err) {
		return failure.ExitDone
	}
	if !a.Flags.JSON { // a wrong flag may have ended parsing before --json was seen
		if end := slices.Index(args, "--"); end >= 0 {
			args = args[:end]
		}
		a.Flags.JSON = slices.Contains(args, "--json")
	}
	f := failure.Of(err)
	f.Advise(cmd, cmd.Flags().Args())
	a.Tell(f)
	return f.Exit
}

// rootCommand puts the packages of commands together: each has the commands of one subject.
func rootCommand(a *app.App) *cobra.Command {
	c, version := &commands{a}, false
	root := help.Command("roost", func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) > 0:
			return failure.UnknownCommand(cmd, args[0])
		case version:
			return c.version(cmd, args)
		}
		return tasks.Welcome(a, cmd)
	})
	root.SilenceErrors, root.SilenceUsage, root.Args = true, true, cobra.ArbitraryArgs
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
	app.Complete(root, "sources", app.Words("auto", "none"))
	c.layout().Install(root)
	root.Flags().BoolVar(&version, "version", false, "print the version, as roost version does")
	root.SetHelpCommand(c.helpCommand())
	root.AddCommand(running.Commands(a, running.Parts{Pick: tasks.Pick, Run: Run})...)
	root.AddCommand(tasks.Commands(a)...)
	root.AddCommand(editing.Commands(a)...)
	root.AddCommand(hosting.Commands(a)...)
	root.AddCommand(settings.Commands(a)...)
	root.AddCommand(a.OnlyHere(try.Command(a)), help.Command("version", c.version), c.completionCommand())
	return root
}

// complete sets the completions of a command and those below it, except those that they set themselves. Arguments
// complete by the usage; flags by their names, which mean the same everywhere, or by the kind of their value. Names
// of files complete only where a file is expected.
func (a *commands) complete(cmd *cobra.Command) {
	byName := map[string]app.Completer{
		"mode": a.ModeNames, "model": app.Models, "profile": a.ProfileNames, "source": a.SourceNames,
		"provider": app.Words(app.Providers...), "condense-at": app.Words("never", "50", "75", "90", "100"), "task": a.TaskIDs,
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		takes, _ := pflag.UnquoteUsage(f)
		_, given := cmd.GetFlagCompletionFunc(f.Name)
		switch {
		case given || takes == "file":
		case byName[f.Name] != nil:
			app.Complete(cmd, f.Name, byName[f.Name])
		case takes == "folder":
			app.Complete(cmd, f.Name, app.Folders)
		default:
			app.Complete(cmd, f.Name, cobra.NoFileCompletions)
		}
	})
	takes := ""
	if words := strings.Fields(cmd.Use); len(words) > 1 {
		takes = strings.Trim(words[1], "[]")
	}
	files := strings.Contains(cmd.Use, "FILE") || strings.Contains(cmd.Use, "PATH")
	switch {
	case cmd.ValidArgsFunction != nil || cmd.ValidArgs != nil || files:
	case takes == "ID":
		cmd.ValidArgsFunction = app.First(a.TaskIDs)
	case takes == "ID...":
		cmd.ValidArgsFunction = a.TaskIDs
	default:
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, sub := range cmd.Commands() {
		a.complete(sub)
	}
}

func (a *commands) version(*cobra.Command, []string) error {
	v := api.ProgramVersion()
	if a.Flags.JSON {
		return a.PrintJSON(v)
	}
	line := "roost " + v.Version
	if v.Commit != "" {
		line += " " + v.Commit[:min(12, len(v.Commit))]
	}
	if v.Modified {
		line += " modified"
	}
	return a.Println(fmt.Sprintf("%s (%s, %s/%s)", line, v.Go, v.OS, v.Arch))
}

func (a *commands) completionCommand() *cobra.Command {
	cmd := help.Command("completion", func(cmd *cobra.Command, args []string) error {
		switch root := cmd.Root(); args[0] {
		case "bash":
			return root.GenBashCompletionV2(a.Out, true)
		case "zsh":
			return root.GenZshCompletion(a.Out)
		case "fish":
			return root.GenFishCompletion(a.Out, true)
		case "powershell":
			return root.GenPowerShellCompletionWithDesc(a.Out)
		}
		return failure.Usage("roost completion "+args[0], "there is no script for that shell",
			"roost completion bash|zsh|fish|powershell")
	})
	cmd.ValidArgs = []string{"bash", "zsh", "fish", "powershell"}
	return cmd
}
