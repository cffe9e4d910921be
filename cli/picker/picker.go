// Package picker is the screen on which a user looks through all tasks and chooses one: a list that fills while it is
// read, a preview of the task under the cursor, and a search that follows the typing.
//
// Model is pure: a message goes in, a screen comes out, and slow work runs in commands of bubbletea. Model knows no
// store and no file; the interface Backend has what it needs of them. Run shows Model on a terminal and restores the
// terminal, however the screen ends.
//
// Limits: no mouse. The preview is beside the list from 110 columns on, else below it where there are lines enough;
// below 20 columns or 5 lines the screen only asks for a larger window. The package makes the titles and texts of the
// Backend harmless; the terminal orders right-to-left text.
package picker

import (
	"context"
	"iter"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/view"
)

// Run shows the screen until the user leaves it, ctx ends, or it fails. When Run returns, the terminal is restored and
// all background work has ended.
func Run(ctx context.Context, backend Backend, in, out *os.File, o Options) (Choice, error) {
	m := New(ctx, backend, o)
	defer m.Close()
	profile := colorprofile.ANSI // our colours are the terminal's own sixteen
	if !o.Colour {
		profile = colorprofile.Ascii
	}
	if err := term.RunScreen(ctx, m, in, out, nil, tea.WithColorProfile(profile)); err != nil {
		return Choice{}, err
	}
	m.choice.Found = m.Sentence()
	return m.choice, nil
}

// Backend is what the picker needs from the rest of the program. A method that takes a context may be slow, and
// returns soon after the context ends.
type Backend interface {
	// Tasks reads all tasks. Each Found adds to those before it; the last one holds all.
	Tasks(ctx context.Context) iter.Seq2[Found, error]
	// Preview returns the end of a task, or the text around a hit in it.
	Preview(ctx context.Context, t Task, hit *api.Hit) ([]view.Line, error)
	// Search finds tasks by the text of their messages.
	Search(ctx context.Context, text string) ([]api.Hit, error)
	// Open shows a task on the terminal, which no other code uses meanwhile, and returns when the user closes it.
	Open(ctx context.Context, t Task, hit *api.Hit) error
	// Export writes a task in a form of Forms and returns a line that names the file.
	Export(ctx context.Context, t Task, form string) (note string, err error)
	// Delete puts the copy of a task with this key into the trash, or hides it if it is another tool's. Restore takes
	// token to bring it back.
	Delete(ctx context.Context, key string) (token string, err error)
	Restore(ctx context.Context, token string) error
	// Tag adds and removes tags, and returns all tags that the task has afterwards.
	Tag(ctx context.Context, t Task, add, remove []string) ([]string, error)
	// HasFolder reports whether a run could work in this folder.
	HasFolder(dir string) bool

	// Offer reports whether to offer an import of the tasks of other tools, and records the offer: it is made once.
	Offer() bool
	// Import copies all tasks of other tools. It may call tell at any time before it returns.
	Import(ctx context.Context, tell func(progress string)) (note string, err error)
}

// New makes a model. Its commands end with ctx; Close waits for them.
func New(ctx context.Context, backend Backend, o Options) *Model {
	if o.Now == nil {
		o.Now = time.Now
	}
	m := &Model{backend: backend, o: o, crew: term.NewCrew(ctx), gone: map[string]bool{}, picked: map[string]bool{}, width: 80, height: 24}
	m.look.kept = map[string][]view.Line{}
	return m
}

// Close ends the work in the background and waits for it.
func (m *Model) Close() {
	m.crew.Close()
	m.load.end()
}

// Init begins to read the list.
func (m *Model) Init() tea.Cmd { return m.reload() }

// Update applies one message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		cmd = m.key(msg)
	case tea.PasteMsg:
		switch {
		case m.field != nil:
			m.field.text += strings.ReplaceAll(term.Safe(msg.Content), "\r", "")
		case m.query.typing:
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
	case folderMsg:
		cmd = m.resumeIn(msg)
	case doneMsg:
		cmd = m.done(msg)
	case offerMsg:
		if m.act.ask == noQuestion {
			m.act.ask = askImport
		}
	case tickMsg: // redraws while an action reports its progress
		if m.act.progress != nil {
			cmd = m.after(tickEvery, tickMsg{})
		}
	}
	n := max(m.listHeight(), 1) // the cursor stays in view
	m.top = max(min(m.at, max(min(m.top, len(m.rows)-n), 0)), m.at-n+1)
	return m, tea.Batch(cmd, m.wantPreview())
}

func (m *Model) found(msg foundMsg) tea.Cmd {
	l := &m.load
	if !msg.more || msg.err != nil || l.again {
		l.end()
		if l.again {
			return m.reload()
		}
		l.err = msg.err
		return nil
	}
	f := msg.found
	for i, t := range f.Tasks {
		f.Tasks[i].row = rowText(t)
	}
	if l.whole && !f.Whole {
		return m.nextFound() // the earlier whole list is better than a part of the next one
	}
	l.read, l.of, l.sources = f.Read, f.Of, f.Sources
	if !f.Whole {
		m.all = append(m.all, f.Tasks...)
		m.sort()
		return m.nextFound()
	}
	l.whole, m.all = true, f.Tasks
	m.sort()
	return tea.Batch(m.nextFound(), m.offer(), m.searchAgain())
}

// settle is how long the cursor must rest on a row before its task is read: a user who holds the arrow key down
// causes no reads.
const settle = 60 * time.Millisecond

// keptPreviews is how many previews are remembered.
const keptPreviews = 24

type (
	previewMsg   struct{ turn int }
	previewedMsg struct {
		turn int
		of   string
		text []view.Line
		err  error
	}
)

// wantPreview requests the preview of the row under the cursor, if that row has changed and there is room for a
// preview.
func (m *Model) wantPreview() tea.Cmd {
	of := ""
	if t, ok := m.current(); ok && (m.previewWidth() > 0 || m.look.full) {
		of = m.previewOf(t)
	}
	l := &m.look
	if of == l.want {
		return nil
	}
	if l.cancel != nil {
		l.cancel()
		l.cancel = nil
	}
	l.want, l.up = of, 0
	l.turn++
	if _, ok := l.kept[of]; ok || of == "" {
		return nil
	}
	return m.after(settle, previewMsg{l.turn})
}

func (m *Model) readPreview(msg previewMsg) tea.Cmd {
	t, ok := m.current()
	if l := &m.look; ok && msg.turn == l.turn {
		var ctx context.Context
		ctx, l.cancel = context.WithCancel(m.crew.Ctx)
		of, hit := l.want, m.hit(t)
		return m.crew.Do(func() tea.Msg {
			text, err := m.backend.Preview(ctx, t, hit)
			return previewedMsg{msg.turn, of, text, err}
		})
	}
	return nil
}

func (m *Model) previewed(msg previewedMsg) {
	l := &m.look
	if msg.turn != l.turn {
		return // the cursor has moved
	}
	if len(l.kept) >= keptPreviews {
		clear(l.kept)
	}
	if msg.err != nil {
		msg.text = []view.Line{{Style: view.Bad, Text: "the task cannot be read: " + msg.err.Error()}}
	}
	l.kept[msg.of] = msg.text
}
