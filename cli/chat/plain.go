package chat

import (
	"bufio"
	"context"
	"io"
	"strings"

	"github.com/roost-dev/roost/cli/term"
)

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
			case lines <- term.Safe(strings.TrimRight(line, "\r\n")):
			case <-over:
				return
			}
		}
		if err != nil {
			return
		}
	}
}
