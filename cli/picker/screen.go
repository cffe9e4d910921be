package picker

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

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
	if l.sources == nil {
		return "Looking for tasks ..."
	}
	tasks, damaged, empty := 0, 0, 0
	byName := map[string]int{}
	var names, parts, odd []string
	for _, s := range l.sources {
		tasks, damaged, empty = tasks+s.Tasks, damaged+s.Damaged, empty+s.Empty
		if s.Tasks > 0 && !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
		byName[s.Name] += s.Tasks
	}
	slices.SortStableFunc(names, func(a, b string) int { return byName[b] - byName[a] })
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
	title := cmp.Or(clean(t.Title), "(no title) "+clean(t.ID))
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

func (m *Model) enter() string { return cmp.Or(m.o.Purpose, "open") }

// keysPage is the help page. The screen puts what the Enter key does in the place of ENTER.
//
//go:embed keys.txt
var keysPage string

// helpLines are all lines of the help, except the one that shows how to leave it.
func (m *Model) helpLines() []string {
	lines := strings.Split(strings.ReplaceAll(strings.TrimSpace(keysPage), "ENTER", m.enter()), "\n")
	lines[0] = m.paint(view.Head, lines[0])
	if m.o.Purpose != "" {
		lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "r ") }) // it resumes nothing
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
	by := -scrolled(key, page, over)
	if over == 0 || by == 0 {
		return false
	}
	m.helpAt = max(min(min(m.helpAt, over)+by, over), 0)
	return true
}

// settle is how long the cursor must rest on a row before its task is read: a user who holds the arrow key down
// causes no reads.
const settle = 60 * time.Millisecond

// withPreview are the columns below which the list has the screen for itself.
const withPreview = 70

// keptPreviews is how many previews are remembered.
const keptPreviews = 24

type (
	previewMsg   struct{ turn int }
	previewedMsg struct {
		turn int
		of   string
		text []view.Line
		err  error
	}
)

// wantPreview asks for the preview of the row under the cursor, when it is another
// one than before and there is room for it.
func (m *Model) wantPreview() tea.Cmd {
	of := ""
	if t, ok := m.current(); ok && (m.previewWidth() > 0 || m.look.full) {
		of = m.previewOf(t)
	}
	l := &m.look
	if of == l.want {
		return nil
	}
	if l.cancel != nil {
		l.cancel()
		l.cancel = nil
	}
	l.want, l.up = of, 0
	l.turn++
	if _, ok := l.kept[of]; ok || of == "" {
		return nil
	}
	return m.after(settle, previewMsg{l.turn})
}

// previewOf names a preview: a task that changes gets a new one, and so does a hit.
func (m *Model) previewOf(t Task) string {
	h := m.query.hits[t.Key]
	return fmt.Sprintf("%s\x00%d\x00%d\x00%s\x00%d", t.Key, t.TS, t.Messages.UI, h.History, h.Number)
}

func (m *Model) readPreview(msg previewMsg) tea.Cmd {
	t, ok := m.current()
	if l := &m.look; ok && msg.turn == l.turn {
		var ctx context.Context
		ctx, l.cancel = context.WithCancel(m.crew.Ctx)
		of, hit := l.want, m.hit(t)
		return m.crew.Do(func() tea.Msg {
			text, err := m.backend.Preview(ctx, t, hit)
			return previewedMsg{msg.turn, of, text, err}
		})
	}
	return nil
}

func (m *Model) previewed(msg previewedMsg) {
	l := &m.look
	if msg.err != nil && msg.turn != l.turn {
		return // it was cancelled because the cursor moved
	}
	if len(l.kept) >= keptPreviews {
		clear(l.kept)
	}
	if msg.err != nil {
		msg.text = []view.Line{{Style: view.Bad, Text: "it cannot be read: " + msg.err.Error()}}
	}
	l.kept[msg.of] = msg.text
}

// previewLines are the preview's lines on the screen: what the task is, then the end of its messages.
func (m *Model) previewLines(columns, height int) []string {
	t, ok := m.current()
	if !ok {
		return nil
	}
	out := m.facts(t, columns)
	out = out[:min(len(out), height/2)]
	out = append(out, m.paint(view.Dim, strings.Repeat("─", columns)))
	room := height - len(out)
	text, ok := m.look.kept[m.look.want]
	if !ok {
		return append(out, m.paint(view.Dim, "reading ..."))
	}
	if l := &m.look; l.linesOf != l.want || l.columns != columns {
		l.lines, l.linesOf, l.columns = nil, l.want, columns
		for _, line := range text {
			for _, part := range wrap(line.Text, columns) {
				l.lines = append(l.lines, m.paint(line.Style, part))
			}
		}
	}
	body := m.look.lines
	m.look.up = max(min(m.look.up, len(body)-room), 0)
	end := len(body) - m.look.up
	return append(out, body[max(end-room, 0):end]...)
}

// facts are what is known of a task without reading it.
func (m *Model) facts(t Task, columns int) []string {
	var out []string
	add := func(style view.Style, text string, most int) {
		lines := wrap(clean(text), columns)
		for _, line := range lines[:min(len(lines), most)] {
			out = append(out, m.paint(style, line))
		}
	}
	add(view.Head, cmp.Or(clean(t.Title), "(no title)"), 2)
	facts := []string{t.Status, m.age(t.TS), term.Plural(t.Messages.UI, "message")}
	if t.Usage.Cost != nil {
		facts = append(facts, "$"+t.Usage.Cost.String())
	}
	for _, more := range []string{t.Model, t.Where} {
		if more != "" {
			facts = append(facts, more)
		}
	}
	add(view.Dim, strings.Join(facts, " · "), 2)
	if t.Workspace != "" {
		add(view.Dim, t.Workspace, 1)
	}
	id := t.ID
	for _, tag := range t.Tags {
		id += " #" + tag
	}
	add(view.Dim, id, 1)
	for _, d := range t.Damaged[:min(len(t.Damaged), 2)] {
		d.File = filepath.Base(d.File)
		add(view.Bad, "damaged: "+d.Text(), 2)
	}
	if more := len(t.Damaged) - 2; more > 0 {
		add(view.Bad, fmt.Sprintf("and %d more", more), 1)
	}
	if h := m.hit(t); h != nil {
		add(view.Asked, fmt.Sprintf("#%d %s: %s", h.Number, h.History, h.Text), 3)
	}
	return out
}

// previewWidth is how many columns the preview has, 0 when there is no room for one.
func (m *Model) previewWidth() int {
	if m.width < withPreview {
		return 0
	}
	return m.width - m.listWidth() - 3
}

func (m *Model) listWidth() int {
	if m.width < withPreview {
		return m.width
	}
	return min(max(m.width*2/5, 32), 70)
}

// clean makes text of a task one harmless line of known width. Joiners, variation
// selectors and skin tones go: terminals do not agree about how wide a character is
// that has them, and a row that is off by a column tears the screen.
func clean(text string) string { return steady(term.OneLine(text)) }

func steady(text string) string {
	return strings.Map(func(r rune) rune {
		if r == 0x200C || r == 0x200D || r >= 0xFE00 && r <= 0xFE0F || r >= 0x1F3FB && r <= 0x1F3FF {
			return -1
		}
		return r
	}, text)
}

func width(text string) int { return ansi.StringWidthWc(text) }

// cut shortens a line to so many columns; colours in it stay closed.
func cut(text string, columns int) string { return ansi.TruncateWc(text, max(columns, 0), "…") }

// fit makes a line exactly so many columns wide.
func fit(text string, columns int) string {
	text = cut(text, columns)
	return text + strings.Repeat(" ", max(columns-width(text), 0))
}

// wrap breaks text into lines of at most so many columns.
func wrap(text string, columns int) []string {
	if columns < 1 {
		return nil
	}
	text = ansi.WrapWc(plain(text), columns, "")
	text = ansi.HardwrapWc(text, columns, true) // it lets a word after a blank exceed the width
	lines := strings.Split(within(text, columns), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return lines
}

// within breaks what is wider than the columns although it is one sign to a reader: a letter
// with marks that take room of their own, as a terminal counts them.
func within(text string, columns int) string {
	var out strings.Builder
	column := 0
	for _, r := range text {
		switch w := width(string(r)); {
		case r == '\n':
			column = 0
		case column > 0 && column+w > columns:
			out.WriteByte('\n')
			column = w
		default:
			column += w
		}
		out.WriteRune(r)
	}
	return out.String()
}

// plain is harmless text of any number of lines, tabs as blanks.
func plain(text string) string {
	return strings.ReplaceAll(steady(term.Safe(text)), "\t", "    ")
}

// paint colours text that is safe.
func (m *Model) paint(style view.Style, text string) string {
	return term.Style{On: m.o.Colour}.Paint(style, text)
}

// age is how long ago a task changed.
func (m *Model) age(ts int64) string { return term.AgeOf(m.o.Now(), ts) }

// shortAge is age in at most four columns. For a time in the future it shows the year.
func (m *Model) shortAge(ts int64) string {
	age := m.age(ts)
	if year, _, day := strings.Cut(age, "-"); day && year != "" {
		return year
	}
	if len(age) > 4 {
		return ">10k" // a year
	}
	return age
}
