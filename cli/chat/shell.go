package chat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/mention"
	"github.com/roost-dev/roost/workspace/terminal"
)

// Bounds of a command's output: what is shown of it as it comes, and of that behind;
// and what a message carries.
const (
	shownLines   = 400
	lastLines    = 20
	lineLength   = 4 << 10 // bytes; a longer one is shown in pieces
	keptOutput   = 1 << 20 // bytes of each end
	carriedLines = 400     // where that many characters are not reached
	carriedChars = 16 << 10
)

// isShell reports whether a text is a command line for a shell: one line after a "!". A pasted text of many lines is
// not, so that no user runs by mistake what they copied. A blank before the "!" makes it words.
func isShell(text string) bool { return strings.HasPrefix(text, "!") && !strings.Contains(text, "\n") }

// shell runs a command line of the user's own in the workspace. It shows the output, and sends it along with the next
// words; after "!!" it only shows it. Without a command it lists what goes along, or drops it.
func (s *Session) shell(ctx context.Context, text string) error {
	line, apart := strings.CutPrefix(text[1:], "!")
	if line = strings.TrimSpace(line); line == "" {
		s.outputs(apart)
		return nil
	}
	dir := s.workspace(ctx)
	if dir == "" {
		return errors.New("the task has no workspace to run it in")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.running(cancel)
	out := &output{show: func(text string) { s.out.block(text) }}
	ran, err := s.backend.Shell(ctx, dir, line, out)
	out.end()
	s.running(nil)
	if err != nil {
		return err
	}
	how := ending(ran)
	if apart || s.ctx.Err() != nil {
		s.tell("· %s", strings.Join(how, ", "))
		return nil
	}
	carried := carriedOutput{line, s.carry(dir, line, out.text(), ran)}
	s.locked(func() { s.carried = append(s.carried, carried) })
	s.tell("· %s", strings.Join(append(how, "goes along with your next words (!! leaves it out)"), ", "))
	return nil
}

// running notes what ends the command that runs; nil when none does.
func (s *Session) running(end context.CancelFunc) {
	s.change(func(st *state) { st.Command, s.command = end != nil, end })
}

// ending describes in words how a command line ended.
func ending(r Ran) []string {
	how := []string{"done"}
	switch {
	case r.Cancelled:
		how[0] = "stopped"
	case r.Exit != 0:
		how[0] = fmt.Sprintf("exit code %d", r.Exit)
	}
	if r.Ended > 0 {
		how = append(how, fmt.Sprintf("%d of its processes were left behind and ended", r.Ended))
	}
	if r.Took >= time.Second {
		how = append(how, display.Duration(r.Took))
	}
	return how
}

// carry is what the model gets of a command line and its output. Secrets are hidden as in the output of a tool. What
// reads as a mention or a slash command is none there: the user has not typed it.
func (s *Session) carry(dir, line, output string, r Ran) string {
	output = terminal.Erase(terminal.Overwrite(terminal.Plain(strings.ToValidUTF8(output, "\uFFFD"))))
	output = terminal.Truncate(strings.TrimRight(output, " \t\r\n"), carriedLines, carriedChars)
	head := "$ " + line
	text := s.backend.Mask(output)
	if text != "" {
		text += "\n"
	}
	end := fmt.Sprintf("exit code %d", r.Exit)
	if r.Cancelled {
		end = "stopped by the person"
	}
	fence := "```"
	for strings.Contains(text, fence) || strings.Contains(head, fence) {
		fence += "`"
	}
	return "What I ran in " + dir + ", and its output:\n" + fence + "\n" + literally(head) + "\n" + literally(text) + "(" +
		end + ")\n" + fence
}

// literally puts a "\" before what would be a mention or a slash command. A mention may
// hide another one behind a blank that is escaped, so it looks until there is none.
func literally(text string) string {
	for {
		marks := map[int]bool{}
		for _, m := range mention.Scan(text) {
			marks[m.At] = true
		}
		for _, c := range mention.Commands(text) {
			marks[c.At] = true
		}
		if len(marks) == 0 {
			return text
		}
		var out strings.Builder
		for i := range len(text) {
			if marks[i] {
				out.WriteByte('\\')
			}
			out.WriteByte(text[i])
		}
		text = out.String()
	}
}

// outputs lists what goes along with the next words, or drops it.
func (s *Session) outputs(drop bool) {
	var list []carriedOutput
	verb := "goes along"
	s.locked(func() {
		if list = s.carried; drop {
			s.carried, verb = nil, "left out"
		}
	})
	if len(list) == 0 {
		s.tell("no output goes along with the next words; !COMMAND runs one in the workspace")
	}
	for _, c := range list {
		s.tell("%s: $ %s", verb, c.line)
	}
}

// short is what the chat shows of words that were sent: those that the user typed. The output is on the screen
// already.
func (s *Session) short(whole string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text, ok := s.brief[whole]; ok {
		return text
	}
	return whole
}

// output takes what a command prints: a line at a time is shown, and both ends are kept.
type output struct {
	show func(string)

	mu    sync.Mutex
	line  []byte // not finished
	lines int    // that were shown, or were too many for it
	last  []string
	head  []byte
	tail  []byte
	cut   bool
}

// Write takes what was printed.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keep(p)
	var ready []string
	for rest := p; len(rest) > 0; {
		line, more, whole := bytes.Cut(rest, []byte("\n"))
		o.line, rest = append(o.line, line...), more
		if whole || len(o.line) > lineLength {
			if text, ok := o.next(); ok {
				ready = append(ready, text)
			}
		}
	}
	if len(ready) > 0 {
		o.show(strings.Join(ready, "\n"))
	}
	return len(p), nil
}

// next returns the next finished line that can be shown now.
func (o *output) next() (string, bool) {
	text := Safe(strings.TrimRight(terminal.Erase(terminal.Overwrite(terminal.Plain(string(o.line)))), " \r"))
	o.line = o.line[:0]
	o.lines++
	if o.lines <= shownLines {
		if text == "" {
			text = " " // an empty block is none
		}
		return text, true
	}
	if o.last = append(o.last, text); len(o.last) > lastLines {
		o.last = o.last[1:]
	}
	return "", false
}

func (o *output) keep(p []byte) {
	if room := keptOutput - len(o.head); room > 0 {
		n := min(room, len(p))
		o.head, p = append(o.head, p[:n]...), p[n:]
	}
	o.tail = append(o.tail, p...)
	if over := len(o.tail) - keptOutput; over > keptOutput { // not for each piece
		o.tail = append(o.tail[:0], o.tail[over:]...)
		o.cut = true
	}
}

// end shows the rest: the line that was not finished, and the last ones.
func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.line) > 0 {
		if text, ok := o.next(); ok {
			o.show(text)
		}
	}
	if left := o.lines - shownLines - len(o.last); left > 0 {
		o.show(fmt.Sprintf("… %d lines are not shown …", left))
	}
	if len(o.last) > 0 {
		o.show(strings.Join(o.last, "\n"))
	}
}

// text is what was printed; of much, both ends.
func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.cut {
		return string(o.head) + string(o.tail)
	}
	return string(o.head) + "\n[... much output is left out ...]\n" + string(o.tail)
}

// along is the row above the editor about outputs that go along.
func (s *Session) along() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n := len(s.carried); n {
	case 0:
		return ""
	case 1:
		return "· one output goes along with your next words"
	default:
		return fmt.Sprintf("· %d outputs go along with your next words", n)
	}
}
