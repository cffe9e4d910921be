package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/view"
)

// complain prints an error and the suggestions that come with it.
func (s *Session) complain(err error) {
	text := display.OneLine(err.Error())
	if errors.Is(err, context.Canceled) {
		text = "stopped"
	}
	lines := s.lines(view.Bad, s.wrap("✗ "+text))
	if p, is := errors.AsType[*client.Problem](err); is {
		for _, w := range p.Errors {
			lines += "\n" + s.style.Paint(view.Dim, "  "+display.OneLine(w.Parameter+": "+w.Detail))
		}
		for _, try := range p.Suggestions {
			if !strings.Contains(try, "/v1/") { // else it is for programs that speak HTTP
				lines += "\n" + s.style.Paint(view.Dim, "  "+display.OneLine(try))
			}
		}
	}
	s.out.block(lines)
}

// tell prints a message of the chat itself, in a dim line.
func (s *Session) tell(format string, args ...any) {
	s.out.block(s.lines(view.Dim, s.wrap(display.OneLineIndented(fmt.Sprintf(format, args...)))))
}

// Note prints a message of another part of the program, in dim lines above the editor.
func (s *Session) Note(text string) {
	s.out.block(s.lines(view.Dim, strings.Trim(display.Safe(text), "\n")))
}

// wrap breaks a line at words for the terminal; without one it stays whole.
func (s *Session) wrap(line string) string {
	if s.o.Display.Size == nil {
		return line
	}
	return ansi.Wrap(line, max(s.o.Display.Columns()-1, 20), "/")
}

// lines paints each line of a text.
func (s *Session) lines(style view.Style, text string) string {
	painted := api.Each(strings.Split(text, "\n"), func(line string) string { return s.style.Paint(style, line) })
	return strings.Join(painted, "\n")
}

// quoted is the number of lines of sent words that are shown, and quotedEnd the number of these that are the last
// ones: a user who pastes a file wants to see that it was sent, not all of it.
const (
	quoted    = 30
	quotedEnd = 5
)

// quote shows words that the user sent.
func (s *Session) quote(text string) {
	lines := strings.Split(display.Safe(text), "\n")
	if over := len(lines) - quoted; over > 0 {
		lines = append(append(lines[:quoted-quotedEnd:quoted-quotedEnd], fmt.Sprintf("… %d more lines …", over)),
			lines[len(lines)-quotedEnd:]...)
	}
	said := s.lines(view.Head, "› "+strings.Join(lines, "\n  "))
	if s.o.Display.Rich {
		said = "\n" + said // a blank line after the earlier answer
	}
	s.out.block(said)
}

// give prints a result: to Options.Result, which a program may read, or else to the screen.
func (s *Session) give(text string) {
	if text = strings.TrimRight(text, "\n"); s.o.Result == nil {
		s.out.block(text)
	} else if text != "" {
		_, _ = io.WriteString(s.o.Result, text+"\n") // a reader that has closed it wants no result
	}
}

// scroll collects the text that is printed above the editor: streamed text, whose last line may be unfinished, and
// blocks of whole lines, which never split that line. It never waits for the terminal. Without a screen it writes
// directly.
type scroll struct {
	mu    sync.Mutex
	above []byte        // whole lines that are not printed yet
	tail  []byte        // the unfinished line
	wake  chan struct{} // holds one token when there is something to draw

	direct io.Writer // nil while a screen draws
	open   bool      // the last line on direct is unfinished
}

func newScroll() *scroll { return &scroll{wake: make(chan struct{}, 1)} }

// Write takes streamed text. A carriage return begins the line again, as count-downs do.
func (s *scroll) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.direct != nil {
		if len(p) > 0 {
			s.open = p[len(p)-1] != '\n' && p[len(p)-1] != '\r'
		}
		return s.direct.Write(p)
	}
	for _, b := range p {
		switch b {
		case '\n':
			s.above = append(append(s.above, s.tail...), '\n')
			s.tail = s.tail[:0]
		case '\r':
			s.tail = s.tail[:0]
		default:
			s.tail = append(s.tail, b)
		}
	}
	s.poke()
	return len(p), nil
}

// block prints whole lines. They come before an unfinished line.
func (s *scroll) block(text string) {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text += "\n"
	if s.direct != nil {
		if s.open {
			text = "\n" + text
		}
		s.open = false
		_, _ = io.WriteString(s.direct, text) // a lost terminal is no reason to stop
		return
	}
	s.above = append(s.above, text...)
	s.poke()
}

func (s *scroll) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// take removes and returns the lines to print, and returns the unfinished line, too.
func (s *scroll) take() (above, tail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	above, tail = string(s.above), string(s.tail)
	s.above = s.above[:0]
	return above, tail
}

// through writes the collected text to w, and all later text, too.
func (s *scroll) through(w io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.direct = w
	rest := append(s.above, s.tail...)
	s.open = len(s.tail) > 0
	s.above, s.tail = nil, nil
	if len(rest) > 0 {
		_, _ = w.Write(rest) // as above
	}
}

// fresh records that the user has ended the line.
func (s *scroll) fresh() {
	s.mu.Lock()
	s.open = false
	s.mu.Unlock()
}
