package chat

import (
	"context"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

func TestWhatIsCompleted(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text  string
		kind  Kind
		begun string
		from  int
	}{
		{"/re", commandWords, "re", 0},
		{"/", commandWords, "", 0},
		{"//x", "", "", 0},
		{"look at @ma", Files, "ma", 8},
		{"look at @/ma", Files, "ma", 8},
		{`look at @my\ fi`, Files, "my fi", 8},
		{"as in #12", Refs, "12", 6},
		{"/rewind #1", Refs, "1", 8},
		{"/mode co", Modes, "co", 6},
		{"/resume 01", Tasks, "01", 8},
		{"/effort ", Efforts, "", 8},
		{"plain words", "", "", 0},
	}
	for _, tt := range tests {
		w, ok := wanted([]rune(tt.text), len([]rune(tt.text)))
		if ok != (tt.kind != "") || ok && (w.kind != tt.kind || w.begun != tt.begun || w.from != tt.from) {
			t.Errorf("%q: got %+v %t, want %s %q from %d", tt.text, w, ok, tt.kind, tt.begun, tt.from)
		}
	}
}

// A pop-up opens while the person types. The arrows choose, Tab and Enter take, Esc closes it for this word.
func TestAPopUp(t *testing.T) {
	m, _, out := screened(t, newDesk(t))
	m.types(t, "see @ma")
	if got := m.seen(); !strings.Contains(got, "@/main.go") || !strings.Contains(got, "@/main_test.go") {
		t.Fatalf("offered:\n%s", got)
	}
	down, up := tea.KeyPressMsg{Code: tea.KeyDown}, tea.KeyPressMsg{Code: tea.KeyUp}
	m.Update(down)
	m.Update(down)
	m.Update(up)
	m.Update(down)
	if !strings.Contains(m.seen(), "> @/main_test.go") {
		t.Fatalf("chosen:\n%s", m.seen())
	}
	m.types(t, "enter")
	if got := m.ed.String(); got != "see @/main_test.go " || len(m.choice.list) > 0 || m.s.state().Busy {
		t.Fatalf("Enter on what was chosen gives %q\n%s", got, m.seen())
	}
	m.types(t, "@", "m", "esc", "y")
	if len(m.choice.list) > 0 || m.ed.String() != "see @/main_test.go @my" {
		t.Errorf("after Esc it opens again: %q\n%s", m.ed.String(), m.seen())
	}
	m.types(t, " ", "@", "my", "tab")
	if got := m.ed.String(); got != `see @/main_test.go @my @/my\ file ` {
		t.Errorf("Tab gives %q", got)
	}
	m.ed.clear()
	m.types(t, "/help", "enter") // typed whole: Enter runs it
	within(t, "help", func() bool {
		m.Update(wakeMsg{})
		return strings.Contains(out.String(), "turn to another task")
	})
	if len(m.choice.list) > 0 || !m.ed.empty() {
		t.Errorf("got %q\n%s", m.ed.String(), m.seen())
	}
}

// A Tab that is faster than what is looked for takes nothing of the list for an earlier text.
func TestTabWaitsForTheList(t *testing.T) {
	m, _, _ := screened(t, newDesk(t))
	m.types(t, "/re") // the list for it is there
	_, cmd := m.Update(tea.KeyPressMsg{Text: "w"})
	m.Update(tea.KeyPressMsg{Code: tea.KeyTab})
	m.Update(tea.KeyPressMsg{Text: "~1"})
	if got := m.ed.String(); got != "/rew" {
		t.Errorf("before the list came: %q", got)
	}
	m.gets(cmd())
	if got := m.ed.String(); got != "/rewind ~1" {
		t.Errorf("got %q, want /rewind ~1", got)
	}
}

// At most eight rows, however much there is.
func TestAPopUpIsShort(t *testing.T) {
	m, _, _ := screened(t, newDesk(t))
	m.size = func() (int, int) { return 80, 30 }
	m.types(t, "/")
	rows := m.choice.rows(m.s.style, 80)
	if len(rows) != 8 || !strings.Contains(string(rows[7]), "more") {
		t.Errorf("%d rows, the last %q", len(rows), rows[len(rows)-1])
	}
	for range 20 {
		m.Update(tea.KeyPressMsg{Code: tea.KeyDown})
	}
	if got := m.choice.rows(m.s.style, 80); len(got) != 8 || !strings.Contains(strings.Join(rowsText(got), "\n"), "  > /") {
		t.Errorf("what was chosen is not there:\n%s", strings.Join(rowsText(got), "\n"))
	}
}

func rowsText(list []row) (out []string) {
	for _, r := range list {
		out = append(out, string(r))
	}
	return out
}

// tab is what a text becomes with the first word that fits, and how many fit.
func tab(s *Session, e *editor) int {
	w, ok := wanted(e.text, e.at)
	if !ok {
		return 0
	}
	c := e.open(w, s.words(context.Background(), w))
	if len(c.list) > 0 {
		e.take(c)
	}
	return len(c.list)
}

func TestCompletion(t *testing.T) {
	d := newDesk(t)
	d.prompts, d.modes = []string{"review", "help"}, []string{"ask", "architect"}
	c := talking(t, d)
	for _, tt := range []struct {
		text, want string
		offer      int
	}{
		{"/rew", "/rewind ", 1},
		{"/rev", "/review ", 1},
		{"/hel", "/help ", 1}, // a prompt of that name is not offered: the command is meant
		{"/mode a", "/mode ask ", 2},
		{"/mode as", "/mode ask ", 1},
		{"/mode ask", "/mode ask", 0},
		{"/resume 019", "/resume 0199 ", 1},
		{"look at @mai", "look at @/main.go ", 2},
		{"look at @/main_", "look at @/main_test.go ", 1},
		{"see @my", `see @/my\ file `, 1},
		{`see @/my\ f`, `see @/my\ file `, 1},
		{"as in #02", "as in 0200 ", 1},
		{"plain words", "plain words", 0},
		{"mail me@main", "mail me@main", 0},
		{"//re", "//re", 0},
	} {
		e := newEditor(&History{})
		e.insert(tt.text)
		if n := tab(c.Session, e); e.String() != tt.want || n != tt.offer {
			t.Errorf("%q: %q with %d offered, want %q with %d", tt.text, e.String(), n, tt.want, tt.offer)
		}
	}
}

// What stands behind the cursor stays.
func TestCompletionInTheMiddle(t *testing.T) {
	c := talking(t, newDesk(t))
	e := newEditor(&History{})
	e.insert("see @main.g please")
	e.move(len("see @main"))
	tab(c.Session, e)
	if got := marked(e); got != "see @/main.go |.g please" {
		t.Errorf("it is %q", got)
	}
}

// Rows that the terminal has no room for would push what is typed out of it, and each key would leave a copy of them.
func TestAPopUpLeavesTheTypedTextInSight(t *testing.T) {
	m, _, _ := screened(t, newDesk(t))
	m.types(t, "/")
	for height := 1; height < 12; height++ {
		r := m.rows("one\ntwo\nthree", 40, height)
		if len(r.list) > height || r.y < 0 || r.y >= len(r.list) || string(r.list[r.y]) != "› /" {
			t.Errorf("of %d rows the cursor is in row %d of %q, want it in the row of what is typed", height, r.y, r.list)
		}
	}
}

// A prompt that is wider than the terminal takes rows of its own: nothing is typed beyond the edge.
func TestAPromptFitsTheTerminal(t *testing.T) {
	m, _, _ := screened(t, newDesk(t))
	m.reason = true
	m.ed.set("use x")
	for width := 10; width < 80; width++ {
		r := m.rows("", width, 24)
		for _, line := range r.list {
			if line.columns() >= width {
				t.Errorf("width %d: got %q with %d columns, want fewer", width, line, line.columns())
			}
		}
		if got := strings.Join(rowsText(r.list), "\n"); width > 62 && !strings.Contains(got, "goes back) > use x\n") {
			t.Errorf("width %d: got\n%s", width, got)
		}
	}
}
