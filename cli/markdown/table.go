package markdown

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/theme"
)

// row takes a line that may belong to a table. The line below the first one decides.
func (s *Stream) row(line string) {
	s.table = append(s.table, line)
	if len(s.table) == 2 && aligned(line) == nil {
		s.notTable()
	}
}

// notTable writes the lines that look like a table's as words.
func (s *Stream) notTable() {
	lines := s.table
	s.table, s.open = nil, true
	s.lead()
	s.text.add(strings.Join(lines, "\n"), false)
}

// aligned reads the line below a table's head: l, r or c for each column; nil = the line is no such line.
func aligned(line string) (out []byte) {
	for _, c := range cells(line) {
		bare := strings.TrimSuffix(strings.TrimPrefix(c, ":"), ":")
		if bare == "" || strings.Trim(bare, "-") != "" {
			return nil
		}
		switch left, right := strings.HasPrefix(c, ":"), strings.HasSuffix(c, ":"); {
		case left && right:
			out = append(out, 'c')
		case right:
			out = append(out, 'r')
		default:
			out = append(out, 'l')
		}
	}
	return out
}

// cells splits a line of a table into its texts.
func cells(line string) (out []string) {
	line = strings.TrimSpace(line)
	line = strings.TrimPrefix(line, "|")
	if strings.HasSuffix(line, "|") && !strings.HasSuffix(line, `\|`) {
		line = line[:len(line)-1]
	}
	from := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '|':
			out = append(out, strings.TrimSpace(line[from:i]))
			from = i + 1
		}
	}
	out = append(out, strings.TrimSpace(line[from:]))
	return api.Each(out, func(c string) string { return strings.ReplaceAll(c, `\|`, "|") })
}

// between separates two columns.
const between = " │ "

// endTable writes the table.
func (s *Stream) endTable() {
	if len(s.table) < 2 {
		s.notTable()
		s.text.add("", true)
		return
	}
	align := aligned(s.table[1])
	var rows [][]string
	for i, line := range s.table {
		if i == 1 {
			continue
		}
		row := cells(line)
		if last := len(align) - 1; len(row) > len(align) { // a cell holds a |, as in a command
			row = append(row[:last], strings.Join(row[last:], " | "))
		}
		rows = append(rows, row) // may lack cells: many short rows of a wide table must not take memory for all columns
	}
	rows[0] = append(rows[0], make([]string, len(align)-len(rows[0]))...)
	s.table = nil
	s.lead()
	room := s.o.Width - ansi.StringWidthWc(s.flow.lead)
	widths := s.fit(rows, room-(len(align)-1)*len([]rune(between)))
	if widths == nil {
		s.cards(rows)
		return
	}
	for i, row := range rows {
		s.tableRow(row, widths, align, i == 0)
		if i == 0 {
			dashes := api.Each(widths, func(w int) string { return strings.Repeat("─", w) })
			s.flow.whole(s.flow.lead + s.o.Theme.Paint(theme.Dim, strings.Join(dashes, "─┼─")))
		}
	}
}

// readable is the least width of a cell whose text is wider.
const readable = 6

// fit returns the widths of the columns; nil = they do not fit. Columns wider than their share are wrapped.
func (s *Stream) fit(rows [][]string, room int) []int {
	widths := make([]int, len(rows[0]))
	for i, row := range rows {
		for c, cell := range row {
			widths[c] = max(widths[c], 1)
			for _, line := range s.cell(cell, 1<<20, i == 0) {
				widths[c] = max(widths[c], ansi.StringWidthWc(line))
			}
		}
	}
	left, open := room, len(widths)
	for done := make([]bool, len(widths)); open > 0; {
		share, changed := left/open, false
		for c, w := range widths {
			if !done[c] && w <= share { // the column needs less than its share
				done[c], changed = true, true
				left -= w
				open--
			}
		}
		if changed {
			continue
		}
		if share < readable {
			return nil
		}
		for c := range widths {
			if !done[c] {
				widths[c] = left / open
				left -= widths[c]
				open--
				done[c] = true
			}
		}
	}
	if left < 0 {
		return nil
	}
	return widths
}

// cell returns the lines of a cell.
func (s *Stream) cell(text string, width int, head bool) []string {
	l := look{role: s.o.Role}
	if head {
		l.attr = theme.Bold
	}
	return inlines(text, s.o, l, width, &s.text.links)
}

func (s *Stream) tableRow(row []string, widths []int, align []byte, head bool) {
	lines := make([][]string, len(widths))
	height := 1
	for c, text := range row {
		lines[c] = s.cell(text, widths[c], head)
		height = max(height, len(lines[c]))
	}
	bar := s.o.Theme.Paint(theme.Dim, strings.TrimRight(between, " ")) + " "
	for i := range height {
		var out strings.Builder
		for c := range widths {
			if c > 0 {
				out.WriteString(bar)
			}
			line := ""
			if i < len(lines[c]) {
				line = lines[c][i]
			}
			pad := max(widths[c]-ansi.StringWidthWc(line), 0)
			before := 0
			switch {
			case line == "" && c == len(widths)-1: // an empty last cell needs no blanks
			case align[c] == 'r':
				before = pad
			case align[c] == 'c':
				before = pad / 2
			}
			out.WriteString(strings.Repeat(" ", before) + line)
			if c < len(widths)-1 {
				out.WriteString(strings.Repeat(" ", pad-before))
			}
		}
		s.flow.whole(strings.TrimRight(s.flow.lead+out.String(), " "))
	}
}

// cards writes a table that does not fit: each row as a list of its cells.
func (s *Stream) cards(rows [][]string) {
	for i, row := range rows[1:] {
		if i > 0 {
			s.flow.whole(strings.TrimRight(s.flow.lead, " "))
		}
		for c, cell := range row {
			s.text.read(rows[0][c]+":", look{role: s.o.Role, attr: theme.Bold}, true, 0)
			s.flow.blank()
			s.text.read(cell, look{role: s.o.Role}, true, 0)
			s.flow.end()
		}
	}
	s.text.before = 0
}
