package tasks

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
)

var partWords = map[string]string{
	"system": "the system prompt", "tools": "the tools' descriptions", "summary": "the summary", "history": "the conversation",
	"results": "results of tools", "files": "files that were read", "images": "images",
}

// workspaceQuery names a folder to a server; "" = the task's own.
func workspaceQuery(dir string) url.Values {
	if dir == "" {
		return nil
	}
	return url.Values{"workspace": {dir}}
}

func (a *commands) printContext(c api.ContextUse) error {
	whole := c.Used
	if c.Window != nil {
		whole = max(*c.Window, c.Used)
	}
	how := "estimated"
	if c.Counted {
		how = "as the provider counts"
	}
	lines := []string{fmt.Sprintf("%s: the next request has about %d tokens (%s), %d messages", display.OneLine(c.Model), c.Used,
		how, c.Messages)}
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
	return a.Println(strings.Join(lines, "\n"))
}
