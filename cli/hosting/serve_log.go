package hosting

import (
	"fmt"
	"log/slog"

	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/redact"
)

// log is the server's log on stderr: runs and changes, with -v every request, with -q
// trouble only; JSON with --json. Secrets are masked in every field: keys of
// environment, settings and profiles by their values, others by what they look like.
func (a *commands) log(token string, c setup.Config) *slog.Logger {
	secrets := []redact.Known{{Kind: "token", Value: token}}
	know := func(value string) {
		if value != "" {
			secrets = append(secrets, redact.Known{Value: value})
		}
	}
	for _, p := range setup.Providers() {
		know(c.Keys[p])
		for _, name := range setup.KeyVariables(p) {
			know(a.Env(name))
		}
	}
	for _, p := range c.Profiles {
		know(p.Key)
	}
	masks := redact.New(secrets...)
	o := &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: func(_ []string, at slog.Attr) slog.Attr {
		switch at.Value.Kind() {
		case slog.KindString, slog.KindAny:
			if at.Key == slog.LevelKey {
				return at // it has a form of its own
			}
			text, _ := masks.String(fmt.Sprint(at.Value.Any()))
			at.Value = slog.StringValue(text)
		}
		return at
	}}
	switch {
	case a.Flags.Verbose:
		o.Level = slog.LevelDebug
	case a.Flags.Quiet:
		o.Level = slog.LevelWarn
	}
	if a.Flags.JSON {
		return slog.New(slog.NewJSONHandler(a.Err, o))
	}
	return slog.New(slog.NewTextHandler(a.Err, o))
}

// draining prints that the first signal was understood.
func (a *commands) draining() {
	const text = "stopping: runs that work are finished for a while, then interrupted and saved; once more ends it at once"
	if a.Flags.JSON {
		a.Warn(text)
		return
	}
	fmt.Fprintln(a.Err, "\n"+text)
}
