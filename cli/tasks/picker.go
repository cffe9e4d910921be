package tasks

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/picker"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/view"
)

const (
	firstRows    = 50       // tasks that the picker shows before all are read
	previewBytes = 64 << 10 // of a preview's end: a user does not scroll through more
	mostHits     = 1000     // messages that a search in the picker finds at most
)

// pickerBackend serves the picker with the same code as the commands.
type pickerBackend struct {
	*commands
	client *client.Client
	stop   *app.Stopper
	words  atomic.Pointer[string] // of the last search; nil before the first
}

// silenced returns an App that prints nothing on the screen, for work behind the picker.
func (d *pickerBackend) silenced(errs io.Writer) *commands {
	a := *d.App
	a.Out, a.Err = io.Discard, errs
	a.InTTY, a.ErrTTY, a.Screen, a.Asker = false, false, nil, nil
	a.Width = 0 // the picker breaks lines
	a.Flags.JSON, a.Flags.Quiet = false, false
	return &commands{&a}
}

// Tasks streams rows.
func (d *pickerBackend) Tasks(ctx context.Context) iter.Seq2[picker.Found, error] {
	return func(yield func(picker.Found, error) bool) {
		for part, err := range d.client.List(ctx, firstRows) {
			f := picker.Found{Read: part.Read, Of: part.Of, Whole: part.Whole, Tasks: make([]picker.Task, 0, len(part.Items))}
			labels := app.SourceLabels(part.Sources)
			for _, src := range part.Sources {
				src.Name, src.Problem = labels[src.Name], trouble(src)
				f.Sources = append(f.Sources, src)
			}
			for _, t := range part.Items {
				if !t.Empty {
					f.Tasks = append(f.Tasks, picker.Task{Summary: t, Where: labels[t.Source], Also: alsoIn(part.Sources, labels, t.Copies)})
				}
			}
			if !yield(f, err) {
				return
			}
		}
	}
}

// alsoIn names the copies of a task in these folders by their storages.
func alsoIn(sources []api.SourceState, labels map[string]string, folders []string) (out []picker.Copy) {
	for _, folder := range folders {
		for _, src := range sources {
			if rel, err := filepath.Rel(src.Path, folder); err == nil && filepath.IsLocal(rel) {
				out = append(out, picker.Copy{Key: src.Name + ":" + filepath.Base(folder), Where: labels[src.Name]})
				break
			}
		}
	}
	return out
}

// trouble returns why a source cannot be read. The sentence above the list already reports damaged tasks.
func trouble(src api.SourceState) string {
	if src.State == "partly damaged" && src.Problem == "" {
		return ""
	}
	return strings.TrimSpace(app.Unreachable(src))
}

// Preview returns the end of a task in lines, or the lines up to a hit.
func (d *pickerBackend) Preview(ctx context.Context, t picker.Task, hit *api.Hit) ([]view.Line, error) {
	q := url.Values{"limit": {strconv.Itoa(page)}}
	if hit != nil {
		q = url.Values{"limit": {"4"}, "before": {strconv.Itoa(hit.Number + 1)}, "view": {hit.History}}
	}
	w, err := client.Get[api.Lines](ctx, d.client, app.PathOf(t.Key(), "lines"), q)
	if err != nil {
		return nil, err
	}
	lines := []view.Line{{Style: view.Bad, Text: w.StandIn}}
	for _, m := range w.Items {
		for _, l := range m.Lines {
			lines = append(lines, view.Line{Style: view.Style(l.Style), Text: l.Text})
		}
	}
	from, room := len(lines), previewBytes
	for from > 0 && room > 0 {
		from--
		room -= len(lines[from].Text)
	}
	if w.StandIn == "" {
		from = max(from, 1)
	}
	return lines[from:], nil
}

// Search searches the messages of all tasks, the newest first.
func (d *pickerBackend) Search(ctx context.Context, text string) ([]api.Hit, error) {
	found, err := client.Get[api.Page[api.Hit]](ctx, d.client, "/v1/search",
		url.Values{"q": {text}, "limit": {strconv.Itoa(mostHits)}, "patience": {"20"}})
	d.words.Store(&text)
	if p, ok := errors.AsType[*client.Problem](err); ok && p.Code == "validation_failed" {
		return nil, nil // maybe half a phrase: the picker still searches the titles
	}
	return found.Items, err
}

// around returns the flags that select messages for the pager: the last ones below the facts about the task, or those
// around a hit.
func around(hit *api.Hit, words string) showFlags {
	if hit == nil {
		return showFlags{tail: opened}
	}
	inAPI := hit.History == api.API
	return showFlags{ui: !inAPI, api: inAPI, at: hit.Number, to: hit.Number + opened, tail: 2 * opened, find: words}
}

// Open shows a task in the pager.
func (d *pickerBackend) Open(ctx context.Context, t picker.Task, hit *api.Hit) error {
	a := *d.App
	a.Flags.Quiet = true // no screen would show the messages of show on stderr
	a.Less = " -+F -+X"  // the pager stays until it is left, and leaves nothing
	back := d.stop.ReleaseInterrupt()
	defer time.AfterFunc(app.Bounce, back) // an interrupt for the pager may arrive just after it has ended
	words := ""
	if text := d.words.Load(); text != nil {
		words = *text
	}
	err := (&commands{&a}).open(ctx, d.client, t.Key(), around(hit, words))
	exit, is := errors.AsType[*exec.ExitError](err)
	if is && (exit.ExitCode() == -1 || exit.ExitCode() == failure.ExitInterrupt) {
		return nil // the person ended it by Ctrl-C
	}
	return err
}

// Export writes a task into the current folder and overwrites nothing.
func (d *pickerBackend) Export(ctx context.Context, t picker.Task, form string) (string, error) {
	ext := map[string]string{"archive": ".zip", "roo": "-roo"}[form] // -roo is a folder, which holds the task's
	path := filepath.Join(d.Dir, nameOf(t.Summary, cmp.Or(ext, "."+form), true, func(name string) bool {
		_, err := os.Lstat(filepath.Join(d.Dir, name))
		return err == nil // where Lstat fails, the export reports why
	}))
	var printed bytes.Buffer
	err := d.silenced(&printed).export(ctx, []string{t.Key()}, exportFlags{format: form, output: path})
	notes := strings.Join(strings.FieldsFunc(printed.String(), func(r rune) bool { return r == '\n' }), "; ")
	if err != nil {
		if f, is := errors.AsType[*failure.Failure](err); is {
			err = fmt.Errorf("%s: %s", f.What, f.Why)
		}
		if notes != "" {
			err = fmt.Errorf("%s; %w", notes, err)
		}
	}
	return notes, err
}

// Delete puts a copy of a task into the trash, or hides it.
func (d *pickerBackend) Delete(ctx context.Context, key string) (string, error) {
	var gone api.Deleted
	err := d.client.Do(ctx, http.MethodDelete, app.PathOf(key), url.Values{"subtasks": {"keep"}}, nil, &gone)
	return gone.QualifiedName(), err
}

// Tag adds and removes tags.
func (d *pickerBackend) Tag(ctx context.Context, t picker.Task, add, remove []string) ([]string, error) {
	var now api.Summary
	err := d.client.Do(ctx, http.MethodPatch, app.PathOf(t.Key()), nil, api.TaskPatch{AddTags: add, RemoveTags: remove}, &now)
	return now.Tags, err
}

// HasFolder reports whether a folder exists. On another machine the server checks that when the task continues.
func (d *pickerBackend) HasFolder(dir string) bool {
	info, err := os.Stat(d.Abs(dir))
	return !d.client.IsLocal() || err == nil && info.IsDir()
}

// Restore takes a task out of the trash.
func (d *pickerBackend) Restore(ctx context.Context, token string) error {
	_, err := client.Post[api.Restored](ctx, d.client, "/v1/trash/"+url.PathEscape(token)+"/restore", nil)
	return err
}

// Offer reports whether the picker should offer an import: once for each root.
func (d *pickerBackend) Offer() bool {
	s, err := d.App.Open()
	return err == nil && d.client.IsLocal() && s.Once("import")
}

// Import copies the tasks of all other tools.
func (d *pickerBackend) Import(ctx context.Context, tell func(string)) (string, error) {
	ctx = progress.With(ctx, func(p progress.State) {
		tell(fmt.Sprintf("%d of %d tasks, %s", p.Done, p.Of, api.SizeText(p.Bytes)))
	})
	r, err := client.Post[api.Import](ctx, d.client, "/v1/imports", api.NewImport{Sources: []string{"all"}})
	if err == nil && r.Problem != nil {
		err = r.Problem
	}
	if err != nil {
		return "", err
	}
	unread := len(r.Unreachable)
	text := fmt.Sprintf("%d imported and verified", r.Imported+r.Forked) + display.Also(r.Same, "there already") +
		display.Also(r.Conflicts, "in conflict") + display.Also(r.Failed, "failed") + display.Also(unread, "sources unreachable")
	if r.Failed+r.Conflicts+unread > 0 {
		text += " (details: roost import --from all)"
	}
	return text, nil
}

// Welcome carries out roost without a command: on a terminal the picker, else help. Without any task, it prints where
// it looked for tasks.
func Welcome(app *app.App, cmd *cobra.Command) error {
	a := &commands{app}
	if !a.Interactive() {
		return cmd.Help()
	}
	var next []string // the command to run after the screen has closed
	err := a.Connect(cmd.Context(), func(c *client.Client) error {
		in, out := a.Drawable()
		if in == nil {
			id, err := a.plainWelcome(cmd.Context(), c)
			if id != "" {
				next = []string{"resume", id}
			}
			return err
		}
		choice, err := a.draw(cmd.Context(), c, in, out, "")
		switch {
		case err != nil:
			return err
		case choice.Verb == picker.Resume:
			next = []string{"resume", choice.Task.Key()}
			if choice.Folder != "" {
				next = append(next, "-C", choice.Folder)
			}
		case choice.Verb == picker.Begin:
			next = []string{"chat"}
			if choice.Words != "" {
				next = append(next, "--prompt", choice.Words)
			}
		default:
			a.Say("%s", choice.Found) // stays on the terminal after the screen has closed
		}
		return nil
	})
	if err != nil || next == nil {
		return err
	}
	cmd.Root().SetArgs(next) // as if the user had typed it; the global flags keep their values
	return cmd.Root().ExecuteContext(cmd.Context())
}

// picks lets a person choose the task for a command line that names none.
func (a *commands) picks(cmd *cobra.Command) *cobra.Command {
	check, run := cmd.Args, cmd.RunE
	every := func() bool { return cmd.Flags().Changed("all") } // of export
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && (a.Interactive() || every()) {
			return nil
		}
		return check(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && !every() {
			id, _, err := a.pick(cmd.Context(), cmd.Name())
			if err != nil {
				return err
			}
			args = []string{id}
		}
		return run(cmd, args)
	}
	return cmd
}

// pick lets the user choose one task, and a folder to resume the task in. purpose is one word, for messages.
func (a *commands) pick(ctx context.Context, purpose string) (id, folder string, err error) {
	if !a.Interactive() {
		return "", "", failure.Usage(purpose+" a task", "no task was named, and there is no terminal to choose on",
			"roost list  # then roost "+purpose+" ID")
	}
	err = a.Connect(ctx, func(c *client.Client) error {
		names, err := client.Get[api.Names](ctx, c, "/v1/names", nil)
		in, out := a.Drawable()
		switch {
		case err != nil:
			return err
		case len(names.Items) == 0:
			return failure.NotFound("task_not_found", purpose+" a task", "there is none", `roost run "what to do"`)
		case in == nil:
			page, _, err := a.newest(ctx, c)
			if err != nil {
				return err
			}
			id, err = a.ask(ctx, page, purpose)
			return err
		}
		choice, err := a.draw(ctx, c, in, out, purpose)
		if err == nil && choice.Verb == picker.Leave {
			err = notChosen(purpose, "none was chosen")
		}
		id, folder = choice.Task.Key(), choice.Folder
		return err
	})
	return id, folder, err
}

// newest returns the tasks that the plain picker offers, and how many tasks there are in all.
func (a *commands) newest(ctx context.Context, c *client.Client) (tasks []api.Summary, found api.Found, err error) {
	got, err := a.Pages(ctx, c, "/v1/tasks", url.Values{"sort": {"newest"}, "with": {"found"}}, pickable)
	tasks, err = app.All[api.Summary](got, err)
	return tasks, got.Found, err
}

func notChosen(purpose, why string) error {
	return failure.New(failure.ExitCancelled, "cancelled", "choose a task", why, "roost "+purpose+" ID")
}

// draw shows the picker on a terminal.
func (a *commands) draw(ctx context.Context, c *client.Client, in, out *os.File, purpose string) (picker.Choice, error) {
	stop := a.StopperWith(ctx, func() {}) // the end of the screen restores the terminal
	d := &pickerBackend{commands: a, client: c, stop: stop}
	choice, err := picker.Run(stop.Ctx, d, in, out, picker.Options{
		Colour: a.Colours(a.ErrTTY).On(), Now: a.Now, Purpose: purpose, Pager: a.Pager() != "", Dir: a.Dir,
	})
	stop.Undo()
	exit := stop.Exit()
	if choice.Interrupted {
		exit = failure.ExitInterrupt
	}
	if exit != 0 {
		return choice, failure.New(exit, "cancelled", "choose a task", "a signal interrupted the choice; nothing is lost", "roost")
	}
	if errors.Is(err, display.ErrPanic) {
		return choice, fmt.Errorf("%w because of an error in the picker; use roost list and roost resume ID instead", err)
	}
	return choice, err
}

// pickable is the number of tasks that the plain picker offers.
const pickable = 15

// plainWelcome prints the found tasks and, if the terminal cannot show a screen, asks for the number of one.
func (a *commands) plainWelcome(ctx context.Context, c *client.Client) (id string, err error) {
	page, found, err := a.newest(ctx, c)
	if err != nil {
		return "", err
	}
	a.BySource(found.Sources)
	a.SumUp(found, len(page))
	if len(page) == 0 {
		a.Say("start one: roost run \"what to do\"; see how it works: roost try")
		return "", nil
	}
	return a.ask(ctx, page, "resume")
}

// ask prints numbered tasks and reads a number.
func (a *commands) ask(ctx context.Context, items []api.Summary, purpose string) (string, error) {
	lines := make([]view.Line, len(items))
	for i, t := range items {
		text := fmt.Sprintf("%3d. %4s  %-12s %s  %s", i+1, a.Age(t.TS), app.Status(t), display.OneLine(t.Title), display.OneLine(t.Workspace))
		lines[i] = view.Line{Text: display.Cut(text, a.Width)}
	}
	a.Show().Lines(lines) // also with -q: the question is about them
	key, err := a.Choose(ctx, purpose+" which (number, or q) > ", api.Each(items, api.Summary.Key))
	if err != nil {
		return "", notChosen(purpose, err.Error())
	}
	if key == "" {
		return "", notChosen(purpose, "none was chosen")
	}
	return key, nil
}
