package term

import (
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/view"
)

// watched is a screen that several goroutines write to, and that can be waited for.
type watched struct {
	mu   sync.Mutex
	text strings.Builder
	grew *sync.Cond
}

func newWatched() *watched {
	w := &watched{}
	w.grew = sync.NewCond(&w.mu)
	return w
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.grew.Broadcast()
	return w.text.Write(p)
}

// ends waits until the screen ends with a text, and gives all of it.
func (w *watched) ends(text string) string {
	late := false
	defer time.AfterFunc(time.Minute, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		late = true
		w.grew.Broadcast()
	}).Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for !late && !strings.HasSuffix(w.text.String(), text) {
		w.grew.Wait()
	}
	return w.text.String()
}

// What has to be said while a question stands there comes below the prompt's line, and the
// prompt is drawn again: an answer has its place, and nobody looks for the question.
func TestWhatIsSaidWhileAQuestionStandsThere(t *testing.T) {
	t.Parallel()
	const prompt = "  a number or your own words (q alone stops) > "
	for name, c := range map[string]struct {
		say  func(d *Display)
		want string
	}{
		"a line":                       {func(d *Display) { d.Line(view.Dim, "the connection is lost") }, "\nthe connection is lost\n" + prompt},
		"of a subtask":                 {func(d *Display) { d.Below().Line(view.Dim, "it lives") }, "\n│ it lives\n" + prompt},
		"a notice":                     {func(d *Display) { show(d, "notice", `{"text":"a.go changed"}`) }, "\n! a.go changed\n" + prompt},
		"several lines":                {func(d *Display) { d.Lines([]view.Line{{Text: "one"}, {Text: "two"}}) }, "\none\ntwo\n" + prompt},
		"words that are not ended":     {func(d *Display) { show(d, "message.delta", `{"message":5,"offset":0,"text":"meanwhile"}`) }, "\nmeanwhile\n" + prompt},
		"what shows nothing":           {func(d *Display) { show(d, "usage.changed", `{"input":1}`) }, ""},
		"an unfinished line that ends": {func(d *Display) { d.Flush() }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, keys := io.Pipe()
			defer keys.Close()
			screen := newWatched()
			d := New(screen, Options{Live: true, Width: 80})
			p := NewPrompter(d, in)
			got := make(chan Reply, 1)
			go func() {
				r, _ := p.Ask(t.Context(), api.QuestionOpened{Question: "q1", Kind: "followup", Text: "which?", Choices: []string{"this"}})
				got <- r
			}()
			before := screen.ends(prompt)
			c.say(d)
			if after := strings.TrimPrefix(screen.ends(prompt), before); after != c.want {
				t.Errorf("behind the prompt stands %q, want %q", after, c.want)
			}
			if _, err := io.WriteString(keys, "1\n"); err != nil {
				t.Fatal(err)
			}
			if r := <-got; r.Text != "this" {
				t.Errorf("the answer is %+v", r)
			}
			before = screen.ends("")
			d.Line(view.Dim, "on it goes")
			if after := strings.TrimPrefix(screen.ends(""), before); after != "on it goes\n" {
				t.Errorf("behind the answer stands %q", after)
			}
		})
	}
}

// A run's events and its question come from two goroutines.
func TestEventsWhileSomebodyIsAsked(t *testing.T) {
	t.Parallel()
	in, keys := io.Pipe()
	screen := newWatched()
	d := New(screen, Options{Live: true, Width: 80})
	p := NewPrompter(d, in)
	var all sync.WaitGroup
	all.Go(func() {
		for range 50 {
			show(d, "notice", `{"text":"a.go changed"}`)
			d.Below().Line(view.Dim, "a subtask's")
		}
	})
	all.Go(func() {
		for range 50 {
			_, _ = io.WriteString(keys, "d\n")
		}
		_, _ = io.WriteString(keys, "y\n")
		_ = keys.Close()
	})
	const prompt = "  y once, a always, n no (reason), d diff, q stop > "
	r, err := p.Ask(t.Context(), api.QuestionOpened{Question: "q1", Kind: "approval", Text: "write a", Diff: "+one\n+two", Always: "all writes"})
	all.Wait()
	if err != nil || r.Approve == nil || !*r.Approve {
		t.Errorf("got %+v, %v, want no error and r.Approve != nil and *r.Approve", r, err)
	}
	// Whoever types ends the prompt's line, which a terminal shows and a pipe does not.
	for line := range strings.Lines(strings.ReplaceAll(screen.text.String(), prompt, prompt+"\n")) {
		if strings.Contains(line, "changed") && line != "! a.go changed\n" || strings.Contains(line, "subtask") && line != "│ a subtask's\n" {
			t.Fatalf("lines are mixed: %q", line)
		}
	}
}
