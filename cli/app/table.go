package app

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/view"
)

const (
	// leastTitle is the minimal width of a title, in columns. A narrow terminal loses other columns of the table first.
	leastTitle = 20
	// narrowTerminal is the width below which names of folders and tools are cut to leave room for a title.
	narrowTerminal = 100
)

// column is a column of the table of tasks.
type column struct {
	head  string
	right bool // aligned
	rank  int  // a narrow terminal loses the columns of the highest rank first
	cell  func(t api.Summary, i int) string
	cells []string
	width int
}

// Table writes one line for each task. For a pipe it writes all columns, and cuts nothing.
func (a *App) Table(items []api.Summary, depths []int, names map[string]string, sources []api.SourceState) {
	width, labels := a.Columns(), SourceLabels(sources)
	mostTool, mostFolder := 0, 0
	if width > 0 && width < narrowTerminal {
		mostTool, mostFolder = 13, 14
	} else if width > 0 {
		mostTool, mostFolder = 20, max(20, width/5)
	}
	all, tree := api.CostsBelow(items, depths), slices.ContainsFunc(depths, func(d int) bool { return d > 0 })
	columns := []column{
		{head: "ID", cell: func(t api.Summary, _ int) string { return display.OneLine(names[t.Key()]) }},
		{head: "AGE", right: true, rank: 1, cell: func(t api.Summary, _ int) string { return a.Age(t.TS) }},
		{head: "STATUS", rank: 2, cell: func(t api.Summary, _ int) string { return Status(t) }},
		{head: "COST", right: true, rank: 5, cell: func(t api.Summary, _ int) string { return Cents(t.Usage.Cost) }},
		{head: "WITH SUBTASKS", right: true, rank: 6, cell: func(_ api.Summary, i int) string { return Cents(all[i]) }},
		{head: "MSGS", right: true, rank: 7, cell: func(t api.Summary, _ int) string {
			return Count(int64(cmp.Or(t.Messages.UI, t.Messages.API)))
		}},
		{head: "TOOL", rank: 4, cell: func(t api.Summary, _ int) string {
			return CutStart(display.OneLine(cmp.Or(labels[t.Source], t.Source)), mostTool)
		}},
		{head: "FOLDER", rank: 3, cell: func(t api.Summary, _ int) string { return CutStart(a.Folder(t.Workspace), mostFolder) }},
	}
	if !tree {
		columns = slices.DeleteFunc(columns, func(c column) bool { return c.rank == 6 })
	}
	room := width
	for i := range columns {
		c := &columns[i]
		c.width = len(c.head)
		c.cells = make([]string, len(items))
		for n, t := range items {
			c.cells[n] = c.cell(t, n)
			c.width = max(c.width, display.Columns(c.cells[n]))
		}
		room -= c.width + 2
	}
	for rank := 7; width > 0 && room < leastTitle && rank > 0; rank-- {
		columns = slices.DeleteFunc(columns, func(c column) bool {
			if c.rank == rank {
				room += c.width + 2
			}
			return c.rank == rank
		})
	}
	line := func(cell func(column) string) string {
		var b strings.Builder
		for _, c := range columns {
			b.WriteString(padded(cell(c), c.width, c.right) + "  ")
		}
		return b.String()
	}
	head := line(func(c column) string { return c.head }) + "TITLE"
	a.Styled(view.Dim, display.Cut(head, width))
	for i, t := range items {
		text := line(func(c column) string { return c.cells[i] }) + a.title(t, depths[i], room)
		a.Styled(StyleOf(t), display.Cut(text, width))
	}
	a.Flush()
}

// title returns the title of a task in a list, with its tags, in room columns; 0 = any number.
func (a *App) title(t api.Summary, depth, room int) string {
	title := cmp.Or(display.OneLine(t.Title), "(no title)")
	if t.Pinned {
		title = "^ " + title
	}
	title = strings.Repeat("  ", depth) + title
	tags := ""
	for _, tag := range t.Tags {
		tags += "  #" + display.OneLine(tag)
	}
	if a.Columns() > 0 {
		title = display.Cut(title, max(room-display.Columns(tags), leastTitle))
	}
	return title + tags
}

// Folder returns a folder as people write it: with ~ for the home folder.
func (a *App) Folder(path string) string {
	path = display.OneLine(path)
	home := a.Env("HOME")
	if rest, ok := strings.CutPrefix(path, home); ok && a.OutTTY && len(home) > 1 && (rest == "" || rest[0] == '/') {
		return "~" + rest
	}
	return path
}

// CutStart shortens a text to so many columns at its beginning, because the end of a path matters more. 0 cuts nothing.
func CutStart(text string, most int) string {
	if most <= 0 || display.Columns(text) <= most {
		return text
	}
	runes := []rune(text)
	for len(runes) > 0 && display.Columns(string(runes)) > most-1 {
		runes = runes[1:]
	}
	return "…" + string(runes)
}

// editors maps the folders of editors to the editors' names.
var editors = map[string]string{
	"code": "VS Code", "code - insiders": "VS Code Insiders", "vscodium": "VSCodium", "cursor": "Cursor", "windsurf": "Windsurf",
	".vscode-server": "VS Code remote", ".vscode-server-insiders": "VS Code Insiders remote", ".cursor-server": "Cursor remote",
	".windsurf-server": "Windsurf remote", "code-server": "code-server", ".vscodium-server": "VSCodium remote",
}

// SourceLabel names a storage for people: its editor, and the tool.
func SourceLabel(src api.SourceState) string {
	if src.Name == api.OwnSource {
		return "Roost"
	}
	editor := src.Name
	parts := strings.Split(strings.ReplaceAll(src.Path, `\`, "/"), "/")
	if i := slices.Index(parts, "globalStorage"); i >= 2 {
		at := i - 2 // <editor>/User/globalStorage
		if parts[at] == "data" && at > 0 {
			at--
		}
		editor = cmp.Or(editors[strings.ToLower(parts[at])], parts[at])
	}
	tool := src.Tool
	if tool == "" {
		return editor
	}
	return editor + "/" + strings.ToUpper(tool[:1]) + tool[1:]
}

// SourceLabels returns the labels of storages, by their names.
func SourceLabels(sources []api.SourceState) map[string]string {
	labels := make(map[string]string, len(sources))
	for _, src := range sources {
		labels[src.Name] = SourceLabel(src)
	}
	return labels
}

// StyleOf returns the style for the line of a task.
func StyleOf(t api.Summary) view.Style {
	switch {
	case len(t.Damaged) > 0:
		return view.Bad
	case t.Status == "waiting":
		return view.Asked
	}
	return view.Plain
}

// Grid prints rows in columns, the first one as their head.
func (a *App) Grid(rows [][]string) error {
	for _, row := range rows {
		for i := range row {
			row[i] = display.OneLine(row[i])
		}
	}
	styles := make([]view.Style, len(rows))
	styles[0] = view.Dim
	return a.Sheet(rows, styles, 0, 0, 0)
}

// Sheet prints rows in columns, each row in its style. The cells from right up to end are aligned right, and lines are
// cut to so many columns; 0 = not at all.
func (a *App) Sheet(rows [][]string, styles []view.Style, right, end, columns int) error {
	widths := Widths(rows)
	for i, row := range rows {
		line := strings.TrimRight(Cells(row, widths, right, end), " ")
		a.Styled(styles[i], display.Cut(line, columns))
	}
	return a.Flush()
}

// Widths returns the widths that the columns of a table need.
func Widths(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], display.Columns(cell))
		}
	}
	return widths
}

// Cells formats a row of a table: each cell is as wide as its column. The cells from right up to end are aligned
// right.
func Cells(row []string, widths []int, right, end int) string {
	cells := make([]string, len(row))
	for i, cell := range row {
		cells[i] = padded(cell, widths[i], i >= right && i < end)
	}
	return strings.Join(cells, "  ")
}

// padded fills text with blanks up to width columns, in front of the text if it is aligned right.
func padded(text string, width int, right bool) string {
	if right {
		return strings.Repeat(" ", max(width-display.Columns(text), 0)) + text
	}
	return display.Pad(text, width)
}

// Rich reports whether the result goes to a terminal that shows more than plain text, such as rendered Markdown.
func (a *App) Rich() bool { return a.OutTTY && !a.Plain() && !a.Flags.Quiet }

// Prose is Result for the words of a model: a rich terminal shows their Markdown rendered, indented by indent blanks.
func (a *App) Prose(text string, indent int) string {
	if !a.Rich() {
		return a.Result(text)
	}
	return display.Options{Theme: a.Colours(true), Width: a.Width, Live: true, Rich: true, Links: a.links()}.Prose(text, indent)
}

// Rows returns how many lines of a result fit on the terminal besides besides other lines, assuming 40 lines if the
// height is not known.
func (a *App) Rows(besides int) int {
	if a.Height == 0 {
		return 40 - besides
	}
	return max(a.Height-besides, 5)
}

// Columns returns the width of lines; 0 = do not break lines.
func (a *App) Columns() int {
	if !a.OutTTY {
		return 0
	}
	return a.Width
}

// MessagesText returns the number of messages of both histories, in words.
func MessagesText(n api.MessageCounts, turns int) string {
	text := fmt.Sprintf("%s, %d for the model", api.Plural(n.UI, "message"), n.API)
	if turns > 0 {
		text += fmt.Sprintf(" (%s)", api.Plural(turns, "turn"))
	}
	return text
}

// RowText names a message.
func RowText(r api.Row) string {
	text := fmt.Sprintf("#%d %s", r.Number, display.OneLine(strings.TrimPrefix(strings.TrimPrefix(r.Kind, "say:"), "ask:")))
	if r.Text != "" {
		text += ` "` + display.Cut(display.OneLine(r.Text), 60) + `"`
	}
	return text
}

// SumUp prints a summary of the found tasks to stderr, or, when there are none, the places that were searched.
func (a *App) SumUp(got api.Found, shown int) {
	tasks, damaged, empty, sources := 0, 0, 0, 0
	for _, src := range got.Sources {
		tasks += src.Tasks
		damaged += src.Damaged
		empty += src.Empty
		if src.Tasks > 0 {
			sources++
		}
	}
	if tasks == 0 {
		a.Say("no tasks found; looked in:")
		for _, src := range got.Sources {
			a.Say("  %s (%s)%s%s", src.Path, src.Name, Unreachable(src), display.Also(src.Empty, "empty"))
		}
		for _, p := range got.Places {
			if !slices.ContainsFunc(got.Sources, func(src api.SourceState) bool { return src.Path == p.Dir }) {
				a.Say("  %s (%s)", a.Folder(p.Dir), p.Product)
			}
		}
		a.Say("to look in another place: roost sources add DIR")
		return
	}
	a.WarnUnreachable(got.Sources)
	line := fmt.Sprintf("%s in %s", api.Plural(tasks, "task"), api.Plural(sources, "source"))
	if got.Copies > 0 {
		copies := map[bool]string{true: "a copy of another", false: "copies of others"}[got.Copies == 1]
		line += fmt.Sprintf(", %d of them %s", got.Copies, copies)
	}
	line += display.Also(damaged, "damaged (details: roost doctor)") + display.Also(empty, "empty")
	if shown < tasks {
		line += fmt.Sprintf("; %d shown", shown)
	}
	a.Say("%s", line)
}

// BySource prints the counts of each source, without the empty sources.
func (a *App) BySource(sources []api.SourceState) {
	for _, src := range sources {
		if src.Tasks+src.Empty == 0 {
			continue
		}
		line := fmt.Sprintf("%5d  %s", src.Tasks, src.Name)
		if src.Tool != "" && src.Tool != src.Name {
			line += " (" + src.Tool + ")"
		}
		line += "  " + src.Path
		if src.Damaged > 0 {
			line += fmt.Sprintf("  %d damaged", src.Damaged)
		}
		if src.Empty > 0 {
			line += fmt.Sprintf("  %d empty", src.Empty)
		}
		a.Say("%s", line)
	}
}

// Unreachable is why a source cannot be read; "" = it can be read. A source that cannot be read is never shown as empty.
func Unreachable(src api.SourceState) string {
	if src.State == "" || src.State == "readable" {
		return ""
	}
	if src.Problem != "" {
		return " is " + src.State + ": " + src.Problem
	}
	if src.Damaged > 0 {
		return "" // its damaged tasks are counted, and shown as such
	}
	return " is " + src.State
}

// WarnUnreachable warns of each source that cannot be read.
func (a *App) WarnUnreachable(sources []api.SourceState) {
	for _, src := range sources {
		if why := Unreachable(src); why != "" {
			a.Warn(src.Path + " (" + src.Name + ")" + why)
		}
	}
}

// Status returns the state of a task in one word.
func Status(t api.Summary) string {
	switch {
	case len(t.Damaged) > 0:
		return t.Status + "!"
	case t.Pending:
		return t.Status + "*"
	}
	return t.Status
}

// When returns a day and a minute, for people.
func (a *App) When(stamp *string) string {
	if stamp == nil {
		return "-               "
	}
	return strings.Replace((*stamp)[:16], "T", " ", 1)
}

// Lead returns the part of a tree's drawing before task i; depths are the depths of all its tasks.
func Lead(depths []int, i int) string {
	if i == 0 {
		return ""
	}
	last := func(at, depth int) bool { // no task of that depth follows under the same parent
		for j := at + 1; j < len(depths) && depths[j] >= depth; j++ {
			if depths[j] == depth {
				return false
			}
		}
		return true
	}
	var b strings.Builder
	for d := depths[0] + 1; d < depths[i]; d++ {
		if last(i, d) {
			b.WriteString("   ")
		} else {
			b.WriteString("│  ")
		}
	}
	if last(i, depths[i]) {
		return b.String() + "└─ "
	}
	return b.String() + "├─ "
}

// Wrap breaks a line for a terminal of so many columns, between words where it can, and indents the continuation like the
// line. With 0 columns lines stay whole, for grep. The terminal itself would break words, and would not indent.
func Wrap(text string, columns int) []string {
	if columns < 20 || display.Columns(text) <= columns && !strings.Contains(text, "\t") {
		return []string{text}
	}
	text = strings.ReplaceAll(text, "\t", "    ")
	indent := len(text) - len(strings.TrimLeft(text, " "))
	if mark := listMark(text[indent:]); mark > 0 {
		indent += mark
	}
	if indent > columns/2 {
		indent = 2
	}
	var out []string
	lead := ""
	for {
		cut, rest := fit(text, columns-len(lead), len(lead) == 0)
		out = append(out, lead+cut)
		if rest == "" {
			return out
		}
		text, lead = rest, strings.Repeat(" ", indent)
	}
}

// listMark returns the width of the list mark at the beginning of a text, such as "- " or "1. "; 0 without one.
func listMark(text string) int {
	n := len(text) - len(strings.TrimLeft(text, "0123456789"))
	if n > 0 && n < 4 && strings.HasPrefix(text[n:], ". ") {
		return n + 2
	}
	if strings.HasPrefix(text, "- ") || strings.HasPrefix(text, "* ") {
		return 2
	}
	return 0
}

// fit cuts a text so that the first part takes at most so many columns. keep retains the blanks at its beginning.
func fit(text string, columns int, keep bool) (first, rest string) {
	used, space, part, seen := 0, -1, 0, !keep
	for i, r := range text {
		if r == ' ' && seen {
			space = i
		}
		seen = seen || r != ' '
		if used += display.Columns(string(r)); used <= columns {
			if r == '/' || r == '\\' {
				part = i + 1
			}
			continue
		}
		switch {
		case space > 0 && space >= i/2: // a word that fills the line is broken instead
			return strings.TrimRight(text[:space], " "), strings.TrimLeft(text[space:], " ")
		case part >= i/2 && part > 0: // a path, between two of its names
			return text[:part], text[part:]
		case i == 0:
			return text[:len(string(r))], text[len(string(r)):]
		}
		return text[:i], text[i:]
	}
	return text, ""
}
