package term

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-dev/roost/view"
)

// toolStarted remembers a call's row; a command is shown at once, for it may
// take long and print.
func (d *Display) toolStarted(e Event, f fields) {
	c := call{started: e.At}
	if it, ok := d.kinds[f.Message]; ok {
		c.title = firstLine(it.Title)
		if it.Kind == "ask:command" {
			d.one(view.Head, firstLine(it.Title))
		}
	}
	d.tools[f.Call] = c
}

// toolFinished shows a call's outcome in one line.
func (d *Display) toolFinished(e Event, f fields) {
	c := d.tools[f.Call]
	mark, style := "✓", view.Plain
	switch f.Outcome {
	case "error":
		mark, style = "✗", view.Bad
	case "denied":
		mark, style = "⊘", view.Asked
	case "cancelled", "unknown":
		mark, style = "?", view.Asked
	}
	var facts []string
	if f.Outcome != "ok" {
		facts = append(facts, f.Outcome)
	}
	if f.Rule != "" && f.Outcome == "denied" {
		facts = append(facts, "rule "+f.Rule)
	}
	if f.Exit != nil {
		facts = append(facts, fmt.Sprintf("exit %d", *f.Exit))
		if *f.Exit != 0 {
			mark, style = "✗", view.Bad
		}
	}
	text, images := view.ResultText(f.Result)
	if n := lineCount(text); n > 1 && f.Outcome == "ok" && f.Exit == nil {
		facts = append(facts, fmt.Sprintf("%d lines", n))
	}
	if images > 0 {
		facts = append(facts, fmt.Sprintf("%d images", images))
	}
	if took := e.At - c.started; c.started > 0 && took >= 100 {
		facts = append(facts, Duration(time.Duration(took)*time.Millisecond))
	}
	line := mark + " " + f.Name
	if target := targetOf(c.title); target != "" {
		line += " " + target
	}
	tail := ""
	if len(facts) > 0 {
		tail = " (" + strings.Join(facts, ", ") + ")"
	}
	if d.o.Width > 0 { // the facts are worth more than the end of a long command
		line = Cut(OneLine(line), max(d.o.Width-Columns(tail), 20))
	}
	d.one(style, line+tail)
	if f.Outcome == "error" && d.o.Verbose {
		d.some(indent(view.Dim, text, 10))
	}
}

// targetOf drops the verb of a title: the tool's name has it already.
func targetOf(title string) string {
	if cmd, ok := strings.CutPrefix(title, "$ "); ok {
		return cmd
	}
	_, rest, _ := strings.Cut(title, " ")
	return rest
}

func indent(style view.Style, text string, most int) []view.Line {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	var out []view.Line
	for i, l := range all {
		if i == most {
			return append(out, view.Line{Style: view.Dim, Text: fmt.Sprintf("  ... %d more lines", len(all)-most)})
		}
		out = append(out, view.Line{Style: style, Text: "  " + l})
	}
	return out
}

func lineCount(text string) int {
	text = strings.TrimSuffix(text, "\n")
	if text == "" {
		return 0
	}
	return strings.Count(text, "\n") + 1
}

func firstLine(s string) string {
	first, rest, more := strings.Cut(s, "\n")
	if more && strings.TrimSpace(rest) != "" {
		return first + " …"
	}
	return first
}
