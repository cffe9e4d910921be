package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
)

var partWords = map[string]string{
	"system": "the system prompt", "tools": "the tools' descriptions", "summary": "the summary", "history": "what was said",
	"results": "results of tools", "files": "files that were read", "images": "images",
}

// showContext shows what the next request of a task would be made of.
func (a *App) showContext(ctx context.Context, ref store.Ref, dir string) error {
	return a.withEngine(ctx, func(_ *store.Store, e *engine.Engine) error {
		req := engine.Request{Task: ref.Source + ":" + ref.ID, Workspace: dir}
		u, who, err := e.ContextAs(ctx, req)
		if err != nil {
			return err
		}
		if who != "" {
			_, err := e.Context(ctx, req)
			var unknown *engine.UnknownProfileError
			if errors.As(err, &unknown) {
				a.warn(fmt.Sprintf("the task's profile %q is not known here; this is as if %s answered (roost config set source_profiles.%s NAME says who does)", unknown.Profile, who, unknown.Source))
			}
		}
		out := report.ContextUseOf(ref.ID, u, who)
		if a.flags.json {
			return encode(a.Out, out, false)
		}
		return a.printContext(out)
	})
}

// workspaceQuery names a folder to a server; "" = the task's own.
func workspaceQuery(dir string) url.Values {
	if dir == "" {
		return nil
	}
	return url.Values{"workspace": {dir}}
}

func (a *App) printContext(c report.ContextUse) error {
	whole := c.Used
	if c.Window != nil {
		whole = max(*c.Window, c.Used)
	}
	how := "estimated"
	if c.Counted {
		how = "as the provider counts"
	}
	lines := []string{fmt.Sprintf("%s: the next request has about %d tokens (%s), %d messages", display.OneLine(c.Model), c.Used, how, c.Messages)}
	row := func(name string, tokens int64) {
		share := float64(tokens) / float64(max(whole, 1))
		lines = append(lines, fmt.Sprintf("  %-24s %9d  %5.1f %%  %s", name, tokens, share*100, strings.Repeat("#", int(share*40+0.5))))
	}
	for _, p := range c.Parts {
		if p.Tokens > 0 {
			row(partWords[p.Name], p.Tokens)
		}
	}
	if c.Window == nil {
		lines = append(lines, "  the model's window is not known")
	} else {
		row("kept for the reply", *c.Reply)
		row("free", *c.Free)
	}
	return a.println(strings.Join(lines, "\n"))
}
