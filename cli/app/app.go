package app

import (
	"errors"
	"fmt"
	"io"
	"time"

	display "github.com/roost-dev/roost/cli/term"
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
	Loaded *Settings
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

// Millis is the time now, in Unix milliseconds.
func (a *App) Millis() int64 { return a.Now().UnixMilli() }

// ErrNoTerminal is why no person can choose.
var ErrNoTerminal = errors.New("there is no terminal to choose on")

// Version is set when a release is built; otherwise the version comes from the build information.
var Version = ""
