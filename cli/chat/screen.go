package chat

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/view"
)

// row is one row below the printed lines. Its text may hold colours, and is narrower
// than the terminal.
type row string

func (r row) columns() int { return ansi.StringWidth(string(r)) }

// rows are all of them, with the cursor.
type rows struct {
	list []row
	y, x int // of the cursor
}

// painter draws rows below what is printed, and prints above them.
type painter struct {
	w     io.Writer
	width int // of the terminal, when it was drawn last
	last  rows
	drawn bool
}

// draw prints lines, and draws the rows below them. Everything goes out at once, so that
// a terminal shows nothing in between.
func (p *painter) draw(above string, r rows, width int) {
	if p.drawn && above == "" && width == p.width && same(p.last, r) {
		return
	}
	var out strings.Builder
	out.WriteString("\x1b[?2026h\x1b[?25l")
	p.erase(&out, width)
	out.WriteString(strings.ReplaceAll(above, "\n", "\r\n"))
	for i, line := range r.list {
		if i > 0 {
			out.WriteString("\r\n")
		}
		out.WriteString(string(line))
	}
	if up := len(r.list) - 1 - r.y; up > 0 {
		fmt.Fprintf(&out, "\x1b[%dA", up)
	}
	out.WriteByte('\r')
	if r.x > 0 {
		fmt.Fprintf(&out, "\x1b[%dC", r.x)
	}
	out.WriteString("\x1b[?25h\x1b[?2026l")
	_, _ = io.WriteString(p.w, out.String()) // a lost terminal is no reason to stop
	p.last, p.width, p.drawn = r, width, true
}

// erase takes the rows away. A terminal that became narrower has wrapped them.
func (p *painter) erase(out *strings.Builder, width int) {
	if !p.drawn {
		return
	}
	up := 0
	for _, line := range p.last.list[:p.last.y] {
		up += wrapped(line.columns(), width)
	}
	if up += wrapped(p.last.x+1, width) - 1; up > 0 {
		fmt.Fprintf(out, "\x1b[%dA", up)
	}
	// What clears all from the first place of a screen on is taken by some terminals (tmux)
	// for the end of a page, and kept: each key would leave a copy of the rows above.
	switch {
	case width != p.width:
		out.WriteString("\r\x1b[J")
	case len(p.last.list) > 1:
		out.WriteString("\r\x1b[K\x1b[B\x1b[J\x1b[A")
	default:
		out.WriteString("\r\x1b[K")
	}
}

// leave removes the rows and puts the cursor below what was printed.
func (p *painter) leave(width int) {
	var out strings.Builder
	p.erase(&out, width)
	_, _ = io.WriteString(p.w, out.String()) // as above
	p.drawn = false
}

// wrapped is how many rows so many columns take.
func wrapped(columns, width int) int {
	if width <= 0 || columns <= width {
		return 1
	}
	return (columns + width - 1) / width
}

func same(a, b rows) bool {
	if a.y != b.y || a.x != b.x || len(a.list) != len(b.list) {
		return false
	}
	for i := range a.list {
		if a.list[i] != b.list[i] {
			return false
		}
	}
	return true
}

// hard breaks a line with colours into rows of less than width columns.
func hard(line string, width int) []row {
	var out []row
	for _, part := range strings.Split(ansi.Hardwrap(strings.ReplaceAll(line, "\t", "    "), max(width-1, 1), true), "\n") {
		if strings.ContainsRune(part, 0x1b) {
			part += "\x1b[0m"
		}
		out = append(out, row(part))
	}
	return out
}

// typed lays a text out after a prompt; its further lines begin after more. The cursor is before rune at. Of more
// than most rows it returns those around the cursor.
func typed(prompt, more string, text []rune, at, width, most int) rows {
	r := rows{list: []row{}}
	room := max(width-1, 4)
	var line strings.Builder
	line.WriteString(prompt)
	used := ansi.StringWidth(prompt)
	next := func(lead string) {
		r.list = append(r.list, row(line.String()))
		line.Reset()
		line.WriteString(lead)
		used = ansi.StringWidth(lead)
	}
	for i, c := range text {
		if c != '\n' {
			if n := display.Columns(string(c)); used+n > room {
				next("")
			}
		}
		if i == at {
			r.y, r.x = len(r.list), used
		}
		if c == '\n' {
			next(more)
			continue
		}
		line.WriteRune(c)
		used += display.Columns(string(c))
	}
	if at >= len(text) {
		r.y, r.x = len(r.list), used
	}
	r.list = append(r.list, row(line.String()))
	if over := len(r.list) - most; most > 0 && over > 0 {
		from := max(min(r.y-most/2, over), 0)
		r.list, r.y = r.list[from:from+most], r.y-from
	}
	return r
}

// cut shortens a line to a row, and paints it.
func cut(style display.Style, how view.Style, text string, width int) row {
	return row(style.Paint(how, display.Cut(display.OneLineIndented(text), max(width-1, 1))))
}
