package picker

import (
	"context"
	"iter"
)

// Backend is what the picker needs of the world. Everything that takes a context may
// take its time, and ends soon after the context does.
type Backend interface {
	// Tasks reads all tasks. Each Found adds to those before it; the last one holds all.
	Tasks(ctx context.Context) iter.Seq2[Found, error]
	// Preview is the end of a task, or the text around a hit in it, with colours.
	Preview(ctx context.Context, t Task, hit *Hit) (string, error)
	// Search finds tasks by the text of their messages.
	Search(ctx context.Context, text string) ([]Hit, error)
	// Open shows a task on the terminal, which it has for itself, and returns when the
	// person has seen enough.
	Open(ctx context.Context, t Task, hit *Hit) error
	// Export writes a task in a form of Forms and returns a line that names the file.
	Export(ctx context.Context, t Task, form string) (note string, err error)
	// Delete puts a task into the trash; token gets it back.
	Delete(ctx context.Context, t Task) (token string, err error)
	Restore(ctx context.Context, token string) error

	// Offer reports whether to offer an import of the tasks of other tools, and remembers
	// that it was offered: that is done once.
	Offer() bool
	// Import copies all tasks of other tools. It may call tell at any time before it returns.
	Import(ctx context.Context, tell func(progress string)) (note string, err error)
}

// Task is one row.
type Task struct {
	Key       string // names the task to the Backend; unique
	ID        string
	Title     string
	Status    string
	Source    string // for people: an editor and a tool
	Workspace string
	Model     string
	Cost      string // "" when unknown
	TS        int64  // Unix milliseconds, 0 when unknown
	Messages  int
	Damaged   []string // what could not be read
	Tags      []string
	Pinned    bool
	Foreign   bool // it is in another tool's storage
	Copied    bool // the same task is in another storage, too

	row string // what a search of rows looks at, in small letters
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
