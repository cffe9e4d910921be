package tasks

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"
	"unicode"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/view"
)

// open shows the messages of a task in the pager: at its end, or at the message that the flags name.
func (a *commands) open(ctx context.Context, c *client.Client, id string, f showFlags) error {
	in := *a.App
	if f.at == 0 {
		in.Less += " -i +G" + findInLess(f.find)
		return in.Paged(ctx, func() error { return (&commands{&in}).showHistory(ctx, c, id, f, nil) })
	}
	var text bytes.Buffer // collected first: the pager must know the line of the message when it starts
	lines := 0
	out := in.Out
	in.Out = &text
	err := (&commands{&in}).showHistory(ctx, c, id, f, func() { lines = bytes.Count(text.Bytes(), []byte("\n")) })
	if err != nil {
		return err
	}
	in.Out = out
	in.Less += fmt.Sprintf(" -i +%dg%s", lines+1, findInLess(f.find))
	return in.Paged(ctx, func() error {
		_, _ = in.Out.Write(text.Bytes()) // Flush returns the error
		return in.Flush()
	})
}

// findInLess returns the option of the pager less that marks words without moving to them; "" without words. In the
// pattern, each character that has a meaning in patterns, or would end the option, is replaced by one that matches
// any character. Marks of Markdown may be absent in the text, because they are not shown.
func findInLess(text string) string {
	terms := api.QueryTerms(text)
	if len(terms) == 0 {
		return ""
	}
	const marks = "*`~"
	for i, term := range terms {
		var b strings.Builder
		for _, r := range cmp.Or(strings.Trim(term, marks), term) {
			switch {
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == ' ' || r == '_':
				b.WriteRune(r)
			case strings.ContainsRune(marks, r):
				b.WriteString(".?")
			default:
				b.WriteByte('.')
			}
		}
		terms[i] = b.String()
	}
	return "/\x0b" + strings.Join(terms, "|") + "\n"
}

// printMessage prints the lines of a message. A rich terminal shows the Markdown of a model's words rendered.
func (a *commands) printMessage(lines []api.Line) {
	for len(lines) > 0 {
		said := 0
		for a.Rich() && said < len(lines) && lines[said].Style == string(view.Said) {
			said++
		}
		if said > 0 {
			fmt.Fprintln(a.Out, a.Prose(outdented(lines[:said])))
			lines = lines[said:]
			continue
		}
		for _, text := range app.Wrap(display.Safe(lines[0].Text), a.Columns()) {
			a.Styled(view.Style(lines[0].Style), text)
		}
		lines = lines[1:]
	}
}

// outdented returns the text of lines without the blanks that all of them begin with, and the number of these.
func outdented(lines []api.Line) (text string, indent int) {
	indent = len(lines[0].Text)
	for _, l := range lines {
		indent = min(indent, len(l.Text)-len(strings.TrimLeft(l.Text, " ")))
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.Text[indent:] + "\n")
	}
	return b.String(), indent
}
