package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/view"
)

// complain prints what went wrong and what helps.
func (s *Session) complain(err error) {
	text := display.OneLine(err.Error())
	if errors.Is(err, context.Canceled) {
		text = "stopped"
	}
	lines := s.style.Paint(view.Bad, "✗ "+text)
	var p *client.Problem
	if errors.As(err, &p) {
		for _, w := range p.Errors {
			lines += "\n" + s.style.Paint(view.Dim, "  "+display.OneLine(w.Parameter+": "+w.Detail))
		}
		for _, try := range p.Suggestions {
			lines += "\n" + s.style.Paint(view.Dim, "  "+display.OneLine(try))
		}
	}
	s.out.block(lines)
}

// tell prints a message of the chat's own, in a dim line.
func (s *Session) tell(format string, args ...any) {
	s.out.block(s.style.Paint(view.Dim, display.OneLineIndented(fmt.Sprintf(format, args...))))
}

// Note prints what is not of the chat: in dim lines above the editor.
func (s *Session) Note(text string) {
	text = strings.Trim(Safe(text), "\n")
	if text == "" {
		return
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = s.style.Paint(view.Dim, line)
	}
	s.out.block(strings.Join(lines, "\n"))
}

// echo shows words of the person's that were typed here. A terminal that shows what is
// typed by itself needs none.
func (s *Session) echo(text string) {
	s.mu.Lock()
	echoes := s.echoes
	s.mu.Unlock()
	if echoes {
		s.quote(text)
	}
}

// quoted is how many lines of a person's words are shown again, quotedEnd how many of
// them are the last: who pastes a file wants to see that it was sent, not all of it.
const (
	quoted    = 30
	quotedEnd = 5
)

// quote shows words of a person's.
func (s *Session) quote(text string) {
	lines := strings.Split(Safe(text), "\n")
	if over := len(lines) - quoted; over > 0 {
		lines = append(append(lines[:quoted-quotedEnd:quoted-quotedEnd], fmt.Sprintf("… %d more lines …", over)),
			lines[len(lines)-quotedEnd:]...)
	}
	for i, line := range lines {
		lead := "  "
		if i == 0 {
			lead = "› "
		}
		lines[i] = s.style.Paint(view.Head, lead+line)
	}
	s.out.block(strings.Join(lines, "\n"))
}

// give prints a result: on a stream of its own where a program reads only that.
func (s *Session) give(text string) {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return
	}
	if s.o.Result == nil {
		s.out.block(text)
		return
	}
	_, _ = io.WriteString(s.o.Result, text+"\n") // a reader that has closed it wants no result
}
