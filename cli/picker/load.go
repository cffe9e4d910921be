package picker

import (
	"context"
	"iter"
	"strings"

	tea "charm.land/bubbletea/v2"
)

type foundMsg struct {
	found Found
	err   error
	more  bool
}

// reload reads the list again; the one that is shown stays until then.
func (m *Model) reload() tea.Cmd {
	if m.load.stop != nil { // its last word comes, and then the next reading begins
		m.load.again = true
		m.load.cancel()
		return nil
	}
	ctx, cancel := context.WithCancel(m.crew.Ctx)
	m.load.next, m.load.stop = iter.Pull2(m.backend.Tasks(ctx))
	m.load.cancel, m.load.again, m.load.err = cancel, false, nil
	return m.nextFound()
}

func (m *Model) nextFound() tea.Cmd {
	next := m.load.next
	return m.crew.Do(func() tea.Msg {
		found, err, ok := next()
		return foundMsg{found, err, ok}
	})
}

func (m *Model) found(msg foundMsg) tea.Cmd {
	l := &m.load
	if !msg.more || msg.err != nil || l.again {
		l.end()
		if l.again {
			return m.reload()
		}
		if msg.err != nil {
			l.err = msg.err
		}
		return nil
	}
	f := msg.found
	for i, t := range f.Tasks {
		f.Tasks[i].row = strings.ToLower(t.Title + "\n" + t.ID + "\n" + t.Workspace + "\n" + strings.Join(t.Tags, "\n"))
	}
	l.read, l.of, l.sources = f.Read, f.Of, f.Sources
	switch {
	case f.Whole:
		l.whole = true
		m.all = f.Tasks
		m.arrange()
	case !l.whole: // else the list that is shown is better than a part of the next
		m.all = sorted(append(m.all, f.Tasks...))
		m.arrange()
	}
	if f.Whole {
		return tea.Batch(m.nextFound(), m.offer(), m.searchAgain())
	}
	return m.nextFound()
}
