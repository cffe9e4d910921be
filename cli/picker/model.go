package picker

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/view"
)

// Task is one row.
type Task struct {
	api.Summary
	Where string // its source, for people: an editor and a tool
	Also  []Copy // the same task in other storages

	row string // see rowText
}

// Copy is the same task in another storage.
type Copy struct{ Key, Where string }

// foreign reports whether a key is that of a task in another tool's storage: deleting such a task hides it.
func foreign(key string) bool { return !strings.HasPrefix(key, api.OwnSource+":") }

// waits reports whether a question of the task waits for the user.
func (t Task) waits() bool { return t.OpenQuestions > 0 }

// folder returns the last part of the task's folder, on any system.
func (t Task) folder() string {
	parts := strings.FieldsFunc(t.Workspace, func(r rune) bool { return r == '/' || r == '\\' })
	if len(parts) == 0 {
		return ""
	}
	return parts[len(parts)-1]
}

// Found is one part of the list while it is read.
type Found struct {
	Tasks    []Task            // the new ones; in the last Found all tasks, in order
	Sources  []api.SourceState // with names for people; Problem = why a source cannot be read
	Read, Of int
	Whole    bool // the last one
}

// Forms are the forms of an export, by their keys.
var Forms = []struct{ Key, Form, Name string }{
	{"m", "md", "Markdown"}, {"h", "html", "HTML"}, {"j", "json", "JSON"}, {"r", "roo", "Roo folder"}, {"a", "archive", "archive"},
}

// Verb is what the caller does with the task after the screen has closed.
type Verb string

// The values of Verb. Choose is for a screen that only asks for a task.
const (
	Leave  Verb = ""
	Resume Verb = "resume"
	Choose Verb = "choose"
	Begin  Verb = "begin" // a new task in the current folder
)

// Choice is the user's choice when the screen closed.
type Choice struct {
	Verb        Verb
	Task        Task
	Folder      string // the folder to resume in; "" = the task's own
	Words       string // the first words of a new task; "" = the chat asks
	Interrupted bool   // by Ctrl-C
	Found       string // the sentence about the found tasks
}

// Options are the look of the screen and its purpose.
type Options struct {
	Colour bool
	Now    func() time.Time
	// Purpose is what Enter does, in one word, when the screen only asks for a task: resume, show, export.
	// "" = Enter opens the task, and the screen stays.
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
	all   []Task          // all known tasks, in the order of the list
	gone  map[string]bool // deleted here, by key
	rows  []Task          // the listed tasks: all that match the search
	at    int             // the row under the cursor
	top   int             // the first visible row
	moved bool            // the user chose the row; else the cursor stays on the first row

	query  query
	narrow filter
	sorts  int             // index of the list's order in orders
	picked map[string]bool // the tasks that are selected, by key
	menu   *menu           // the open menu; nil = none
	field  *field          // the line that the user types; nil = none
	look   preview
	act    action
	help   bool
	helpAt int // the first shown line of the help, if it does not fit on the screen
	choice Choice
}

// current returns the task under the cursor.
func (m *Model) current() (Task, bool) {
	if m.at < 0 || m.at >= len(m.rows) {
		return Task{}, false
	}
	return m.rows[m.at], true
}

// rowOf returns the row of a task, -1 when it is not listed.
func (m *Model) rowOf(key string) int {
	return slices.IndexFunc(m.rows, func(t Task) bool { return t.Key() == key })
}

// move puts the cursor on another row.
func (m *Model) move(to int) {
	m.at = max(min(to, len(m.rows)-1), 0)
	m.moved = m.at > 0
}

// loading is the reading of the list.
type loading struct {
	next     func() (Found, error, bool)
	stop     func()
	cancel   context.CancelFunc
	again    bool // the list must be read once more
	read, of int
	whole    bool
	sources  []api.SourceState
	err      error
}

func (l *loading) end() {
	if l.stop != nil {
		l.cancel()
		l.stop()
		l.stop = nil
	}
}

// query is the present search.
type query struct {
	text   string
	typing bool
	turn   int // counts the changes of text: results of an earlier turn are outdated
	cancel context.CancelFunc
	busy   bool
	hits   map[string]api.Hit // by key: the first hit of each task
	count  map[string]int     // number of hits of each task
	words  *regexp.Regexp     // finds the words of the search, to mark them; nil = no words
	err    error
}

// preview is the end of the task under the cursor.
type preview struct {
	want   string // the name of the preview to show, see previewOf; "" = none
	turn   int
	cancel context.CancelFunc
	kept   map[string][]view.Line // previews by their names
	up     int                    // lines that it was scrolled up from its end
	full   bool                   // it has the whole screen

	lines   []string // of the shown preview, wrapped at columns
	linesOf string
	columns int
	words   string // the search whose words are marked in lines
}

// hit returns the first message of a task that a search found; nil = none.
func (m *Model) hit(t Task) *api.Hit {
	if h, ok := m.query.hits[t.Key()]; ok {
		return &h
	}
	return nil
}

// question is the kind of the question that the next key answers.
type question string

const (
	noQuestion question = ""
	askDelete  question = "delete"
	askForm    question = "form"
	askImport  question = "import" // the offer of an import: keys that do not answer it act as usual
)

// action is the present action on tasks; there is one at a time.
type action struct {
	ask     question
	of      []Task // the tasks that the question is about
	offered bool

	doing    string // the present action; "" = none
	cancel   context.CancelFunc
	progress *atomic.Value // the newest report of an import, a string; nil = none is shown
	deleted  [][]deletion  // what each deletion removed, the last one at the end
	changed  bool          // an action changed something

	note string // the outcome of the last action
	bad  bool
}

// deletion is one deleted copy of a task that can be restored.
type deletion struct {
	task       Task
	key, token string
}

// scrolled returns how many lines up a key scrolls: one, a page, or all.
func scrolled(key string, page, all int) int {
	return map[string]int{
		"up": 1, "k": 1, "down": -1, "j": -1, "pgup": page, "b": page, "pgdown": -page, "space": -page, " ": -page,
		"home": all, "g": all, "end": -all, "G": -all,
	}[key]
}
