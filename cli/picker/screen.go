package picker

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/view"
)

const (
	leastColumns = 20 // columns and lines below which there is nothing to show
	leastLines   = 5
)

// View draws the screen.
func (m *Model) View() tea.View {
	v := tea.NewView(strings.Join(m.screen(), "\n"))
	v.AltScreen = true
	if m.query.typing && !m.help && !m.look.full && m.width >= leastColumns && m.height >= leastLines {
		v.Cursor = tea.NewCursor(min(width(searchMark+m.query.text), m.width-1), len(m.head()))
	}
	return v
}

const searchMark = "/ "

func (m *Model) screen() []string {
	if m.width < leastColumns || m.height < leastLines {
		return []string{cut("make the window larger", m.width)}
	}
	if m.help {
		return m.helpScreen()
	}
	if m.look.full {
		lines := m.previewLines(m.width, m.height-1)
		lines = append(lines, make([]string, max(m.height-1-len(lines), 0))...)
		return append(lines, m.paint(view.Dim, cut("↑↓ PgUp PgDn scroll · q back to the list", m.width)))
	}
	lines := append(m.head(), m.searchLine())
	lines = append(lines, m.body()...)
	return append(lines, m.foot())
}

// head is the line with the number of hits.
func (m *Model) head() []string {
	lines := wrap(clean(m.Sentence()), m.width)
	if most := max(m.height/6, 1); len(lines) > most {
		lines = append(lines[:most-1], cut(strings.Join(lines[most-1:], " "), m.width))
	}
	for i := range lines {
		lines[i] = m.paint(view.Head, lines[i])
	}
	for _, s := range m.load.sources {
		if s.Trouble != "" && len(lines) < m.height/4 {
			lines = append(lines, m.paint(view.Bad, cut("! "+clean(s.Name+" "+s.Trouble), m.width)))
		}
	}
	if m.load.err != nil {
		lines = append(lines, m.paint(view.Bad, cut("! "+clean(m.load.err.Error()), m.width)))
	}
	return lines
}

// Sentence sums up what was found, as far as it is known.
func (m *Model) Sentence() string {
	l := &m.load
	tasks, damaged, empty := 0, 0, 0
	byName := map[string]int{}
	var names []string
	for _, s := range l.sources {
		tasks, damaged, empty = tasks+s.Tasks, damaged+s.Damaged, empty+s.Empty
		if s.Tasks > 0 && !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
		byName[s.Name] += s.Tasks
	}
	if l.sources == nil {
		return "Looking for tasks ..."
	}
	slices.SortStableFunc(names, func(a, b string) int { return byName[b] - byName[a] })
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%s %d", name, byName[name]))
	}
	reading, what := !l.whole && l.read < l.of, "task"
	if reading {
		what = "folder" // some will turn out to be empty
	}
	text := "Found " + term.Plural(tasks, what)
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	var odd []string
	if damaged > 0 {
		odd = append(odd, fmt.Sprintf("%d damaged", damaged))
	}
	if empty > 0 {
		odd = append(odd, fmt.Sprintf("%d empty", empty))
	}
	if len(odd) > 0 {
		text += " (" + strings.Join(odd, ", ") + ")"
	}
	if reading {
		return fmt.Sprintf("%s. Read %d of %d ...", text, l.read, l.of)
	}
	if m.act.changed {
		return text + "."
	}
	return text + ". Nothing was changed."
}

func (m *Model) searchLine() string {
	q := &m.query
	if !q.typing && q.text == "" {
		return m.paint(view.Dim, cut("/ searches titles and messages", m.width))
	}
	state := ""
	switch {
	case q.err != nil:
		state = "messages cannot be searched: " + clean(q.err.Error())
	case q.busy:
		state = "searching messages ..."
	case q.hits != nil:
		state = term.Plural(len(m.rows), "task") + ", " + fmt.Sprint(len(q.hits)) + " by their messages"
	case q.text != "":
		state = term.Plural(len(m.rows), "task")
	}
	room := m.width - width(state) - 2
	if room < width(searchMark+q.text)+1 {
		return cut(searchMark+q.text, m.width)
	}
	return fit(searchMark+q.text, room) + "  " + m.paint(view.Dim, state)
}

// listHeight is how many rows are seen.
func (m *Model) listHeight() int { return max(m.height-len(m.head())-2, 1) }

func (m *Model) body() []string {
	height, columns := m.listHeight(), m.listWidth()
	out := make([]string, height)
	for i := range out {
		if at := m.top + i; at < len(m.rows) {
			out[i] = m.row(m.rows[at], at == m.at, columns)
		}
	}
	if len(m.rows) == 0 {
		out[0] = m.paint(view.Dim, cut(m.nothing(), columns))
	}
	side := m.previewWidth()
	if side == 0 {
		return out
	}
	look := m.previewLines(side, height)
	for i := range out {
		line := ""
		if i < len(look) {
			line = look[i]
		}
		out[i] = fit(out[i], columns) + m.paint(view.Dim, " │ ") + cut(line, side)
	}
	return out
}

func (m *Model) nothing() string {
	switch {
	case m.query.busy:
		return "no title holds that; searching messages ..."
	case m.query.text != "":
		return "no task holds that; esc shows all"
	case m.load.whole:
		return "there is no task"
	case m.load.err != nil:
		return "the tasks cannot be listed"
	}
	return "reading ..."
}

// marks show in one column how a task ended; the preview spells it out.
var marks = map[string]string{
	"completed": "✓", "failed": "✗", "running": "▶", "waiting": "?", "interrupted": "…", "cancelled": "-",
}

// row is one task: cursor, age, state, title. What it is marked with besides colour
// shows without colours, too.
func (m *Model) row(t Task, here bool, columns int) string {
	cursor, mark, flag := "  ", marks[t.Status], " "
	if here {
		cursor = "> "
	}
	if mark == "" {
		mark = " "
	}
	switch {
	case len(t.Damaged) > 0:
		flag = "!"
	case t.Pinned:
		flag = "*"
	}
	title := clean(t.Title)
	if title == "" {
		title = "(no title) " + clean(t.ID)
	}
	line := fit(cursor+fmt.Sprintf("%4s ", m.shortAge(t.TS))+mark+flag+" "+title, columns)
	switch {
	case here && m.o.Colour:
		return "\x1b[7m" + line + "\x1b[0m"
	case len(t.Damaged) > 0:
		return m.paint(view.Bad, line)
	}
	return line
}

// foot is the question or the note, else the keys.
func (m *Model) foot() string {
	if text := m.said(); text != "" {
		style := view.Asked
		if m.act.bad && m.act.ask == noQuestion && m.act.doing == "" {
			style = view.Bad
		}
		return m.paint(style, cut(clean(text), m.width))
	}
	return m.paint(view.Dim, m.keyLine())
}

// keyLine names the keys that there is room for, the ones to get out always.
func (m *Model) keyLine() string {
	last := []string{"? keys", "q quit"}
	keys := []string{"enter open", "r resume", "/ search", "e export", "d delete", "u undo", "↑↓ move"}
	switch {
	case m.query.typing:
		keys, last = []string{"enter " + m.enter(), "↑↓ move", "ctrl+u clear"}, []string{"esc list"}
	case m.o.Purpose != "":
		keys[0] = "enter " + m.enter()
		keys = slices.Insert(keys, 1, "o open")
		keys = slices.DeleteFunc(keys, func(k string) bool { return k == "r resume" })
	}
	for n := len(keys); n >= 0; n-- {
		line := strings.Join(append(slices.Clone(keys[:n]), last...), " · ")
		if width(line) <= m.width {
			return line
		}
	}
	return cut(strings.Join(last, " · "), m.width)
}

func (m *Model) enter() string {
	if m.o.Purpose != "" {
		return m.o.Purpose
	}
	return "open"
}

// helpLines are all lines of the help, except the one that shows how to leave it.
func (m *Model) helpLines() []string {
	lines := []string{
		m.paint(view.Head, "Keys"), "",
		"↑ ↓ j k       move          PgUp PgDn Home End",
		"enter         " + m.enter() + " the task",
		"o             open it in the pager",
		"e             export it into the current folder",
		"d             delete it: it goes to the trash",
		"u             undo the last deletion",
		"/             search titles; words of three letters also in messages",
		"esc           leave the search, then show all again; stop the work",
		"shift+↑ ↓     scroll the preview",
		"ctrl+r        read the list again",
		"q, ctrl+c     quit", "",
		"✓ completed  … interrupted  ? waits for an answer  ▶ running",
		"✗ failed  - cancelled  ! damaged  * pinned",
	}
	if m.o.Purpose == "" {
		lines = slices.Insert(lines, 5, "r             resume it: the run continues in this terminal")
	}
	for i := range lines {
		lines[i] = cut(lines[i], m.width)
	}
	return lines
}

// helpOver is how many lines of the help have no room on the screen.
func (m *Model) helpOver() int {
	n := len(m.helpLines())
	if n+2 <= m.height { // with a blank line and the one that shows how to leave it
		return 0
	}
	return max(n-(m.height-1), 0)
}

// helpScreen is the help, or as much of it as there is room for.
func (m *Model) helpScreen() []string {
	lines, over := m.helpLines(), m.helpOver()
	if over == 0 && len(lines)+2 <= m.height {
		return append(lines, "", m.paint(view.Dim, "any key goes back"))
	}
	at := min(m.helpAt, over)
	last := m.fitted("↑↓ PgUp PgDn scroll · any other key goes back", "↑↓ scroll · other keys go back", "↑↓ · else back")
	return append(lines[at:min(at+m.height-1, len(lines))], m.paint(view.Dim, cut(last, m.width)))
}

// scrollHelp takes a key that scrolls the help; false when it does not.
func (m *Model) scrollHelp(key string) bool {
	over, page := m.helpOver(), max(m.height-2, 1)
	by := map[string]int{"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -page, "b": -page, "pgdown": page, "space": page,
		" ": page, "home": -over, "g": -over, "end": over, "G": over}[key]
	if over == 0 || by == 0 {
		return false
	}
	m.helpAt = max(min(min(m.helpAt, over)+by, over), 0)
	return true
}
