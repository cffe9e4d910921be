package chat

import (
	"io"
	"strings"
	"sync"

	display "github.com/roost-dev/roost/cli/term"
)

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
