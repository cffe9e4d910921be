// Package picker is the screen on which a person looks through all tasks and
// chooses one: a list that fills while it is read, a preview of the task under the
// cursor, and search while one types.
//
// Model is pure: a message goes in, a screen comes out, and what takes time is a
// command that runs beside it. It knows nothing of stores and files; what it needs
// of them is the interface Backend. Run puts it on a terminal and gives the terminal
// back as it was, whichever way it ends.
//
// Limits: no mouse. Below 70 columns there is no preview, below 20 columns or 5
// lines no more than a request for room. What the Backend gives of titles and texts is
// made harmless here; the order of right-to-left text is the terminal's business.
package picker

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"

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
	api.Summary
	Key   string // names the task to the Backend; unique
	Where string // its source, for people: an editor and a tool

	row string // what a search of rows looks at, in small letters
}

// copied reports whether the same task is in another storage, too.
func (t Task) copied() bool { return len(t.Copies) > 0 }

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
