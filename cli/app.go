package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/local"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/view"
	"github.com/roost-dev/roost/workspace/shell"
)

// App is one invocation of roost: its streams, its environment and its flags.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	Env      func(string) string
	Dir      string // the current folder
	Now      func() time.Time

	InTTY, OutTTY, ErrTTY bool
	Width                 int // of the terminal, 0 when there is none

	flags  global
	loaded *settings
	screen *display.Display
	asker  *display.Prompter
	muted  bool   // no message may be printed: a shell completes
	less   string // options of the pager less that come after the person's own
}

// global are the flags that every command takes.
type global struct {
	root, cache, sources, server            string
	json, quiet, verbose, noColour, noInput bool
}

// Main runs roost with the process's arguments and returns its exit code.
func Main() int {
	shell.HideSelf()
	dir, _ := os.Getwd() // the command that needs an unreadable folder reports it
	a := &App{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Getenv, Dir: dir, Now: time.Now,
		InTTY: isTerminal(os.Stdin), OutTTY: isTerminal(os.Stdout), ErrTTY: isTerminal(os.Stderr),
	}
	if a.ErrTTY {
		a.Width, _, _ = term.GetSize(int(os.Stderr.Fd()))
	} else if a.OutTTY {
		a.Width, _, _ = term.GetSize(int(os.Stdout.Fd()))
	}
	surviveBrokenPipes()
	return a.Run(context.Background(), os.Args[1:])
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Run runs one command line and returns its exit code. Errors are printed to Err.
func (a *App) Run(ctx context.Context, args []string) int {
	out := &output{w: a.Out, json: &a.flags.json}
	if a.OutTTY {
		out.screen = redact.TerminalJSON(a.Out)
		defer func() { _ = out.screen.Close() }() // the rest of a character
	}
	a.Out = out
	root := a.root()
	help := &output{w: out} // which cobra prints without looking whether it could
	root.SetOut(help)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil && help.err != nil {
		err = fmt.Errorf("print the help: %w", help.err)
	}
	if err == nil || out.gone && readerGone(err) {
		return ExitDone
	}
	if !a.flags.json { // a wrong flag may have ended parsing before --json was seen
		for _, arg := range args {
			if arg == "--" {
				break
			}
			a.flags.json = a.flags.json || arg == "--json"
		}
	}
	f := failureOf(err)
	f.advise(cmd, cmd.Flags().Args())
	a.tell(f)
	return f.Exit
}

func (a *App) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "roost",
		Short: "Run the tasks of coding agents, and keep them",
		Long: "Roost runs the tasks of coding agents and keeps them: nothing is lost by a crash,\n" +
			"and every task, also those of Roo Code and its relatives, can be continued.",
		SilenceErrors: true, SilenceUsage: true,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return a.welcome(cmd)
		},
	}
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SuggestionsMinimumDistance = 2
	p := root.PersistentFlags()
	p.StringVar(&a.flags.root, "root", "", "Roost's own `folder` (ROOST_ROOT; default $XDG_DATA_HOME/roost)")
	p.StringVar(&a.flags.cache, "cache", "", "`folder` for derived data (ROOST_CACHE; default $XDG_CACHE_HOME/roost)")
	p.StringVar(&a.flags.sources, "sources", "", "other tools' storages: auto, none or `DIR,...` (ROOST_SOURCES; default auto)")
	p.StringVar(&a.flags.server, "server", "", "use a running server at `URL` (ROOST_SERVER)")
	p.BoolVar(&a.flags.json, "json", false, "print JSON")
	p.BoolVarP(&a.flags.quiet, "quiet", "q", false, "print no progress")
	p.BoolVarP(&a.flags.verbose, "verbose", "v", false, "print more progress")
	p.BoolVar(&a.flags.noColour, "no-color", a.Env("NO_COLOR") != "", "no colours (NO_COLOR)")
	p.BoolVar(&a.flags.noInput, "no-input", false, "never ask anything")
	complete(root, "root", folders)
	complete(root, "cache", folders)
	complete(root, "sources", words("auto", "none"))
	complete(root, "server", cobra.NoFileCompletions)
	root.SetHelpCommand(a.helpCommand())
	root.AddCommand(
		a.runCommand(), a.resumeCommand(), a.continueCommand(), a.listCommand(), a.searchCommand(), a.picks(a.showCommand()),
		a.usageCommand(), a.doctorCommand(), a.picks(a.exportCommand()), a.sourcesCommand(),
		a.renameCommand(), a.tagCommand(), a.pinCommand("pin", "Keep tasks at the top of lists", "pinned", true),
		a.pinCommand("unpin", "Let tasks go from the top of lists", "not pinned", false), a.deleteCommand(), a.trashCommand(),
		a.rewindCommand(), a.forkCommand(), a.undoCommand(false), a.undoCommand(true), a.condenseCommand(), a.filesCommand(),
		a.checkpointCommand(),
		a.runsCommand(), a.questionsCommand(), a.answerCommand(), a.attachCommand(), a.sendCommand(), a.cancelCommand(), a.waitCommand(),
		a.importCommand(), a.onlyHere(a.rootCommand()), a.chatCommand(), a.onlyHere(a.serveCommand()), a.serverCommand(),
		a.onlyHere(a.tryCommand()), a.onlyHere(a.approvalsCommand()), a.modesCommand(), a.skillsCommand(), a.mcpCommand(),
		a.onlyHere(a.configCommand()), a.onlyHere(a.authCommand()), a.modelsCommand(), a.versionCommand(), a.completionCommand(),
	)
	return root
}

// interactive reports whether a person can be asked.
func (a *App) interactive() bool { return a.InTTY && a.ErrTTY && !a.flags.noInput && !a.flags.json }

func (a *App) colour() bool { return a.ErrTTY && !a.flags.noColour && a.Env("TERM") != "dumb" }

func (a *App) outStyle() display.Style {
	return display.Style{On: a.OutTTY && !a.flags.noColour && a.Env("TERM") != "dumb"}
}

// show is the display of this process, on stderr.
func (a *App) show() *display.Display {
	if a.screen == nil {
		a.screen = display.New(a.Err, display.Options{
			Colour: a.colour(), Width: a.Width, Quiet: a.flags.quiet, Verbose: a.flags.verbose, Live: a.ErrTTY,
		})
	}
	return a.screen
}

// prompter asks the user. The process has one only: a prompter reads ahead, so a
// second one would never get the line that the first has already read.
func (a *App) prompter() *display.Prompter {
	if a.asker == nil {
		a.asker = display.NewPrompter(a.show(), a.In)
	}
	return a.asker
}

// say prints a message for the user to stderr, unless -q.
func (a *App) say(format string, args ...any) {
	if !a.flags.quiet {
		fmt.Fprintln(a.Err, display.Safe(fmt.Sprintf(format, args...)))
	}
}

// errJSON is stderr for whole JSON documents.
func (a *App) errJSON() io.Writer {
	if a.ErrTTY {
		return redact.TerminalJSON(a.Err)
	}
	return a.Err
}

// warn prints what is neither result nor progress, also with -q.
func (a *App) warn(text string) {
	switch {
	case a.muted:
	case a.flags.json:
		_ = encode(a.errJSON(), map[string]string{"type": "notice", "kind": "warning", "text": text}, false)
	default:
		fmt.Fprintln(a.Err, display.Style{On: a.colour()}.Paint(view.Asked, "! "+display.OneLine(text)))
	}
}

// open opens the store that the global flags name.
func (a *App) open() (*local.Roost, error) {
	o := local.Options{Env: a.Env, Now: a.Now, Version: api.VersionOf(Version)}
	var server, sources string
	for _, g := range []struct {
		to        *string
		flag, key string
	}{{&o.Root, a.flags.root, "root"}, {&o.Cache, a.flags.cache, "cache"}, {&server, a.flags.server, "server"},
		{&sources, a.flags.sources, "sources"}} {
		var err error
		if *g.to, err = a.global(g.flag, g.key); err != nil {
			return nil, err
		}
	}
	if server != "" {
		return nil, usage("use the server "+server, "this command works on this machine alone, or on other tasks than a server's",
			"the same without --server, and without ROOST_SERVER and the setting server")
	}
	var err error
	if o.Root == "" {
		if o.Root, err = a.home("XDG_DATA_HOME", ".local/share"); err != nil {
			return nil, err
		}
	}
	if o.Cache == "" {
		if o.Cache, err = a.home("XDG_CACHE_HOME", ".cache"); err != nil {
			return nil, err
		}
	}
	if o.State, err = a.home("XDG_STATE_HOME", ".local/state"); err != nil {
		return nil, err
	}
	o.AutoSources = sources == ""
	for _, dir := range list(sources) {
		switch dir {
		case "auto":
			o.AutoSources = true
		case "none":
		default:
			o.Sources = append(o.Sources, a.abs(dir))
		}
	}
	return local.Open(o)
}

func (a *App) millis() int64 { return a.Now().UnixMilli() }

// withEngine opens store and engine for one command and closes the engine,
// saved, before it returns.
func (a *App) withEngine(ctx context.Context, f func(*local.Roost) error) error {
	s, err := a.open()
	if err != nil {
		return err
	}
	c, err := a.engineConfig()
	if err != nil {
		return err
	}
	s.Start(engine.Options{Config: c}, true)
	return errors.Join(f(s), s.Close(ctx))
}
