package picker

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"go.uber.org/goleak"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/view"
)

// On a machine so busy that bubbletea's reader of the terminal does not get the half
// second that it is waited for, bubbletea leaves it behind. That is no leak of ours.
func TestMain(m *testing.M) {
	const events = "github.com/charmbracelet/ultraviolet.(*TerminalReader).StreamEvents"
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(events), goleak.IgnoreAnyFunction(events+".func1"))
}

// counter is a Backend with made-up tasks. It remembers what it was asked.
type counter struct {
	mu       sync.Mutex
	parts    []Found
	held     bool // parts after the first wait for hold
	hold     chan struct{}
	failure  error
	hits     map[string][]api.Hit
	slow     time.Duration // what a search and a preview take
	asked    []string
	deleting error
	offers   int
}

func (d *counter) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, fmt.Sprintf(format, args...))
}

// did gives what was asked since it was called last, of those that begin so.
func (d *counter) did(prefix string) (out []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, text := range d.asked {
		if strings.HasPrefix(text, prefix) {
			out = append(out, text)
		}
	}
	d.asked = nil
	return out
}

func (d *counter) Tasks(ctx context.Context) iter.Seq2[Found, error] {
	return func(yield func(Found, error) bool) {
		d.note("tasks")
		for i, f := range d.parts {
			if d.hold != nil && i > 0 {
				select {
				case <-d.hold:
				case <-ctx.Done():
					yield(Found{}, ctx.Err())
					return
				}
			}
			if !yield(f, nil) {
				return
			}
		}
		if d.failure != nil {
			yield(Found{}, d.failure)
		}
	}
}

func (d *counter) wait(ctx context.Context) error {
	select {
	case <-time.After(d.slow):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *counter) Preview(ctx context.Context, t Task, hit *api.Hit) ([]view.Line, error) {
	if err := d.wait(ctx); err != nil {
		d.note("given up preview %s", t.Key())
		return nil, err
	}
	if hit != nil {
		d.note("preview %s at %d", t.Key(), hit.Number)
		return []view.Line{{Text: "around the hit in " + t.Key()}}, nil
	}
	d.note("preview %s", t.Key())
	if t.Title == "unreadable" {
		return nil, errors.New("the disk is gone")
	}
	return []view.Line{{Style: view.Head, Text: "#1 you"}, {Text: "  the end of " + t.Key()}}, nil
}

func (d *counter) Search(ctx context.Context, text string) ([]api.Hit, error) {
	if err := d.wait(ctx); err != nil {
		d.note("given up search %s", text)
		return nil, err
	}
	d.note("search %s", text)
	return d.hits[text], d.failure
}

func (d *counter) Open(context.Context, Task, *api.Hit) error { return nil }

func (d *counter) Export(_ context.Context, t Task, form string) (string, error) {
	d.note("export %s %s", t.Key(), form)
	return "wrote " + t.ID + "." + form, nil
}

func (d *counter) Delete(_ context.Context, key string) (string, error) {
	d.note("delete %s", key)
	return "trash:" + key, d.deleting
}

func (d *counter) Tag(_ context.Context, t Task, add, remove []string) ([]string, error) {
	d.note("tag %s +%s -%s", t.Key(), strings.Join(add, " +"), strings.Join(remove, " -"))
	return append(t.Tags, add...), d.failure
}

// HasFolder knows the folders of the test.
func (d *counter) HasFolder(dir string) bool { return dir == "." || dir == "/here" }

func (d *counter) Restore(_ context.Context, token string) error {
	d.note("restore %s", token)
	return nil
}

func (d *counter) Offer() bool {
	d.offers++
	return d.offers == 1
}

func (d *counter) Import(ctx context.Context, tell func(string)) (string, error) {
	tell("1 of 3 tasks")
	if err := d.wait(ctx); err != nil {
		return "", err
	}
	d.note("import")
	return "3 imported and verified", nil
}

// chores are tasks, the newest first.
func chores(titles ...string) []Task {
	var out []Task
	for i, title := range titles {
		out = append(out, Task{Summary: api.Summary{ID: fmt.Sprintf("t%d", i), Title: title, Status: "completed", Source: api.OwnSource, TS: int64(1000 - i)}})
	}
	return out
}

// whole is a list that is read at once.
func whole(tasks []Task) []Found {
	return []Found{
		{Of: len(tasks), Sources: []api.SourceState{{Name: "VS Code/Roo", Tasks: len(tasks)}}},
		{Of: len(tasks), Read: len(tasks), Tasks: tasks, Whole: true, Sources: []api.SourceState{{Name: "VS Code/Roo", Tasks: len(tasks)}}},
	}
}

// stage runs a model without a terminal. Time is the test's.
type stage struct {
	t    *testing.T
	m    *Model
	msgs chan tea.Msg
	quit bool
}

// on plays with a model in a bubble of its own time, and closes it.
func on(t *testing.T, d *counter, o Options, play func(*stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if o.Now == nil {
			o.Now = func() time.Time { return time.UnixMilli(3_600_000) }
		}
		if d.held {
			d.hold = make(chan struct{}) // of this bubble
		}
		s := &stage{t: t, m: New(t.Context(), d, o), msgs: make(chan tea.Msg, 1000)}
		s.run(s.m.Init())
		s.send(tea.WindowSizeMsg{Width: 100, Height: 30})
		play(s)
		s.m.Close()
		synctest.Wait()
	})
}

func (s *stage) run(cmd tea.Cmd) {
	if cmd != nil {
		go func() { s.msgs <- cmd() }()
	}
}

// step takes in what is there, without letting time pass.
func (s *stage) step() {
	for {
		synctest.Wait()
		select {
		case msg := <-s.msgs:
			s.take(msg)
		default:
			return
		}
	}
}

func (s *stage) take(msg tea.Msg) {
	switch msg := msg.(type) {
	case nil:
	case tea.BatchMsg:
		for _, cmd := range msg {
			s.run(cmd)
		}
	case tea.QuitMsg:
		s.quit = true
	default:
		s.send(msg)
	}
}

func (s *stage) send(msg tea.Msg) {
	_, cmd := s.m.Update(msg)
	s.run(cmd)
}

// later lets time pass.
func (s *stage) later(d time.Duration) {
	for end := time.Now().Add(d); ; {
		s.step()
		if !time.Now().Before(end) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

var keys = map[string]tea.KeyPressMsg{
	"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape},
	"pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown}, "home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd},
	"backspace": {Code: tea.KeyBackspace}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+u": {Code: 'u', Mod: tea.ModCtrl},
	"ctrl+w": {Code: 'w', Mod: tea.ModCtrl}, "ctrl+r": {Code: 'r', Mod: tea.ModCtrl}, "shift+up": {Code: tea.KeyUp, Mod: tea.ModShift},
}

// press presses keys: a name of keys, or else each letter.
func (s *stage) press(list ...string) {
	for _, name := range list {
		if k, ok := keys[name]; ok {
			s.send(k)
		} else {
			for _, r := range name {
				s.send(tea.KeyPressMsg{Code: r, Text: string(r)})
			}
		}
		s.step()
	}
}

func (s *stage) screen() string { return ansi.Strip(s.m.View().Content) }

// shows checks that the screen holds texts, and none of those after "!".
func (s *stage) shows(texts ...string) {
	s.t.Helper()
	screen := s.screen()
	for _, text := range texts {
		if without, not := strings.CutPrefix(text, "!"); strings.Contains(screen, without) == not {
			s.t.Errorf("wanted %q; the screen is:\n%s", text, screen)
		}
	}
}

// at checks which row the cursor is on.
func (s *stage) at(title string) {
	s.t.Helper()
	if t, _ := s.m.current(); t.Title != title {
		s.t.Errorf("the cursor is on %q, want %q", t.Title, title)
	}
}
