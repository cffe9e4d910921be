package picker

import (
	"context"
	"strings"
	"sync"
	"time"

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
	err    error
}

// preview is the end of the task under the cursor.
type preview struct {
	want   string // what it is of; "" = of nothing
	turn   int
	cancel context.CancelFunc
	kept   map[string]string // what was read, by what it is of
	up     int               // lines that it was scrolled up from its end
	full   bool              // it has the whole screen

	lines   []string // of the one that is shown, as wide as that is
	linesOf string
	columns int
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
	of      Task // that the question is about
	offered bool
	foreign int // tasks that the offer is about

	doing    string // "" = nothing
	cancel   context.CancelFunc
	progress *progress
	deleted  []deletion
	changed  bool // something was done here

	note string // what came of the last one
	bad  bool
}

// deletion is one that can be taken back.
type deletion struct {
	task  Task
	token string
}

// progress is the newest report of an import.
type progress struct {
	mu   sync.Mutex
	text string
}

func (p *progress) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = text
}

func (p *progress) read() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text
}
