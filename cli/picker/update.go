package picker

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/roost-dev/roost/cli/term"
)

// New makes a model. Its commands end with ctx; Close waits for them.
func New(ctx context.Context, backend Backend, o Options) *Model {
	if o.Now == nil {
		o.Now = time.Now
	}
	m := &Model{backend: backend, o: o, crew: term.NewCrew(ctx), gone: map[string]bool{}, width: 80, height: 24}
	m.look.kept = map[string]string{}
	return m
}

// Close ends the work in the background and waits for it.
func (m *Model) Close() {
	m.crew.Close()
	m.load.end()
}

// Init begins to read the list.
func (m *Model) Init() tea.Cmd { return m.reload() }

// Update takes one message in.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		cmd = m.key(msg)
	case tea.PasteMsg:
		if m.query.typing {
			cmd = m.setQuery(m.query.text + clean(msg.Content))
		}
	case foundMsg:
		cmd = m.found(msg)
	case searchMsg:
		cmd = m.search(msg)
	case hitsMsg:
		m.hits(msg)
	case previewMsg:
		cmd = m.readPreview(msg)
	case previewedMsg:
		m.previewed(msg)
	case doneMsg:
		cmd = m.done(msg)
	case offerMsg:
		if m.act.ask == noQuestion {
			m.act.ask = askImport
		}
	case tickMsg:
		cmd = m.tick()
	}
	m.keepInView()
	return m, tea.Batch(cmd, m.wantPreview())
}

func (m *Model) keepInView() {
	n := max(m.listHeight(), 1)
	m.top = max(min(m.top, len(m.rows)-n), 0)
	if m.at < m.top {
		m.top = m.at
	}
	if m.at >= m.top+n {
		m.top = m.at - n + 1
	}
}
