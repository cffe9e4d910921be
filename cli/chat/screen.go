package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/view"
)

// composed is the largest file that an editor may write, in bytes.
const composed = 4 << 20

// composedMsg is the text that the user wrote in their own editor, or an error.
type composedMsg struct {
	text   string
	err    error // with an error, the text is unchanged
	gone   error // why the chat could not take the terminal again
	asking bool  // the text was written for the question that was open
}

// compose is Ctrl-G: the user writes the message in an editor of their own. The chat draws nothing until the editor
// has ended, and then prints what runs have written in that time.
func (m *model) compose() tea.Cmd {
	c := &composer{ctx: m.s.ctx, editor: m.s.o.Editor, in: m.in, out: m.tty, text: m.ed.String()}
	if c.editor == "" {
		m.hint = "set $VISUAL or $EDITOR to write in an editor"
		return nil
	}
	var gone error
	back := func() {}
	c.before = func() {
		m.cook()
		if m.s.o.Away != nil {
			back = m.s.o.Away()
		}
	}
	c.after = func() {
		back()
		gone = m.raw()
	}
	m.paint.leave(m.paint.width)
	m.away = true
	asking := m.asking
	return tea.Exec(display.Alone(c.Run), func(err error) tea.Msg { return composedMsg{c.text, err, gone, asking} })
}

// wrote puts the written text into the editor of the chat. It does not send the text: checking the text first costs one
// Enter. The text does not answer a question that came while the user's editor was open.
func (m *model) wrote(msg composedMsg) {
	m.away, m.shown = false, m.now()
	switch {
	case msg.gone != nil:
		m.failed = msg.gone
	case msg.err != nil:
		m.hint = msg.err.Error() + "; the text is as it was"
	case m.asking && !msg.asking:
		m.draft = msg.text
		m.hint = "a question came: what you wrote comes back after it"
	default:
		if msg.asking && !m.asking {
			m.hint = "the question is answered already; you wrote this text for it"
		}
		if !msg.asking {
			m.draft = "" // the user's editor had it
		}
		m.ed.set(msg.text)
	}
	m.due = true
}

// composer runs an editor on a text in a private file. Afterwards it removes the file, and the files that editors
// leave next to it.
type composer struct {
	ctx    context.Context //nolint:containedctx // of the chat: the editor ends with it
	editor string          // a command of the shell, as $EDITOR is one
	in     io.Reader
	out    io.Writer
	text   string // the text to edit, and afterwards the edited one

	before, after func()
}

// Run runs the editor.
func (c *composer) Run() error {
	c.before()
	defer c.after()
	return api.Failed(c.write(), "write in %s", c.editor)
}

func (c *composer) write() (err error) {
	dir, err := os.MkdirTemp("", "roost-chat-") // made 0700
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	name := filepath.Join(dir, "message.md")
	if err := os.WriteFile(name, []byte(c.text), 0o600); err != nil {
		return err
	}
	// The shell takes the editor's own arguments apart, as for git and crontab. The editor
	// then takes its place, so that a signal for the one is for the other: env stands for
	// assignments in front, which exec alone does not know.
	cmd := exec.CommandContext(c.ctx, "/bin/sh", "-c", "exec env "+c.editor+` "$@"`, c.editor, name)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.in, c.out, c.out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 2 * time.Second
	if err := cmd.Run(); err != nil {
		return err
	}
	f, err := inputfile.Open(name)
	if err != nil {
		return errors.New("the editor removed the file; type the message again")
	}
	data, err := io.ReadAll(io.LimitReader(f, composed+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if len(data) > composed {
		return fmt.Errorf("the text is longer than %d MB; shorten it", composed>>20)
	}
	c.text = strings.TrimRight(strings.ToValidUTF8(string(data), "\uFFFD"), " \t\r\n")
	return nil
}

// row is one row below the printed lines. Its text may hold colours, and is narrower
// than the terminal.
type row string

func (r row) columns() int { return ansi.StringWidth(string(r)) }

// rows are all rows below the printed lines, with the position of the cursor.
type rows struct {
	list []row
	y, x int // of the cursor
}

// painter draws rows below the printed lines, and prints above them.
type painter struct {
	w     io.Writer
	width int // of the terminal when the rows were drawn last
	last  rows
	drawn bool
}

// draw prints lines, and draws the rows below them. Everything goes out at once, so that
// a terminal shows nothing in between.
func (p *painter) draw(above string, r rows, width int) {
	if p.drawn && above == "" && width == p.width && same(p.last, r) {
		return
	}
	var out strings.Builder
	out.WriteString("\x1b[?2026h\x1b[?25l")
	p.erase(&out, width)
	out.WriteString(strings.ReplaceAll(above, "\n", "\r\n"))
	for i, line := range r.list {
		if i > 0 {
			out.WriteString("\r\n")
		}
		out.WriteString(string(line))
	}
	if up := len(r.list) - 1 - r.y; up > 0 {
		fmt.Fprintf(&out, "\x1b[%dA", up)
	}
	out.WriteByte('\r')
	if r.x > 0 {
		fmt.Fprintf(&out, "\x1b[%dC", r.x)
	}
	out.WriteString("\x1b[?25h\x1b[?2026l")
	_, _ = io.WriteString(p.w, out.String()) // a lost terminal is no reason to stop
	p.last, p.width, p.drawn = r, width, true
}

// erase removes the rows. A terminal that became narrower has wrapped them.
func (p *painter) erase(out *strings.Builder, width int) {
	if !p.drawn {
		return
	}
	up := 0
	for _, line := range p.last.list[:p.last.y] {
		up += wrapped(line.columns(), width)
	}
	if up += wrapped(p.last.x+1, width) - 1; up > 0 {
		fmt.Fprintf(out, "\x1b[%dA", up)
	}
	// Some terminals (tmux) keep the page in their history when a program clears the whole screen from its first place:
	// each key would leave a copy of the rows above.
	switch {
	case width != p.width:
		out.WriteString("\r\x1b[J")
	case len(p.last.list) > 1:
		out.WriteString("\r\x1b[K\x1b[B\x1b[J\x1b[A")
	default:
		out.WriteString("\r\x1b[K")
	}
}

// leave removes the rows and puts the cursor below the printed lines.
func (p *painter) leave(width int) {
	var out strings.Builder
	p.erase(&out, width)
	_, _ = io.WriteString(p.w, out.String()) // as above
	p.drawn = false
}

// wrapped returns how many rows of the terminal a line of columns columns takes.
func wrapped(columns, width int) int {
	if width <= 0 {
		return 1
	}
	return max((columns+width-1)/width, 1)
}

func same(a, b rows) bool { return a.y == b.y && a.x == b.x && slices.Equal(a.list, b.list) }

// hard breaks a line with colours into rows of less than width columns, between words where it can.
func hard(line string, width int) []row {
	var out []row
	for _, part := range strings.Split(ansi.Wrap(strings.ReplaceAll(line, "\t", "    "), max(width-1, 1), ""), "\n") {
		if strings.ContainsRune(part, 0x1b) {
			part += "\x1b[0m"
		}
		out = append(out, row(part))
	}
	return out
}

// typed lays out the text of an editor after a prompt; further lines begin with more. If there are more than most
// rows, it returns those around the cursor.
func typed(prompt, more string, ed *editor, width, most int) rows {
	at := ed.at
	r := rows{list: []row{}}
	room := max(width-1, 4)
	var line strings.Builder
	line.WriteString(prompt)
	used := ansi.StringWidth(prompt)
	next := func(lead string) {
		r.list = append(r.list, row(line.String()))
		line.Reset()
		line.WriteString(lead)
		used = ansi.StringWidth(lead)
	}
	for i, c := range ed.text {
		shown := string(c)
		if c >= firstLong {
			shown = ed.shown(c)
		}
		n := display.Columns(shown)
		if c != '\n' && used+n > room && used > 0 {
			next("")
			shown = display.Cut(shown, room)
			n = min(n, room)
		}
		if i == at {
			r.y, r.x = len(r.list), used
		}
		if c == '\n' {
			next(more)
			continue
		}
		line.WriteString(shown)
		used += n
	}
	if at >= len(ed.text) {
		r.y, r.x = len(r.list), used
	}
	r.list = append(r.list, row(line.String()))
	if over := len(r.list) - most; most > 0 && over > 0 {
		from := max(min(r.y-most/2, over), 0)
		r.list, r.y = r.list[from:from+most], r.y-from
	}
	return r
}

// cut shortens a line to a row, and paints it.
func cut(style display.Style, how view.Style, text string, width int) row {
	return row(style.Paint(how, display.Cut(display.OneLineIndented(text), max(width-1, 1))))
}
