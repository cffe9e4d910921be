package app

import (
	"fmt"

	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/view"
)

// Tell writes a failure to stderr.
func (a *App) Tell(f *failure.Failure) {
	if a.Flags.JSON {
		p := failure.Problem{
			Type: "about:blank#" + f.Code, Title: f.What, Status: f.Status, Code: f.Code, Detail: f.Why,
			Task: f.Task, Suggestions: f.Suggestions, Retryable: f.Retryable,
		}
		if f.Try != "" {
			p.Suggestions = append([]string{f.Try}, p.Suggestions...)
		}
		if p.Suggestions == nil {
			p.Suggestions = []string{}
		}
		_ = Encode(a.ErrJSON(), p, false) // no other place is left for a message
		return
	}
	style := display.Style{On: a.Colour()}
	fmt.Fprintln(a.Err, style.Paint(view.Bad, "roost: "+display.OneLine(f.What)))
	fmt.Fprintln(a.Err, "  "+display.OneLine(f.Why))
	if f.Try != "" {
		fmt.Fprintln(a.Err, "  try: "+display.Safe(f.Try))
	}
	for i, s := range f.Suggestions {
		if i == 0 && len(f.Suggestions) == 1 && f.Try != "" {
			break
		}
		fmt.Fprintln(a.Err, "    "+display.OneLine(s))
	}
}
