package chat

import (
	"context"
	"testing"
)

// tab is what a text becomes when Tab is pressed some times.
func tab(s *Session, text string, times int) (string, choice) {
	e := newEditor(&History{})
	e.insert(text)
	w, ok := wanted(e.text, e.at)
	if !ok {
		return e.String(), choice{}
	}
	c := e.offer(w, s.words(context.Background(), w))
	for range times - 1 {
		if len(c.list) > 0 {
			e.next(&c, 1)
		}
	}
	return e.String(), c
}

func TestCompletion(t *testing.T) {
	d := newDesk(t)
	d.prompts, d.modes = []string{"review", "help"}, []string{"ask", "architect"}
	c := talking(t, d)
	for _, tt := range []struct {
		text  string
		times int
		want  string
		offer int
	}{
		{"/rew", 1, "/rewind ", 0},
		{"/mod", 1, "/mode", 2},
		{"/mod", 2, "/mode", 2},
		{"/mod", 3, "/model", 2},
		{"/mod", 4, "/mode", 2},
		{"/rev", 1, "/review ", 0},
		{"/hel", 1, "/help ", 0},
		{"/mode a", 1, "/mode a", 2},
		{"/mode as", 1, "/mode ask ", 0},
		{"/resume 019", 1, "/resume 0199 ", 0},
		{"/rewind #1", 1, "/rewind #1", 0}, // a message
		{"look at @mai", 1, "look at @/main", 2},
		{"look at @/main_", 1, "look at @/main_test.go ", 0},
		{"see @my", 1, `see @/my\ file `, 0},
		{`see @/my\ f`, 1, `see @/my\ file `, 0},
		{"as in #02", 1, "as in 0200 ", 0},
		{"plain words", 1, "plain words", 0},
		{"mail me@main", 1, "mail me@main", 0},
		{"//re", 1, "//re", 0},
	} {
		got, offered := tab(c.Session, tt.text, tt.times)
		if got != tt.want || len(offered.list) != tt.offer {
			t.Errorf("%q: %q with %d offered, want %q with %d", tt.text, got, len(offered.list), tt.want, tt.offer)
		}
	}
}

// What stands behind the cursor stays, and going backwards begins at the end.
func TestCompletionInTheMiddle(t *testing.T) {
	d := newDesk(t)
	c := talking(t, d)
	e := newEditor(&History{})
	e.insert("see @main.g please")
	e.move(len("see @main"))
	w, _ := wanted(e.text, e.at)
	ch := e.offer(w, c.words(context.Background(), w))
	e.next(&ch, -1)
	if got := marked(e); got != "see @/main_test.go|.g please" {
		t.Errorf("it is %q", got)
	}
	e.next(&ch, 1)
	if got := marked(e); got != "see @/main.go|.g please" {
		t.Errorf("it is %q", got)
	}
}
