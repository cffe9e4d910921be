package chat

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

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
	if p, is := errors.AsType[*client.Problem](err); is {
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
	s.out.block(s.lines(view.Dim, strings.Trim(Safe(text), "\n")))
}

// lines paints each line of a text.
func (s *Session) lines(style view.Style, text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = s.style.Paint(style, line)
	}
	return strings.Join(lines, "\n")
}

// echo shows words of the person's that were typed here. A terminal that shows what is
// typed by itself needs none.
func (s *Session) echo(text string) {
	echoes := false
	s.locked(func() { echoes = s.echoes })
	if echoes {
		s.quote(text)
	}
}

// quoted is how many lines of a person's words are shown again, quotedEnd how many of
// them are the last: a user who pastes a file wants to see that it was sent, not all of it.
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
	s.out.block(s.lines(view.Head, "› "+strings.Join(lines, "\n  ")))
}

// give prints a result: on a stream of its own where a program reads only that.
func (s *Session) give(text string) {
	if text = strings.TrimRight(text, "\n"); s.o.Result == nil {
		s.out.block(text)
	} else if text != "" {
		_, _ = io.WriteString(s.o.Result, text+"\n") // a reader that has closed it wants no result
	}
}

// scroll takes what goes above the editor: streamed text, of which the last line may be unfinished, and blocks of
// whole lines, which never split that line. It never waits for the terminal. Without a screen it writes through.
type scroll struct {
	mu    sync.Mutex
	above []byte        // whole lines that are not printed yet
	tail  []byte        // the unfinished line
	wake  chan struct{} // holds one token when there is something to draw

	direct io.Writer // nil while a screen draws
	open   bool      // the last line on direct is unfinished
}

func newScroll() *scroll { return &scroll{wake: make(chan struct{}, 1)} }

// Write takes streamed text. A carriage return starts the line over, as count-downs do.
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

// block prints whole lines. They come before a line that is not finished.
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

// take gives what is to be printed, and the line that is not finished.
func (s *scroll) take() (above, tail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	above, tail = string(s.above), string(s.tail)
	s.above = s.above[:0]
	return above, tail
}

// through lets everything be written to w from now on.
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

// fresh notes that the person ended the line.
func (s *scroll) fresh() {
	s.mu.Lock()
	s.open = false
	s.mu.Unlock()
}

// Safe is text of commands and people as the terminal may get it.
func Safe(text string) string { return display.Safe(text) }

// lineBytes bounds a line that is read.
const lineBytes = 16 << 20

// Plain reads lines and carries them out one after the other: it reads the next one when the run has ended. Without a
// terminal the writer of the lines did not see the questions, so no line answers one: only /answer does, and any
// other line ends the chat with a *WaitingError. A line that fails ends it with a *LineError.
//
// A read cannot be cancelled: the goroutine that reads lives until its next line, or the input's end.
func (s *Session) Plain(ctx context.Context, in io.Reader, out io.Writer, terminal bool) error {
	s.out.through(out)
	lines, over := make(chan string), make(chan struct{})
	defer close(over)
	go read(in, lines, over)
	text, begun := "", false
	for {
		if err := s.until(ctx, still); err != nil {
			return err
		}
		st := s.state()
		switch {
		case st.Over:
			return nil
		case !terminal && s.failure() != nil:
			return s.failure()
		case terminal && begun:
			_, _ = io.WriteString(s.out, "… ") // a lost terminal is noticed at the next read
		case terminal && !st.Asking:
			_, _ = io.WriteString(s.out, "› ")
		}
		var line string
		var more bool
		select {
		case line, more = <-lines:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if terminal {
			s.out.fresh()
		}
		if !more && !begun {
			if st.Waiting && !terminal {
				return &WaitingError{st.Task}
			}
			return nil
		}
		if begun {
			line = text + "\n" + line
		}
		text = line
		ours := isCommand(text) || s.o.Ask && isShell(text)
		begun = more && !s.state().Asking && !ours && unfinished(text)
		if begun {
			continue
		}
		if st.Waiting && !terminal && strings.TrimSpace(text) != "" && !isCommand(text) {
			return &WaitingError{st.Task}
		}
		if !st.Asking || ours || !s.Reply(text) {
			s.Line(text)
		}
	}
}

// failure is the error of the last line that was carried out; nil when it succeeded.
func (s *Session) failure() (err error) {
	s.locked(func() {
		if s.wrong != nil {
			err = s.wrong
		}
	})
	return err
}

// still reports whether nothing works that the user waits for.
func still(st state) bool {
	return st.Over || st.Asking || !st.Busy && (!st.Working || st.Waiting)
}

func read(in io.Reader, lines chan<- string, over <-chan struct{}) {
	defer close(lines)
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadString('\n')
		if line != "" && len(line) <= lineBytes {
			select {
			case lines <- Safe(strings.TrimRight(line, "\r\n")):
			case <-over:
				return
			}
		}
		if err != nil {
			return
		}
	}
}
