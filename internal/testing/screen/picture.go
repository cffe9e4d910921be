package screen

import (
	"image/color"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

// Size is that of a terminal, in cells.
type Size struct{ Columns, Lines int }

// Colour is one of a terminal: Default, 1 to 256 for the palette's 0 to 255, or RGB | 0xRRGGBB.
type Colour uint32

// Default is the colour of a cell that has none of its own. RGB marks a colour that is not of the palette.
const (
	Default Colour = 0
	RGB     Colour = 1 << 24
)

// Palette is a colour of the palette, from 0.
func Palette(n int) Colour { return Colour(n) + 1 } //nolint:gosec // 0 to 255

// Look is how a cell is drawn.
type Look struct {
	Fg, Bg                                           Colour
	Bold, Faint, Italic, Underline, Reverse, Striken bool
}

// Cell is one place of the screen. The place to the right of a wide character has Width 0 and no text.
type Cell struct {
	Text  string
	Width int
	Look  Look
}

// Picture is a screen at one moment.
type Picture struct {
	Size
	Cells  [][]Cell // lines of cells
	Cursor struct {
		Column, Line int
		Hidden       bool
	}
	Alternate bool // a program draws on the whole screen
}

// Text is the screen in lines, without the blanks at their ends and without empty lines at its end.
func (p *Picture) Text() string {
	lines := make([]string, len(p.Cells))
	for i := range p.Cells {
		lines[i] = p.Line(i)
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

// Line is the text of one line, without the blanks at its end.
func (p *Picture) Line(n int) string {
	var b strings.Builder
	for _, c := range p.Cells[n] {
		b.WriteString(c.Text)
	}
	return strings.TrimRight(b.String(), " ")
}

// Holds reports whether the text is seen, on one line.
func (p *Picture) Holds(text string) bool { return strings.Contains(p.Text(), text) }

// Find is the first cell of the first place where the text is seen; nil where it is not.
func (p *Picture) Find(text string) *Cell {
	for n := range p.Cells {
		at := strings.Index(p.Line(n), text)
		if at < 0 {
			continue
		}
		for i := range p.Cells[n] {
			if at -= len(p.Cells[n][i].Text); at < 0 {
				return &p.Cells[n][i]
			}
		}
	}
	return nil
}

// The attributes of an emulator's cell, as its library numbers them.
const (
	bold = 1 << iota
	faint
	italic
	_
	_
	reverse
	_
	striken
)

// pictureOf copies what an emulator shows.
func pictureOf(e *vt.Emulator) *Picture {
	p := &Picture{Size: Size{e.Width(), e.Height()}, Alternate: e.IsAltScreen()}
	at := e.CursorPosition()
	p.Cursor.Column, p.Cursor.Line, p.Cursor.Hidden = at.X, at.Y, e.CursorHidden()
	p.Cells = make([][]Cell, p.Lines)
	for y := range p.Cells {
		row := make([]Cell, p.Columns)
		for x := 0; x < len(row); x++ {
			c := e.CellAt(x, y)
			if c == nil {
				row[x] = Cell{Text: " ", Width: 1}
				continue
			}
			text, width := c.Content, max(c.Width, 1)
			if text == "" {
				text = " "
			}
			a := c.Style.Attrs
			look := Look{
				Fg: colourOf(c.Style.Fg), Bg: colourOf(c.Style.Bg), Underline: c.Style.Underline != ansi.UnderlineNone,
				Bold: a&bold != 0, Faint: a&faint != 0, Italic: a&italic != 0, Reverse: a&reverse != 0, Striken: a&striken != 0,
			}
			row[x] = Cell{text, width, look}
			for ; width > 1 && x+1 < len(row); width-- {
				x++
				row[x] = Cell{Look: look}
			}
		}
		p.Cells[y] = row
	}
	return p
}

func colourOf(c color.Color) Colour {
	switch c := c.(type) {
	case nil:
		return Default
	case ansi.BasicColor:
		return Palette(int(c))
	case ansi.IndexedColor:
		return Palette(int(c))
	}
	r, g, b, _ := c.RGBA()
	return RGB | Colour(r>>8<<16|g>>8<<8|b>>8)
}
