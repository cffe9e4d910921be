package app

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/term"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/cli/theme"
	"github.com/roost-dev/roost/config"
)

// Plain reports whether a terminal must get only plain text: NO_COLOR, --no-color or TERM=dumb.
func (a *App) Plain() bool { return a.Flags.NoColour || a.Env("TERM") == "dumb" }

// Colours returns the colours of a stream: none unless it is a terminal.
func (a *App) Colours(terminal bool) theme.Theme {
	if !terminal || a.Plain() {
		return theme.Theme{}
	}
	if a.colours == nil {
		t := theme.Of(a.looks("theme"), a.Env)
		a.colours = &t
	}
	return *a.colours
}

// looks returns a setting about looks. It ignores a settings file that cannot be read: the command reports that error
// when it needs the settings.
func (a *App) looks(key string) string {
	if a.Loaded != nil {
		return a.Loaded.Text(key)
	}
	if path, f, err := a.Place().File(); err == nil {
		if values, _, err := config.Resolve(f, path, a.Env); err == nil {
			return values[key].Value.Text
		}
	}
	return ""
}

// PlainTerminal reports whether the terminal must get only lines: it can show no more, or the user, or their screen
// reader, wants no more.
func (a *App) PlainTerminal() bool {
	name := a.Env("TERM")
	return name == "" || name == "dumb" || a.Env("ROOST_PLAIN") != ""
}

// Drawable returns the terminal on which a screen can be drawn, stdin and stderr; nil if there is none. stdout gets only
// a command's result.
func (a *App) Drawable() (in, out *os.File) {
	in, isIn := a.In.(*os.File)
	out, isOut := a.Err.(*os.File)
	if !isIn || !isOut || !a.Interactive() || a.PlainTerminal() {
		return nil, nil
	}
	return in, out
}

// OutStyle returns the style of stdout.
func (a *App) OutStyle() display.Style { return display.Style{Theme: a.Colours(a.OutTTY)} }

// ErrStyle returns the style of stderr.
func (a *App) ErrStyle() display.Style { return display.Style{Theme: a.Colours(a.ErrTTY)} }

// DisplayOptions returns the options with which runs are shown on stderr. With --json, which prints the events themselves,
// the display is quiet.
func (a *App) DisplayOptions() display.Options {
	o := display.Options{
		Theme: a.Colours(a.ErrTTY), Width: a.Width, Quiet: a.Flags.Quiet || a.Flags.JSON, Verbose: a.Flags.Verbose, Live: a.ErrTTY,
		Rich: a.ErrTTY && !a.Plain(), Links: a.links(),
	}
	if a.ErrTTY {
		o.Notify = a.notify()
		if f, is := a.Err.(*os.File); is {
			o.Size = func() int {
				width, _, err := term.GetSize(int(f.Fd()))
				if err != nil {
					return 0
				}
				return width
			}
		}
	}
	return o
}

// links reports whether the terminal is known to support links (OSC 8). tmux and screen may not pass them on.
func (a *App) links() bool {
	switch name := a.Env("TERM_PROGRAM"); {
	case a.Env("TMUX") != "" || a.Env("STY") != "":
		return false
	case name == "iTerm.app" || name == "WezTerm" || name == "vscode" || name == "ghostty":
		return true
	}
	version, _ := strconv.Atoi(a.Env("VTE_VERSION"))
	kind := a.Env("TERM")
	return version >= 5000 || a.Env("WT_SESSION") != "" || a.Env("KONSOLE_VERSION") != "" ||
		strings.Contains(kind, "kitty") || strings.HasPrefix(kind, "foot") || strings.Contains(kind, "ghostty")
}

// notify returns how Roost calls the user to a question: the setting, or what the terminal is known to support.
func (a *App) notify() string {
	how := a.looks("notify")
	if how != "" && how != "auto" {
		return how
	}
	switch name := a.Env("TERM_PROGRAM"); {
	case a.Env("TMUX") != "" || a.Env("STY") != "":
	case name == "iTerm.app" || name == "WezTerm" || name == "ghostty" || strings.Contains(a.Env("TERM"), "kitty"):
		return "osc9"
	}
	return "bell"
}

// Show returns the display of this process, on stderr.
func (a *App) Show() *display.Display {
	if a.Screen == nil {
		a.Screen = display.New(a.Err, a.DisplayOptions())
	}
	return a.Screen
}

// Prompter returns the prompter of this process. There is only one: a prompter reads ahead, so a second one would
// miss the lines that the first has already read.
func (a *App) Prompter() *display.Prompter {
	if a.Asker == nil {
		a.Asker = display.NewPrompter(a.Show(), a.In)
		if a.Interactive() && !a.PlainTerminal() {
			a.Asker = a.Asker.ByKey()
		}
	}
	return a.Asker
}

// Agree asks a question. Only y and yes agree.
func (a *App) Agree(ctx context.Context, question string) (bool, error) {
	answer, err := a.Prompter().Read(ctx, question+" (y, or anything else) > ")
	answer = strings.ToLower(strings.TrimSpace(answer))
	return err == nil && (answer == "y" || answer == "yes"), err
}

// Choose reads which of some numbered names the user chooses, by its number or the name itself; "" = none of them.
func (a *App) Choose(ctx context.Context, prompt string, names []string) (string, error) {
	for {
		line, err := a.Prompter().Read(ctx, prompt)
		if err != nil {
			return "", err
		}
		line = strings.TrimSpace(line)
		n, err := strconv.Atoi(line)
		switch {
		case err == nil && n > 0 && n <= len(names):
			return names[n-1], nil
		case slices.Contains(names, line):
			return line, nil
		case line == "q", line == "quit":
			return "", nil
		}
		a.Say("  one of the numbers, please; Enter alone is not an answer")
	}
}
