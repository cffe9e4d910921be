package picker

import (
	"context"
	"iter"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/roost-dev/roost/cli/term"
)

// Verb is what is to be done with a task when the screen has closed.
type Verb string

// The verbs. Choose is for a screen that only asks which task is meant.
const (
	Leave  Verb = ""
	Resume Verb = "resume"
	Choose Verb = "choose"
)

// Choice is how the screen was left.
type Choice struct {
	Verb        Verb
	Task        Task
	Interrupted bool   // by Ctrl-C
	Found       string // the sentence that sums up what was found
}

// Options are the look of the screen and its purpose.
type Options struct {
	Colour bool
	Now    func() time.Time
	// Purpose is what Enter does, in one word, when the screen only asks for a task:
	// resume, show, export. "" = Enter opens the task, and the screen stays.
	Purpose string
	Pager   bool // the Backend can Open; else the screen shows tasks itself
}

// Model is the screen's state.
type Model struct {
	backend       Backend
	o             Options
	crew          *term.Crew
	width, height int

	load  loading
	all   []Task          // everything known, in the order of the list
	gone  map[string]bool // deleted here, by key
	rows  []Task          // what is listed: all that fits the search
	at    int             // the row under the cursor
	top   int             // the first row that is seen
	moved bool            // the person chose the row; else it is the first, whichever that is

	query  query
	look   preview
	act    action
	help   bool
	helpAt int // the first line of the help that is seen, where it has no room for all
	choice Choice
	failed any // what the model or a command panicked with
}

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

// current is the task under the cursor.
func (m *Model) current() (Task, bool) {
	if m.at < 0 || m.at >= len(m.rows) {
		return Task{}, false
	}
	return m.rows[m.at], true
}

// arrange fills rows from what is known and what is searched for. The cursor stays on
// its task.
func (m *Model) arrange() {
	before, had := m.current()
	words := strings.Fields(strings.ToLower(m.query.text))
	m.rows = m.rows[:0:0]
	for _, t := range m.all {
		if m.gone[t.Key] {
			continue
		}
		if _, hit := m.query.hits[t.Key]; hit || holds(t, words) {
			m.rows = append(m.rows, t)
		}
	}
	if !had || !m.moved {
		m.at = 0
		return
	}
	for i, t := range m.rows {
		if t.Key == before.Key {
			m.at = i
			return
		}
	}
	m.at = max(min(m.at, len(m.rows)-1), 0)
}

// holds reports whether a task's row holds every word.
func holds(t Task, words []string) bool {
	if len(words) == 0 {
		return true
	}
	for _, w := range words {
		if !strings.Contains(t.row, w) {
			return false
		}
	}
	return true
}

// move puts the cursor on another row.
func (m *Model) move(to int) {
	m.at = max(min(to, len(m.rows)-1), 0)
	m.moved = m.at > 0
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

// loading is the list while it is read.
type loading struct {
	next     func() (Found, error, bool)
	stop     func()
	cancel   context.CancelFunc
	again    bool // the list is to be read once more
	read, of int
	whole    bool
	sources  []Source
	err      error
}

func (l *loading) end() {
	if l.stop != nil {
		l.cancel()
		l.stop()
		l.stop = nil
	}
}

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
