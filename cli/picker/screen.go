package picker

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/view"
)

const (
	leastColumns = 20 // with fewer columns or lines the screen shows no list
	leastLines   = 5
)

// View draws the screen.
func (m *Model) View() tea.View {
	v := tea.NewView(strings.Join(m.screen(), "\n"))
	v.AltScreen = true
	switch {
	case m.help || m.look.full || m.width < leastColumns || m.height < leastLines:
	case m.field != nil:
		v.Cursor = tea.NewCursor(min(width(m.typedLine()), m.width-1), m.height-1)
	case m.query.typing && m.menu == nil:
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
	lines = append(lines, m.above()...)
	return append(lines, m.foot())
}

// above returns the lines between the list and the last line: a question, the offer of an import, or the label of a
// typed line.
func (m *Model) above() []string {
	var lines []string
	most := max(min(m.height-4, m.height/3), 0)
	switch {
	case m.field != nil:
		lines = wrap(clean(m.field.label), m.width)
		if m.act.note != "" {
			lines = []string{clean(m.act.note)}
		}
		lines = lines[:min(len(lines), most)]
	case m.act.ask == askDelete:
		text, _ := deleteText(m.act.of)
		lines = wrap(clean(text), m.width)
		lines = lines[:min(len(lines), most)]
	case m.offering():
		lines = m.offerLines(max(most, 1))
	}
	return api.Each(lines, func(line string) string { return m.paint(view.Asked, cut(line, m.width)) })
}

// typedLine returns the line that the user types, or as much of its end as fits.
func (m *Model) typedLine() string {
	text := clean(m.field.text)
	if strings.HasSuffix(m.field.text, " ") {
		text += " "
	}
	return "> " + ansi.TruncateLeftWc(text, width(text)-(m.width-len("> ")-1), "")
}

// head returns the lines at the top: the sentence about the found tasks, and storages that cannot be read.
func (m *Model) head() []string {
	lines := wrap(clean(m.Sentence()), m.width)
	if most := max(m.height/6, 1); len(lines) > most {
		lines = append(lines[:most-1], cut(strings.Join(lines[most-1:], " "), m.width))
	}
	lines = api.Each(lines, func(line string) string { return m.paint(view.Head, line) })
	for _, s := range m.load.sources {
		if s.Problem != "" && len(lines) < m.height/4 {
			lines = append(lines, m.paint(view.Bad, cut("! "+clean(s.Name+" "+s.Problem), m.width)))
		}
	}
	if m.load.err != nil {
		lines = append(lines, m.paint(view.Bad, cut("! "+clean(m.load.err.Error()), m.width)))
	}
	return lines
}

// Sentence describes the tasks found so far in one sentence.
func (m *Model) Sentence() string {
	l := &m.load
	if l.sources == nil {
		return "Looking for tasks ..."
	}
	tasks, damaged, empty := 0, 0, 0
	byName := map[string]int{}
	var names, parts []string
	for _, s := range l.sources {
		tasks, damaged, empty = tasks+s.Tasks, damaged+s.Damaged, empty+s.Empty
		if s.Tasks > 0 && !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
		byName[s.Name] += s.Tasks
	}
	slices.SortStableFunc(names, func(a, b string) int { return byName[b] - byName[a] })
	parts = append(parts, api.Each(names, func(name string) string { return fmt.Sprintf("%s %d", name, byName[name]) })...)
	reading, what := !l.whole && l.read < l.of, "task"
	if reading {
		what = "folder" // some will turn out to be empty
	}
	copies, twice := 0, 0
	for _, t := range m.all {
		if l.whole && len(t.Also) > 0 { // an unfinished list lacks copies
			copies, twice = copies+len(t.Also), twice+1
		}
	}
	text := "Found " + api.Plural(tasks-copies, what)
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	odd := term.Also(twice, "in two places") + term.Also(damaged, "damaged") + term.Also(empty, "empty")
	if odd != "" {
		text += " (" + strings.TrimPrefix(odd, ", ") + ")"
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
	var states []string
	if n := len(m.picked); n > 0 {
		states = append(states, fmt.Sprintf("%d selected", n))
	}
	states = append(states, m.narrow.names()...)
	if m.sorts > 0 {
		states = append(states, orders[m.sorts].name)
	}
	switch {
	case q.err != nil:
		states = append(states, "messages cannot be searched: "+q.err.Error())
	case q.busy:
		states = append(states, "searching messages ...")
	case q.hits != nil:
		hits := 0
		for _, n := range q.count {
			hits += n
		}
		states = append(states, fmt.Sprintf("%s · %s in %d", api.Plural(len(m.rows), "task"), api.Plural(hits, "hit"), len(q.count)))
	case q.text != "" || m.narrow.on():
		states = append(states, api.Plural(len(m.rows), "task"))
	}
	state := clean(strings.Join(states, " · "))
	text, dim := searchMark+q.text, false
	if !q.typing && q.text == "" {
		text, dim = "/ searches titles and messages", true
		if state != "" {
			text = "/ search"
		}
	}
	room := m.width - width(state) - 2
	if room < width(text)+1 {
		if dim && state != "" {
			return m.paint(view.Asked, cut(state, m.width))
		}
		return cut(text, m.width)
	}
	if dim {
		return m.paint(view.Dim, fit(text, room)) + "  " + m.paint(view.Asked, state)
	}
	return fit(text, room) + "  " + m.paint(view.Dim, state)
}

// bodyHeight returns how many lines there are between the search line and the lines of above.
func (m *Model) bodyHeight() int {
	return max(m.height-len(m.head())-len(m.above())-2, 1)
}

// The sizes from which on the preview is beside the list, or below it.
const (
	besideColumns = 110
	belowColumns  = 60
	belowLines    = 12
)

// below returns how many lines the preview takes below the list, with its rule; 0 = it is not there.
func (m *Model) below() int {
	height := m.bodyHeight()
	if m.width >= besideColumns || m.width < belowColumns || height < belowLines {
		return 0
	}
	return height - max(height*2/5, 5)
}

// listHeight returns how many rows of the list are shown.
func (m *Model) listHeight() int { return max(m.bodyHeight()-m.below(), 1) }

func (m *Model) body() []string {
	height, columns := m.bodyHeight(), m.listWidth()
	if m.menu != nil {
		lines := m.menu.lines(m, m.width, height)
		return append(lines, make([]string, height-len(lines))...)
	}
	if m.load.whole && len(m.all) == 0 && m.query.text == "" {
		lines := m.welcome()
		return append(lines, make([]string, max(height-len(lines), 0))...)[:height]
	}
	out := make([]string, m.listHeight())
	for i := range out {
		if at := m.top + i; at < len(m.rows) {
			out[i] = m.row(m.rows[at], at == m.at, columns)
		}
	}
	if len(m.rows) == 0 {
		out[0] = m.paint(view.Dim, cut(m.nothing(), columns))
	}
	if n := m.below(); n > 0 {
		out = append(out, m.paint(view.Dim, strings.Repeat("─", m.width)))
		look := m.previewLines(m.width, n-1)
		return append(append(out, look...), make([]string, max(n-1-len(look), 0))...)
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

// welcome returns the lines for a user without any task.
func (m *Model) welcome() []string {
	var out []string
	for _, text := range []string{
		"Roost runs the tasks of coding agents and keeps them: a crash loses nothing, and",
		"every task, also one of Roo Code, Cline or a relative, can be continued.",
		"",
		"  n   a new task in " + m.o.Dir,
		"      you write what is to be done, and talk with the model while it works",
		"  ?   all keys",
		"  q   quit; roost try then shows how a killed task continues",
		"",
		"There is no task yet: none in Roost, and none where Roo Code, Cline, Kilo Code",
		"and Zoo Code keep theirs. Another place of theirs: roost sources add FOLDER",
	} {
		style := view.Plain
		if strings.HasPrefix(text, "There") || strings.HasPrefix(text, "and Zoo") {
			style = view.Dim
		}
		out = append(out, api.Each(wrap(plain(text), m.width), func(line string) string { return m.paint(style, line) })...)
	}
	return out
}

func (m *Model) nothing() string {
	switch {
	case m.query.busy:
		return "no title contains that; searching messages ..."
	case m.query.text != "":
		return "no task contains that; esc shows all"
	case m.narrow.on():
		return "no task passes the filters; esc shows all"
	case m.load.whole:
		return "there is no task"
	case m.load.err != nil:
		return "the tasks cannot be listed"
	}
	return "reading ..."
}

// marks show in one column how a task ended; the preview names it in words.
var marks = map[string]string{
	"completed": "✓", "failed": "✗", "running": "▶", "waiting": "?", "interrupted": "…", "cancelled": "-",
}

// row returns the line of one task: cursor, age, state, title. Each mark can be seen without colours, too.
func (m *Model) row(t Task, here bool, columns int) string {
	cursor, mark, flag := "  ", cmp.Or(marks[t.Status], " "), " "
	if here {
		cursor = "> "
	}
	switch {
	case len(t.Damaged) > 0:
		flag = "!"
	case t.Pinned:
		flag = "*"
	}
	if m.picked[t.Key()] {
		cursor = cursor[:1] + "+"
	}
	lead := cursor + fmt.Sprintf("%4s ", m.shortAge(t.TS)) + mark + flag + " "
	switch m.sorts {
	case byCost:
		lead = cursor + fmt.Sprintf("%8s ", dollars(t)) + mark + flag + " "
	case byTokens:
		lead = cursor + fmt.Sprintf("%7s ", view.Count(t.Usage.Tokens())) + mark + flag + " "
	}
	title := cmp.Or(clean(t.Title), "(no title) "+clean(t.ID))
	places := m.places(t, columns)
	room := max(columns-width(lead)-width(places), 0)
	title = fit(title, room)
	switch {
	case here && m.o.Colour:
		return m.chosenLine(lead+m.marked(view.Plain, title)+places, true)
	case len(t.Damaged) > 0:
		return m.paint(view.Bad, cut(lead, columns)) + m.marked(view.Bad, title) + m.paint(view.Bad, places)
	case t.waits():
		return m.paint(view.Asked, cut(lead, columns)) + m.marked(view.Asked, title) + m.paint(view.Asked, places)
	}
	return cut(lead, columns) + m.marked(view.Plain, title) + m.paint(view.Dim, places)
}

// The columns of a row that narrower lists leave out.
const (
	withTool, withFolder = 44, 64
	mostTool, mostFolder = 18, 18
)

// places returns the tool and the folder of a task, if the row has room for them.
func (m *Model) places(t Task, columns int) string {
	text := ""
	if columns >= withTool {
		tool := t.Where
		for _, c := range t.Also {
			tool += "+" + c.Where
		}
		text += "  " + fit(clean(tool), min(mostTool, columns/5))
	}
	if columns >= withFolder {
		text += "  " + fit(clean(t.folder()), min(mostFolder, columns/6))
	}
	return text
}

// foot returns the question or the note, else the keys.
func (m *Model) foot() string {
	if m.menu != nil {
		return m.paint(view.Dim, cut(m.menu.keys(), m.width))
	}
	if m.field != nil {
		return m.typedLine()
	}
	if text := m.said(); text != "" {
		style := view.Asked
		if m.act.bad && m.act.ask == noQuestion && m.act.doing == "" {
			style = view.Bad
		}
		return m.paint(style, cut(clean(text), m.width))
	}
	return m.paint(view.Dim, m.keyLine())
}

// keyLine names as many keys as fit, and always the ones that leave the screen.
func (m *Model) keyLine() string {
	last := []string{"? keys", "q quit"}
	keys := []string{"enter open", "r resume", "n new", "/ search", "f filter", "s sort", "space select", "d delete", "u undo", "e export", "t tag", ". this folder"}
	if m.load.whole && len(m.all) == 0 {
		keys = []string{"n new"}
	}
	switch {
	case m.query.typing:
		keys, last = []string{"enter " + m.enter(), "↑↓ move", "ctrl+u clear"}, []string{"esc list"}
	case m.o.Purpose != "":
		keys[0] = "enter " + m.enter()
		keys = slices.Insert(keys, 1, "o open")
		keys = slices.DeleteFunc(keys, func(k string) bool { return k == "r resume" || k == "n new" })
	}
	for n := len(keys); n >= 0; n-- {
		line := strings.Join(append(slices.Clone(keys[:n]), last...), " · ")
		if width(line) <= m.width {
			return line
		}
	}
	return cut(strings.Join(last, " · "), m.width)
}

func (m *Model) enter() string { return cmp.Or(m.o.Purpose, "open") }

// keysPage is the help page. The screen replaces ENTER in it with what the Enter key does.
//
//go:embed keys.txt
var keysPage string

// Keys returns the table of keys, as help prints it.
func Keys() string { return strings.ReplaceAll(strings.TrimSpace(keysPage), "ENTER", "open") }

// helpLines returns all lines of the help, except the one that shows how to leave it.
func (m *Model) helpLines() []string {
	lines := strings.Split(strings.ReplaceAll(strings.TrimSpace(keysPage), "ENTER", m.enter()), "\n")
	lines[0] = m.paint(view.Head, lines[0])
	without := "o" // Enter opens a task
	if m.o.Purpose != "" {
		without = "rn" // the screen only asks for a task
	}
	lines = slices.DeleteFunc(lines, func(l string) bool { return len(l) > 1 && l[1] == ' ' && strings.Contains(without, l[:1]) })
	return api.Each(lines, func(line string) string { return cut(line, m.width) })
}

// helpOver returns how many lines of the help have no room above the line that shows how to leave it.
func (m *Model) helpOver() int { return max(len(m.helpLines())+1-m.height, 0) }

// helpScreen returns the help, or as much of it as fits.
func (m *Model) helpScreen() []string {
	lines, over := m.helpLines(), m.helpOver()
	if over == 0 {
		return append(append(lines, "")[:min(len(lines)+1, m.height-1)], m.paint(view.Dim, "any key goes back"))
	}
	at := min(m.helpAt, over)
	last := m.fitted("↑↓ PgUp PgDn scroll · any other key goes back", "↑↓ scroll · other keys go back", "↑↓ · else back")
	return append(lines[at:min(at+m.height-1, len(lines))], m.paint(view.Dim, cut(last, m.width)))
}

// scrollHelp handles a key that scrolls the help; false when the key does not.
func (m *Model) scrollHelp(key string) bool {
	over, page := m.helpOver(), max(m.height-2, 1)
	by := -scrolled(key, page, over)
	if over == 0 || by == 0 {
		return false
	}
	m.helpAt = max(min(min(m.helpAt, over)+by, over), 0)
	return true
}

// previewWidth returns how many columns the preview has, 0 when there is no room for one.
func (m *Model) previewWidth() int {
	switch {
	case m.width >= besideColumns:
		return m.width - m.listWidth() - 3
	case m.below() > 0:
		return m.width
	}
	return 0
}

func (m *Model) listWidth() int {
	if m.width < besideColumns {
		return m.width
	}
	return min(m.width*3/5, 110)
}

// lines draws the menu in columns columns and height lines.
func (menu *menu) lines(m *Model, columns, height int) []string {
	out := []string{m.paint(view.Head, cut(menu.title, columns))}
	room := max(height-1, 1)
	top := max(min(menu.at-room/2, len(menu.items)-room), 0)
	for i := top; i < min(top+room, len(menu.items)); i++ {
		item, cursor, on := menu.items[i], "  ", "  "
		if i == menu.at {
			cursor = "> "
		}
		if item.on() {
			on = "● "
		}
		line := cursor + on + fit(item.kind, 8) + clean(item.text)
		if item.count != "" {
			line = fit(line, max(columns-8, 0)) + strings.Repeat(" ", max(7-len(item.count), 1)) + item.count
		}
		out = append(out, m.chosenLine(fit(line, columns), i == menu.at))
	}
	return out[:min(len(out), height)]
}

// keys names the keys of the menu.
func (menu *menu) keys() string {
	if menu.stays {
		return "space switches · enter switches and closes · ↑↓ move · esc closes"
	}
	return "enter chooses · ↑↓ move · esc closes"
}
