// Package picker is the screen on which a person looks through all tasks and
// chooses one: a list that fills while it is read, a preview of the task under the
// cursor, and search while one types.
//
// Model is pure: a message goes in, a screen comes out, and what takes time is a
// command that runs beside it. It knows nothing of stores and files; what it needs
// of them is the interface Backend. Run puts it on a terminal and gives the terminal
// back as it was, whichever way it ends.
//
// Limits: no mouse. The preview is beside the list from 110 columns on, else below it where there are lines enough;
// below 20 columns or 5 lines there is no more than a request for room. What the Backend gives of titles and texts is
// made harmless here; the order of right-to-left text is the terminal's business.
package picker

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/view"
)

// ErrPanic: a bug in Roost ended the screen. The terminal is as it was.
var ErrPanic = errors.New("the picker failed")

// Run shows the screen until the person leaves it, ctx ends, or it fails. The
// terminal is as it was, and everything that was begun has ended, when it returns.
func Run(ctx context.Context, backend Backend, in, out *os.File, o Options) (Choice, error) {
	m := New(ctx, backend, o)
	defer m.Close()
	profile := colorprofile.ANSI // our colours are the terminal's own sixteen
	if !o.Colour {
		profile = colorprofile.Ascii
	}
	// Signals are the caller's: it knows which exit code belongs to which. The context ends the screen as the user
	// would: given the context, bubbletea would leave its reader of the terminal behind.
	var p *tea.Program
	g := &term.Guard{Screen: m, Failed: func(what any) { m.failed = what }, Quit: func() { p.Quit() }}
	defer g.Wait()
	p = tea.NewProgram(g, tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler(), tea.WithColorProfile(profile))
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		p.Quit()
	})
	_, err := p.Run()
	if !stop() {
		<-ended // it gives up when the program has ended
	}
	switch {
	case ctx.Err() != nil:
		return Choice{}, ctx.Err()
	case m.failed != nil:
		return Choice{}, fmt.Errorf("%w: %v", ErrPanic, m.failed)
	case errors.Is(err, tea.ErrProgramPanic):
		return Choice{}, ErrPanic
	case err != nil:
		return Choice{}, fmt.Errorf("show the picker: %w", err)
	}
	m.choice.Found = m.Sentence()
	return m.choice, nil
}

// Backend is what the picker needs of the world. Everything that takes a context may
// take its time, and ends soon after the context does.
type Backend interface {
	// Tasks reads all tasks. Each Found adds to those before it; the last one holds all.
	Tasks(ctx context.Context) iter.Seq2[Found, error]
	// Preview is the end of a task, or the text around a hit in it.
	Preview(ctx context.Context, t Task, hit *Hit) ([]view.Line, error)
	// Search finds tasks by the text of their messages.
	Search(ctx context.Context, text string) ([]Hit, error)
	// Open shows a task on the terminal, which it has for itself, and returns when the
	// person has seen enough.
	Open(ctx context.Context, t Task, hit *Hit) error
	// Export writes a task in a form of Forms and returns a line that names the file.
	Export(ctx context.Context, t Task, form string) (note string, err error)
	// Delete puts the copy of a task that the key names into the trash, or hides it where it is another tool's; token
	// gets it back.
	Delete(ctx context.Context, key string) (token string, err error)
	Restore(ctx context.Context, token string) error
	// Tag adds and removes tags, and returns all that the task has then.
	Tag(ctx context.Context, t Task, add, remove []string) ([]string, error)
	// HasFolder reports whether a run could work in this folder.
	HasFolder(dir string) bool

	// Offer reports whether to offer an import of the tasks of other tools, and remembers
	// that it was offered: that is done once.
	Offer() bool
	// Import copies all tasks of other tools. It may call tell at any time before it returns.
	Import(ctx context.Context, tell func(progress string)) (note string, err error)
}

// Task is one row.
type Task struct {
	api.Summary
	Key   string // names the task to the Backend; unique
	Where string // its source, for people: an editor and a tool
	Also  []Copy // the same task in other storages

	row string // what a search of rows looks at, in small letters
}

// Copy is the same task in another storage.
type Copy struct{ Key, Where string }

// foreign reports whether a name of a task belongs to a storage of another tool: deleting it hides it.
func foreign(key string) bool { return !strings.HasPrefix(key, api.OwnSource+":") }

// waits reports whether a question of the task waits for the person.
func (t Task) waits() bool { return t.OpenQuestions > 0 }

// folder is the last part of the task's folder, on any system.
func (t Task) folder() string {
	parts := strings.FieldsFunc(t.Workspace, func(r rune) bool { return r == '/' || r == '\\' })
	if len(parts) == 0 {
		return ""
	}
	return parts[len(parts)-1]
}

// Found is what is known of all tasks at one moment.
type Found struct {
	Tasks    []Task // those that are new; of the last one all, in their order
	Sources  []Source
	Read, Of int
	Whole    bool // the last one
}

// Source is one storage in the sentence that sums up what was found.
type Source struct {
	Name                  string
	Tasks, Damaged, Empty int
	Trouble               string // why it could not be looked into; "" when it could
}

// Hit is a message that holds what was searched for.
type Hit struct {
	Key     string // of its task
	History string // ui or api
	Number  int    // its place there, from 1
	Text    string // one line
}

// Forms are the forms of an export, by their keys.
var Forms = []struct{ Key, Form, Name string }{
	{"m", "md", "Markdown"}, {"h", "html", "HTML"}, {"j", "json", "JSON"}, {"r", "roo", "Roo folder"}, {"a", "archive", "archive"},
}

// Verb is what is to be done with a task when the screen has closed.
type Verb string

// The verbs. Choose is for a screen that only asks which task is meant.
const (
	Leave  Verb = ""
	Resume Verb = "resume"
	Choose Verb = "choose"
	Begin  Verb = "begin" // a new task in the current folder
)

// Choice is how the screen was left.
type Choice struct {
	Verb        Verb
	Task        Task
	Folder      string // to resume in; "" = the task's own
	Words       string // what a new task begins with; "" = the chat asks
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
	Pager   bool   // the Backend can Open; else the screen shows tasks itself
	Dir     string // the current folder, absolute
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
	narrow filter
	sorts  int             // the place in orders of how the list is sorted
	picked map[string]bool // the tasks that are selected, by key
	menu   *menu           // what is chosen from; nil = nothing
	field  *field          // the line that is typed; nil = none
	look   preview
	act    action
	help   bool
	helpAt int // the first line of the help that is seen, where it has no room for all
	choice Choice
	failed any // what the model or a command panicked with
}

// current is the task under the cursor.
func (m *Model) current() (Task, bool) {
	if m.at < 0 || m.at >= len(m.rows) {
		return Task{}, false
	}
	return m.rows[m.at], true
}

// rowOf is the row of a task, -1 when it is not listed.
func (m *Model) rowOf(key string) int {
	return slices.IndexFunc(m.rows, func(t Task) bool { return t.Key == key })
}

// move puts the cursor on another row.
func (m *Model) move(to int) {
	m.at = max(min(to, len(m.rows)-1), 0)
	m.moved = m.at > 0
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

// query is what is searched for.
type query struct {
	text   string
	typing bool
	turn   int // counts the changes of text: what belongs to an older one is outdated
	cancel context.CancelFunc
	busy   bool
	hits   map[string]Hit // the first of each task, by its key
	count  map[string]int // hits of each task
	words  *regexp.Regexp // finds what is searched for, to mark it; nil = nothing
	err    error
}

// preview is the end of the task under the cursor.
type preview struct {
	want   string // what it is of; "" = of nothing
	turn   int
	cancel context.CancelFunc
	kept   map[string][]view.Line // what was read, by what it is of
	up     int                    // lines that it was scrolled up from its end
	full   bool                   // it has the whole screen

	lines   []string // of the one that is shown, as wide as that is
	linesOf string
	columns int
	words   string // that are marked in them
}

// hit is what a search found in a task, nil when it found nothing in its messages.
func (m *Model) hit(t Task) *Hit {
	if h, ok := m.query.hits[t.Key]; ok {
		return &h
	}
	return nil
}

// question is what the next key answers.
type question string

const (
	noQuestion question = ""
	askDelete  question = "delete"
	askForm    question = "form"
	askImport  question = "import" // the offer: any other key does what it does
)

// action is what is done to tasks, one thing at a time.
type action struct {
	ask     question
	of      []Task // that the question is about
	offered bool

	doing    string // "" = nothing
	cancel   context.CancelFunc
	progress *atomic.Value // the newest report of an import, a string; nil = none is shown
	deleted  [][]deletion  // what each deletion took away, the last one at the end
	changed  bool          // something was done here

	note string // the outcome of the last one
	bad  bool
}

// deletion is one copy of a task that can be brought back.
type deletion struct {
	task       Task
	key, token string
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

// rowText is what a search of rows looks at.
func rowText(t Task) string {
	return strings.ToLower(t.Title + "\n" + t.ID + "\n" + t.Workspace + "\n" + t.Where + "\n" + strings.Join(t.Tags, "\n"))
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
		f.Tasks[i].row = rowText(t)
	}
	if f.Whole || !l.whole { // else what was known of all is better than a part of the next
		l.read, l.of, l.sources = f.Read, f.Of, f.Sources
	}
	switch {
	case f.Whole:
		l.whole = true
		m.all = f.Tasks
		m.sort()
	case !l.whole:
		m.all = append(m.all, f.Tasks...)
		m.sort()
	}
	if f.Whole {
		return tea.Batch(m.nextFound(), m.offer(), m.searchAgain())
	}
	return m.nextFound()
}

// wordsOf finds the words of a search, whatever their case; nil where there are none.
func wordsOf(text string) *regexp.Regexp {
	words := strings.Fields(text)
	for i, w := range words {
		words[i] = regexp.QuoteMeta(strings.Trim(w, `"`))
	}
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
	if len(words) == 0 {
		return nil
	}
	return regexp.MustCompile("(?i)" + strings.Join(words, "|"))
}

// pause is how long a person must have stopped typing before messages are searched:
// rows are searched with every letter, for that costs nothing.
const pause = 200 * time.Millisecond

// least is how many letters a word has that messages are searched for.
const least = 3

type (
	searchMsg struct{ turn int }
	hitsMsg   struct {
		turn int
		hits []Hit
		err  error
	}
)

// setQuery searches for another text. What was found for the one before is forgotten.
func (m *Model) setQuery(text string) tea.Cmd {
	q := &m.query
	if text == q.text {
		return nil
	}
	if q.cancel != nil {
		q.cancel()
	}
	q.text, q.cancel, q.hits, q.count, q.err, q.busy = text, nil, nil, nil, nil, false
	q.words = wordsOf(text)
	q.turn++
	m.moved = false // the best row of a new search is its first
	m.arrange()
	if !slices.ContainsFunc(strings.Fields(text), func(w string) bool { return utf8.RuneCountInString(w) >= least }) {
		return nil
	}
	q.busy = true
	return m.after(pause, searchMsg{q.turn})
}

// searchAgain searches a list that was read again. The earlier hits stay until then.
func (m *Model) searchAgain() tea.Cmd {
	q := &m.query
	if q.hits == nil && q.err == nil {
		return nil // it was not searched, or still is
	}
	q.turn++
	return m.search(searchMsg{q.turn})
}

// after gives a message later, or not at all when the screen closes before.
func (m *Model) after(d time.Duration, msg tea.Msg) tea.Cmd {
	return m.crew.Do(func() tea.Msg {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			return msg
		case <-m.crew.Ctx.Done():
			return nil
		}
	})
}

func (m *Model) search(msg searchMsg) tea.Cmd {
	q := &m.query
	if msg.turn != q.turn {
		return nil
	}
	var ctx context.Context
	ctx, q.cancel = context.WithCancel(m.crew.Ctx)
	text := q.text
	return m.crew.Do(func() tea.Msg {
		hits, err := m.backend.Search(ctx, text)
		return hitsMsg{msg.turn, hits, err}
	})
}

func (m *Model) hits(msg hitsMsg) {
	q := &m.query
	if msg.turn != q.turn {
		return
	}
	q.busy, q.err = false, msg.err
	q.hits, q.count = map[string]Hit{}, map[string]int{}
	for _, h := range msg.hits {
		q.count[h.Key]++
		if _, ok := q.hits[h.Key]; !ok {
			q.hits[h.Key] = h
		}
	}
	m.moved = m.moved || len(m.rows) > 0 // rows that come late do not pull the cursor away
	m.arrange()
}
