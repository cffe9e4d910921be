package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/local"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/view"
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

	Flags  global
	Loaded *settings
	Screen *display.Display
	Asker  *display.Prompter
	Muted  bool   // no message may be printed: a shell completes
	Less   string // options of the pager less that come after the person's own
}

// global are the flags that every command takes.
type global struct {
	Root, Cache, Sources, Server            string
	JSON, Quiet, Verbose, NoColour, NoInput bool
}

// Interactive reports whether a person can be asked.
func (a *App) Interactive() bool { return a.InTTY && a.ErrTTY && !a.Flags.NoInput && !a.Flags.JSON }

// Colour reports whether stderr is coloured.
func (a *App) Colour() bool { return a.ErrTTY && !a.Flags.NoColour && a.Env("TERM") != "dumb" }

// OutStyle is the style of stdout.
func (a *App) OutStyle() display.Style {
	return display.Style{On: a.OutTTY && !a.Flags.NoColour && a.Env("TERM") != "dumb"}
}

// Show is the display of this process, on stderr.
func (a *App) Show() *display.Display {
	if a.Screen == nil {
		a.Screen = display.New(a.Err, display.Options{
			Colour: a.Colour(), Width: a.Width, Quiet: a.Flags.Quiet, Verbose: a.Flags.Verbose, Live: a.ErrTTY,
		})
	}
	return a.Screen
}

// Prompter asks the user. The process has one only: a prompter reads ahead, so a
// second one would never get the line that the first has already read.
func (a *App) Prompter() *display.Prompter {
	if a.Asker == nil {
		a.Asker = display.NewPrompter(a.Show(), a.In)
	}
	return a.Asker
}

// Say prints a message for the user to stderr, unless -q.
func (a *App) Say(format string, args ...any) {
	if !a.Flags.Quiet {
		fmt.Fprintln(a.Err, display.Safe(fmt.Sprintf(format, args...)))
	}
}

// ErrJSON is stderr for whole JSON documents.
func (a *App) ErrJSON() io.Writer {
	if a.ErrTTY {
		return redact.TerminalJSON(a.Err)
	}
	return a.Err
}

// Warn prints what is neither result nor progress, also with -q.
func (a *App) Warn(text string) {
	switch {
	case a.Muted:
	case a.Flags.JSON:
		_ = Encode(a.ErrJSON(), map[string]string{"type": "notice", "kind": "warning", "text": text}, false)
	default:
		fmt.Fprintln(a.Err, display.Style{On: a.Colour()}.Paint(view.Asked, "! "+display.OneLine(text)))
	}
}

// Open opens the store that the global flags name.
func (a *App) Open() (*local.Roost, error) {
	o := local.Options{Env: a.Env, Now: a.Now, Version: api.VersionOf(Version)}
	var server, sources string
	for _, g := range []struct {
		to        *string
		flag, key string
	}{{&o.Root, a.Flags.Root, "root"}, {&o.Cache, a.Flags.Cache, "cache"}, {&server, a.Flags.Server, "server"},
		{&sources, a.Flags.Sources, "sources"}} {
		var err error
		if *g.to, err = a.Global(g.flag, g.key); err != nil {
			return nil, err
		}
	}
	if server != "" {
		return nil, failure.Usage("use the server "+server, "this command works on this machine alone, or on other tasks than a server's",
			"the same without --server, and without ROOST_SERVER and the setting server")
	}
	var err error
	if o.Root == "" {
		if o.Root, err = a.Home("XDG_DATA_HOME", ".local/share"); err != nil {
			return nil, err
		}
	}
	if o.Cache == "" {
		if o.Cache, err = a.Home("XDG_CACHE_HOME", ".cache"); err != nil {
			return nil, err
		}
	}
	if o.State, err = a.Home("XDG_STATE_HOME", ".local/state"); err != nil {
		return nil, err
	}
	o.AutoSources = sources == ""
	for _, dir := range List(sources) {
		switch dir {
		case "auto":
			o.AutoSources = true
		case "none":
		default:
			o.Sources = append(o.Sources, a.Abs(dir))
		}
	}
	return local.Open(o)
}

// Millis is the time now, in Unix milliseconds.
func (a *App) Millis() int64 { return a.Now().UnixMilli() }

// WithEngine opens store and engine for one command and closes the engine,
// saved, before it returns.
func (a *App) WithEngine(ctx context.Context, f func(*local.Roost) error) error {
	s, err := a.Open()
	if err != nil {
		return err
	}
	c, err := a.EngineConfig()
	if err != nil {
		return err
	}
	s.Start(engine.Options{Config: c}, true)
	return errors.Join(f(s), s.Close(ctx))
}

// ErrNoTerminal is why no person can choose.
var ErrNoTerminal = errors.New("there is no terminal to choose on")

// Version is set when a release is built; otherwise the version comes from the build information.
var Version = ""
