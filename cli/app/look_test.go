package app

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// How a terminal looks follows from the settings and the environment; a stream that is none has no colours, no Markdown
// and no calls.
func TestLooks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name               string
		env                map[string]string
		file               string
		pipe, noColour     bool
		theme, notify      string
		rich, links, plain bool
	}{
		{name: "a terminal", theme: "either", notify: "bell", rich: true},
		{name: "a pipe", pipe: true, file: "theme = \"dark\"\n"},
		{name: "NO_COLOR", noColour: true, notify: "bell", plain: true},
		{name: "a simple terminal", env: map[string]string{"TERM": "dumb"}, notify: "bell", plain: true},
		{name: "the file", file: "theme = \"light\"\nnotify = \"off\"\n", theme: "light", notify: "off", rich: true},
		{name: "a variable before the file", env: map[string]string{"ROOST_THEME": "dark"}, file: "theme = \"light\"\n",
			theme: "dark", notify: "bell", rich: true},
		{name: "no colours, and still Markdown", file: "theme = \"none\"\n", notify: "bell", rich: true},
		{name: "a file that cannot be read", file: "theme = [\n", theme: "either", notify: "bell", rich: true},
		{name: "a known terminal", env: map[string]string{"TERM_PROGRAM": "WezTerm", "COLORFGBG": "15;0"}, theme: "dark",
			notify: "osc9", rich: true, links: true},
		{name: "tmux in it", env: map[string]string{"TERM_PROGRAM": "WezTerm", "TMUX": "/tmp/x"}, theme: "either", notify: "bell",
			rich: true},
		{name: "VTE", env: map[string]string{"VTE_VERSION": "7600"}, theme: "either", notify: "bell", rich: true, links: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "config.toml")
			if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
			a := &App{Env: func(name string) string {
				switch value, set := c.env[name]; {
				case set:
					return value
				case name == "ROOST_CONFIG":
					return path
				case name == "TERM":
					return "xterm-256color"
				}
				return ""
			}, OutTTY: !c.pipe, ErrTTY: !c.pipe}
			a.Flags.NoColour = c.noColour
			o := a.DisplayOptions()
			if o.Theme.Name != c.theme || o.Notify != c.notify || o.Rich != c.rich || o.Links != c.links || o.Theme.On() != (c.theme != "") {
				t.Errorf("got theme %q, notify %q, rich %v, links %v; want %+v", o.Theme.Name, o.Notify, o.Rich, o.Links, c)
			}
			if a.Plain() != c.plain || a.OutStyle().On() != (c.theme != "") {
				t.Errorf("got plain %v, colours on stdout %v", a.Plain(), a.OutStyle().On())
			}
			text := "**a** `b`"
			want := map[bool]string{true: "a `b`", false: text}[c.rich && c.theme == ""]
			if got := a.Prose(text, 0); c.theme == "" && got != want {
				t.Errorf("the result: got %q, want %q", got, want)
			} else if c.theme != "" && got == text {
				t.Errorf("the result is raw: %q", got)
			}
		})
	}
}

func TestWhereAScreenCanBeDrawn(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"TERM=xterm": true, "TERM=": false, "TERM=dumb": false, "TERM=xterm ROOST_PLAIN=1": false} {
		a := &App{In: strings.NewReader(""), Err: io.Discard, InTTY: true, ErrTTY: true}
		a.Env = func(variable string) string {
			_, value, _ := strings.Cut(" "+name, " "+variable+"=")
			value, _, _ = strings.Cut(value, " ")
			return value
		}
		if in, _ := a.Drawable(); in != nil {
			t.Errorf("%s: a buffer is a terminal", name)
		}
		a.In, a.Err = os.Stdin, os.Stderr
		if in, out := a.Drawable(); (in != nil && out != nil) != want {
			t.Errorf("%s: got %v, want %v", name, in != nil, want)
		}
	}
}
