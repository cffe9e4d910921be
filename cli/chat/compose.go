package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
)

// composed is most of what an editor's file may hold, in bytes.
const composed = 4 << 20

// composedMsg is what came of writing in the person's own editor.
type composedMsg struct {
	text   string
	err    error // the text is as it was
	gone   error // the terminal could not be taken again
	asking bool  // it was written for the question that was open
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
	c.before = func() {
		m.cook()
		if m.s.o.Away != nil {
			c.back = m.s.o.Away()
		}
	}
	c.after = func() {
		if c.back != nil {
			c.back()
		}
		gone = m.raw()
	}
	m.paint.leave(m.paint.width)
	m.away = true
	asking := m.asking
	return tea.Exec(c, func(err error) tea.Msg { return composedMsg{c.text, err, gone, asking} })
}

// wrote takes in what was written. It does not send it: checking it first costs an Enter. A question that came while
// the editor was open is not what it answers.
func (m *model) wrote(msg composedMsg) {
	m.away = false
	switch {
	case msg.gone != nil:
		m.failed = msg.gone
	case msg.err != nil:
		m.hint = msg.err.Error() + "; the text is as it was"
	case m.asking && !msg.asking:
		m.draft = msg.text
		m.hint = "a question came: what you wrote comes back behind it"
	default:
		if msg.asking && !m.asking {
			m.hint = "the question is answered; this was written for it"
		}
		if !msg.asking {
			m.draft = "" // it was given to the editor
		}
		m.ed.set("")
		m.ed.insert(msg.text)
	}
	m.due = true
}

// composer runs an editor on a text, in a file for its owner alone, and removes the file afterwards, with what
// editors leave next to it.
type composer struct {
	ctx    context.Context //nolint:containedctx // of the chat: its end is the editor's
	editor string          // a command of the shell, as $EDITOR is one
	in     io.Reader
	out    io.Writer
	text   string // what is there, and then what was written

	before, after, back func()
}

// SetStdin and the other setters are of tea.ExecCommand. The editor gets the chat's terminal, not bubbletea's
// streams.
func (c *composer) SetStdin(io.Reader)  {}
func (c *composer) SetStdout(io.Writer) {}
func (c *composer) SetStderr(io.Writer) {}

// Run lets the person write.
func (c *composer) Run() error {
	c.before()
	defer c.after()
	text, err := c.write()
	if err != nil {
		return fmt.Errorf("write in %s: %w", c.editor, err)
	}
	c.text = text
	return nil
}

func (c *composer) write() (text string, err error) {
	dir, err := os.MkdirTemp("", "roost-chat-") // made 0700
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	name := filepath.Join(dir, "message.md")
	if err := os.WriteFile(name, []byte(c.text), 0o600); err != nil {
		return "", err
	}
	// The shell takes the editor's own arguments apart, as for git and crontab. The editor
	// then takes its place, so that a signal for the one is for the other: env stands for
	// assignments in front, which exec alone does not know.
	cmd := exec.CommandContext(c.ctx, "/bin/sh", "-c", "exec env "+c.editor+` "$@"`, c.editor, name)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.in, c.out, c.out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 2 * time.Second
	if err := cmd.Run(); err != nil {
		return "", err
	}
	f, err := os.Open(name)
	if err != nil {
		return "", errors.New("the editor removed the file; type the message again")
	}
	data, err := io.ReadAll(io.LimitReader(f, composed+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	if len(data) > composed {
		return "", fmt.Errorf("more than %d MB were written", composed>>20)
	}
	return strings.TrimRight(strings.ToValidUTF8(string(data), "\uFFFD"), " \t\r\n"), nil
}
