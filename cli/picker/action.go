package picker

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
)

type doneMsg struct {
	note   string
	err    error
	change func(*Model) tea.Cmd // what is different now; nil = nothing, or it failed
}

type tickMsg struct{}

// begin does something that takes time.
func (m *Model) begin(doing string, f func(context.Context) doneMsg) tea.Cmd {
	var ctx context.Context
	ctx, m.act.cancel = context.WithCancel(m.crew.Ctx)
	m.act.doing = doing
	return m.crew.Do(func() tea.Msg { return f(ctx) })
}

func (m *Model) done(msg doneMsg) tea.Cmd {
	a := &m.act
	if a.cancel != nil {
		a.cancel()
	}
	a.doing, a.cancel, a.progress = "", nil, nil
	a.note, a.bad = msg.note, msg.err != nil
	if msg.err != nil {
		if a.note = msg.err.Error(); errors.Is(msg.err, context.Canceled) {
			a.note = "stopped"
		}
	}
	var cmd tea.Cmd
	if msg.change != nil {
		a.changed = true
		cmd = msg.change(m)
		m.arrange()
	}
	return cmd
}

// free reports whether an action can begin, and shows a note when it cannot.
func (m *Model) free() bool {
	if m.act.doing != "" {
		m.act.note, m.act.bad = "still busy: "+m.act.doing, true
		return false
	}
	return true
}

func (m *Model) remove(t Task) tea.Cmd {
	return m.begin("deleting", func(ctx context.Context) doneMsg {
		token, err := m.backend.Delete(ctx, t)
		if err != nil {
			return doneMsg{err: err}
		}
		return doneMsg{note: "deleted: " + name(t) + " · u takes it back", change: func(m *Model) tea.Cmd {
			m.gone[t.Key] = true
			m.act.deleted = append(m.act.deleted, deletion{t, token})
			if t.Copied {
				return m.reload() // the same task elsewhere is a row now
			}
			return nil
		}}
	})
}

func (m *Model) undo() tea.Cmd {
	if len(m.act.deleted) == 0 {
		m.act.note, m.act.bad = "nothing was deleted here; roost trash list shows what was before", false
		return nil
	}
	last := m.act.deleted[len(m.act.deleted)-1]
	return m.begin("putting back", func(ctx context.Context) doneMsg {
		if err := m.backend.Restore(ctx, last.token); err != nil {
			return doneMsg{err: err}
		}
		return doneMsg{note: "put back: " + name(last.task), change: func(m *Model) tea.Cmd {
			delete(m.gone, last.task.Key)
			m.act.deleted = m.act.deleted[:len(m.act.deleted)-1]
			if !slices.ContainsFunc(m.all, func(t Task) bool { return t.Key == last.task.Key }) {
				m.all = sorted(append(m.all, last.task)) // the list was read while it was away
			}
			m.arrange()
			for i, t := range m.rows {
				if t.Key == last.task.Key {
					m.move(i)
				}
			}
			if last.task.Copied {
				return m.reload()
			}
			return nil
		}}
	})
}

func (m *Model) export(t Task, form string) tea.Cmd {
	return m.begin("exporting", func(ctx context.Context) doneMsg {
		note, err := m.backend.Export(ctx, t, form)
		return doneMsg{note: note, err: err}
	})
}

type offerMsg struct{}

// offer asks once whether to import, when the list is whole.
func (m *Model) offer() tea.Cmd {
	n := 0
	for _, t := range m.all {
		if t.Foreign && !t.Copied {
			n++
		}
	}
	if m.act.offered || n == 0 || m.o.Purpose != "" {
		return nil
	}
	m.act.offered, m.act.foreign = true, n
	return m.crew.Do(func() tea.Msg {
		if m.backend.Offer() {
			return offerMsg{}
		}
		return nil
	})
}

func (m *Model) importAll() tea.Cmd {
	report := new(progress)
	cmd := m.begin("importing", func(ctx context.Context) doneMsg {
		text, err := m.backend.Import(ctx, report.say)
		return doneMsg{note: text, err: err, change: (*Model).reload} // what was copied before it failed is there
	})
	m.act.progress = report
	return tea.Batch(cmd, m.after(tickEvery, tickMsg{}))
}

const tickEvery = 100 * time.Millisecond

// tick redraws while an action reports its progress.
func (m *Model) tick() tea.Cmd {
	if m.act.progress == nil {
		return nil
	}
	return m.after(tickEvery, tickMsg{})
}

// open shows a task in the person's pager, and then this screen again; without a
// pager the preview takes the whole screen.
func (m *Model) open(t Task) tea.Cmd {
	if !m.o.Pager {
		m.look.full, m.look.up = true, 0
		return nil
	}
	hit := m.hit(t)
	return tea.Exec(shown{func() error { return m.backend.Open(m.crew.Ctx, t, hit) }}, func(err error) tea.Msg {
		return doneMsg{err: err}
	})
}

// shown makes a function of what bubbletea runs with the terminal to itself.
type shown struct{ run func() error }

func (s shown) Run() error        { return s.run() }
func (shown) SetStdin(io.Reader)  {}
func (shown) SetStdout(io.Writer) {}
func (shown) SetStderr(io.Writer) {}

func name(t Task) string {
	if title := clean(t.Title); title != "" {
		return cut(title, 40)
	}
	return clean(t.ID)
}
