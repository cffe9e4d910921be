package chat

import (
	"fmt"
	"io"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/view"
)

// Most rows of the parts below what is printed.
const (
	tailRows   = 6
	queueRows  = 5
	choiceRows = 8
)

// twice is how soon a second Ctrl-C counts as one, and typing how soon a key behind
// another one belongs to the same words.
const (
	twice  = 2 * time.Second
	typing = 600 * time.Millisecond
)

// model is the editor and the rows around it. It is for the goroutine of the program.
type model struct {
	s     *Session
	ed    *editor
	paint painter
	size  func() (width, height int)
	now   func() time.Time

	asking  bool
	draft   string    // what was being typed when a question came
	kept    []string  // words that could not be sent, for an empty editor
	due     bool      // some of it comes back as soon as the person rests
	late    bool      // what is in the editor was typed for a question that has closed
	burst   bool      // a question came in the middle of words, and they go on
	pressed time.Time // of the last key
	hint    string
	stopped time.Time // of the last Ctrl-C
	find    *finding
	choice  choice
	wish    int               // counts what Tab asked for
	early   []tea.KeyPressMsg // typed during the search
	looking bool
	failed  any  // what the program panicked with
	away    bool // another program has the terminal: nothing is drawn

	in  io.Reader // the terminal, for the person's editor
	tty io.Writer

	crew *display.Crew
	raw  func() error // takes the terminal again
	cook func()       // gives it back, for a while
}

// finding is a search of the history.
type finding struct {
	words string
	at    int // the entry that is shown, -1 = none
	draft string
}

type (
	wakeMsg  struct{}
	sizeMsg  struct{}
	wordsMsg struct {
		n    int
		wish wish
		list []Word
	}
)

// fail notes what the screen panicked with.
func (m *model) fail(what any) { m.failed = what }

func (m *model) look() tea.Cmd {
	return tea.Tick(400*time.Millisecond, func(time.Time) tea.Msg { return sizeMsg{} })
}

// news takes the state of the chat in, and reports whether it is over.
func (m *model) news() bool {
	st := m.s.state()
	if st.Asking != m.asking {
		m.turned(st.Asking)
	}
	if n := len(st.Back); n > 0 {
		m.kept = append(m.kept, st.Back...)
		m.s.change(func(st *state) { st.Back = st.Back[n:] })
		m.due = true
	}
	if st.Retype != "" && st.Asking {
		if m.ed.empty() {
			m.ed.set(st.Retype)
		} else {
			m.kept = append(m.kept, st.Retype)
		}
		m.s.change(func(st *state) { st.Retype = "" })
	}
	switch {
	case m.due && !m.ed.empty(): // a command that was typed over is in the history, if it is wanted
		m.due = false
		m.kept = slices.DeleteFunc(m.kept, isCommand)
	case m.due && !m.asking && !m.away && m.now().Sub(m.pressed) >= typing: // else what is typed on would follow upon it
		m.due = false
		m.back()
	}
	return st.Over
}

// turned takes in that a question came, or went.
func (m *model) turned(asking bool) {
	m.asking = asking
	if m.find != nil {
		m.ed.set(m.find.draft)
	}
	m.find, m.choice = nil, choice{}
	switch {
	case asking: // a half line is no answer
		m.late, m.draft = false, m.ed.String()
		m.ed.clear()
		if m.burst = m.draft != "" && m.now().Sub(m.pressed) < typing; m.burst {
			m.hint = "a question came: what you type comes back behind it; wait a moment to answer"
		}
	case m.ed.empty():
		m.due = true
	default: // an answer is no prompt
		m.late = true
		m.kept, m.draft = keep(m.draft, m.kept...), ""
	}
}

// keep puts a text in front of those that wait for the editor.
func keep(text string, rest ...string) []string {
	if text == "" {
		return rest
	}
	return append([]string{text}, rest...)
}

// back puts what waits for it into an empty editor: the text that the user was typing when a question came, and then
// what could not be sent. It is not called for an editor that the user empties by hand: what they type next must not
// follow other words.
func (m *model) back() (some bool) {
	if m.asking || m.away || !m.ed.empty() {
		return false
	}
	if all := keep(m.draft, m.kept...); len(all) > 0 {
		m.ed.set(all[0])
		m.draft, m.kept, some = "", all[1:], true
	}
	return some
}

// unsent is what waits for the editor, and its text that answers no question.
func (m *model) unsent() []string {
	all := keep(m.draft, m.kept...)
	if !m.asking {
		all = append(all, m.ed.String())
	}
	return all
}

// draw prints new lines, and then the rows at the bottom of the screen.
func (m *model) draw() {
	if m.away {
		return
	}
	width, height := m.size()
	above, tail := m.s.out.take()
	m.paint.draw(above, m.rows(tail, width, height), width)
}

// rows are those below what is printed.
func (m *model) rows(tail string, width, height int) rows {
	st, style := m.s.state(), m.s.style
	var r rows
	prompt, more := "› ", "  "
	if m.find != nil {
		prompt = style.Paint(view.Dim, "(search: "+display.Cut(m.find.words, max(width/2, 4))+") ")
	}
	if tail != "" {
		list := hard(tail, width)
		if over := len(list) - tailRows; over > 0 {
			list = list[over:]
		}
		if last := list[len(list)-1]; m.asking && m.find == nil && last.columns() < width-12 {
			prompt, list = string(last), list[:len(list)-1]
		}
		r.list = append(r.list, list...)
	}
	for i, q := range st.Queue {
		if i == queueRows {
			r.list = append(r.list, cut(style, view.Dim, fmt.Sprintf("  and %d more", len(st.Queue)-i), width))
			break
		}
		r.list = append(r.list, cut(style, view.Dim, fmt.Sprintf("  queued %d: %s", i+1, m.s.short(q.Text)), width))
	}
	if text := st.unasked(); text != "" && !m.asking {
		r.list = append(r.list, cut(style, view.Dim, text, width))
	}
	if text := m.s.along(); text != "" {
		r.list = append(r.list, cut(style, view.Dim, text, width))
	}
	switch {
	case st.Command:
		r.list = append(r.list, cut(style, view.Dim, "· your command runs; Esc stops it", width))
	case m.asking:
	case st.Working:
		r.list = append(r.list, cut(style, view.Dim, "· working; Esc stops it, words are queued", width))
	case st.Busy:
		r.list = append(r.list, cut(style, view.Dim, "· one moment; Esc stops it", width))
	}
	below := m.below(width)
	most := max(height-len(r.list)-len(below)-1, 3)
	e := typed(prompt, more, m.ed.text, m.ed.at, width, most)
	r.y, r.x = len(r.list)+e.y, e.x
	r.list = append(append(r.list, e.list...), below...)
	return r
}

// below are the rows under the editor.
func (m *model) below(width int) (out []row) {
	style := m.s.style
	if c := m.choice; len(c.list) > 0 {
		from := max(min(c.at-choiceRows/2, len(c.list)-choiceRows), 0)
		wide := 0
		for _, w := range c.list {
			wide = min(max(wide, display.Columns(w.Text)), 40)
		}
		for i := from; i < min(from+choiceRows, len(c.list)); i++ {
			w, how, lead := c.list[i], view.Dim, "    "
			if i == c.at {
				how, lead = view.Head, "  > "
			}
			out = append(out, cut(style, how, lead+display.Pad(w.Text, wide)+"  "+w.About, width))
		}
		if more := len(c.list) - choiceRows; more > 0 {
			out = append(out, cut(style, view.Dim, fmt.Sprintf("    %d in all", len(c.list)), width))
		}
	}
	if m.hint != "" {
		out = append(out, cut(style, view.Dim, "  "+m.hint, width))
	}
	return out
}
