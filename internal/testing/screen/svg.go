package screen

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"strings"
	"time"
)

// Theme is the colours of a drawn picture.
type Theme struct {
	Ground, Text string
	Sixteen      [16]string
}

// Dark and Light are the themes of the pictures in README and docs.
var (
	Dark = Theme{"#16181d", "#d6d9e0", [16]string{
		"#3b404c", "#f07178", "#8fd18f", "#e6c26a", "#7fb2f0", "#d08fe0", "#6fd0d0", "#c8ccd4",
		"#8b93a3", "#ff8b92", "#aee6a5", "#ffd98a", "#9cc6ff", "#e5a8f2", "#8ee8e8", "#ffffff",
	}}
	Light = Theme{"#fbfbfa", "#24272e", [16]string{
		"#24272e", "#b3261e", "#1d6b34", "#7a5500", "#1b57b0", "#8a2aa0", "#0b6b73", "#6a7080",
		"#5a6070", "#a31515", "#176030", "#6b4a00", "#164a9a", "#761f8c", "#075a62", "#3a3f4a",
	}}
)

// The measures of a cell in a picture.
const (
	cellWidth, cellHeight, fontSize, margin = 8.4, 18.0, 14, 14.0
	fonts                                   = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"
)

// drawing writes SVG. Lines that stand in several frames are drawn once.
type drawing struct {
	lines map[string]int
	order []string
}

// SVG draws frames as one picture; of several, each is shown for its time, over and over. A reader who wants no motion
// sees the last one. A picture with both themes follows the reader's choice of dark or light.
func SVG(w io.Writer, frames []Frame, themes ...Theme) error {
	if len(frames) == 0 {
		return fmt.Errorf("draw a recording: it has no frames")
	}
	if len(themes) == 0 {
		themes = []Theme{Dark, Light}
	}
	d := &drawing{lines: map[string]int{}}
	var size Size
	var total time.Duration
	bodies := make([]string, len(frames))
	for i, f := range frames {
		size.Columns, size.Lines = max(size.Columns, f.Picture.Columns), max(size.Lines, f.Picture.Lines)
		total += max(f.For, time.Millisecond)
		bodies[i] = d.frame(f.Picture)
	}
	out := bufio.NewWriter(w)
	width, height := float64(size.Columns)*cellWidth+2*margin, float64(size.Lines)*cellHeight+2*margin
	fmt.Fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.1f %.1f\" width=\"%.0f\" height=\"%.0f\" role=\"img\" xml:space=\"preserve\">\n<style>\n", width, height, width, height)
	fmt.Fprintf(out, "text{font:%dpx %s;white-space:pre}\n", fontSize, fonts)
	for i, t := range themes {
		rule := "%s\n"
		if i > 0 {
			rule = "@media (prefers-color-scheme:light){%s}\n"
		}
		fmt.Fprintf(out, rule, t.rules())
	}
	fmt.Fprint(out, ".b{font-weight:700}.d{opacity:.65}.i{font-style:italic}.u{text-decoration:underline}.s{text-decoration:line-through}\n")
	if len(frames) > 1 {
		motion(out, frames, total)
	}
	fmt.Fprint(out, "</style>\n<defs>\n")
	for i, line := range d.order {
		fmt.Fprintf(out, "<g id=\"l%d\">%s</g>\n", i, line)
	}
	fmt.Fprintf(out, "</defs>\n<rect class=\"g\" width=\"100%%\" height=\"100%%\" rx=\"8\"/>\n")
	for i, body := range bodies {
		class := ""
		if len(frames) > 1 {
			class = fmt.Sprintf(" class=\"m m%d\"", i)
		}
		fmt.Fprintf(out, "<g%s>%s</g>\n", class, body)
	}
	fmt.Fprint(out, "</svg>\n")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("draw a recording: %w", err)
	}
	return nil
}

// motion writes the rules that show one frame after another.
func motion(out io.Writer, frames []Frame, total time.Duration) {
	percent := func(d time.Duration) float64 { return 100 * float64(d) / float64(total) }
	fmt.Fprintf(out, ".m{visibility:hidden;animation:%.2fs step-end infinite}\n", total.Seconds())
	var at time.Duration
	for i, f := range frames {
		from := at
		at += max(f.For, time.Millisecond)
		fmt.Fprintf(out, "@keyframes k%d{0%%{visibility:%s}", i, map[bool]string{true: "visible", false: "hidden"}[i == 0])
		if i > 0 {
			fmt.Fprintf(out, "%.3f%%{visibility:visible}", percent(from))
		}
		if i < len(frames)-1 {
			fmt.Fprintf(out, "%.3f%%{visibility:hidden}", percent(at))
		}
		fmt.Fprintf(out, "}.m%d{animation-name:k%d}\n", i, i)
	}
	fmt.Fprintf(out, "@media (prefers-reduced-motion:reduce){.m{animation:none}.m%d{visibility:visible}}\n", len(frames)-1)
}

// rules are the classes of the colours. (Variables would be shorter; not all that draw SVG know them.)
func (t Theme) rules() string {
	var b strings.Builder
	fmt.Fprintf(&b, ".g{fill:%s}.t{fill:%s}", t.Ground, t.Text)
	for i, c := range t.Sixteen {
		fmt.Fprintf(&b, ".f%d{fill:%s}", i, c)
	}
	return b.String()
}

// frame is one picture: uses of its lines, and the cursor.
func (d *drawing) frame(p *Picture) string {
	var b strings.Builder
	for y, cells := range p.Cells {
		line := draw(cells)
		if line == "" {
			continue
		}
		n, known := d.lines[line]
		if !known {
			n = len(d.order)
			d.lines[line], d.order = n, append(d.order, line)
		}
		fmt.Fprintf(&b, "<use href=\"#l%d\" x=\"%.1f\" y=\"%.1f\"/>", n, margin, margin+float64(y)*cellHeight)
	}
	if c := p.Cursor; !c.Hidden {
		fmt.Fprintf(&b, "<rect class=\"t d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>",
			margin+float64(c.Column)*cellWidth, margin+float64(c.Line)*cellHeight, cellWidth, cellHeight)
	}
	return b.String()
}

// draw draws the cells of one line at its top left corner: runs of cells that look the same.
func draw(cells []Cell) string {
	var b strings.Builder
	for x := 0; x < len(cells); {
		end := x
		for end < len(cells) && cells[end].Look == cells[x].Look {
			end++
		}
		run(&b, cells[x:end], x)
		x = end
	}
	return b.String()
}

// run draws cells that look the same.
func run(b *strings.Builder, cells []Cell, x int) {
	look := cells[0].Look
	fg, bg := fill(look.Fg, "t"), fill(look.Bg, "g")
	if look.Reverse {
		fg, bg = bg, fg
	}
	left, width := float64(x)*cellWidth, float64(len(cells))*cellWidth
	if bg != fill(Default, "g") {
		fmt.Fprintf(b, "<rect %s x=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>", bg.attribute(""), left, width, cellHeight)
	}
	classes := ""
	for _, c := range []struct {
		on   bool
		name string
	}{{look.Bold, " b"}, {look.Faint, " d"}, {look.Italic, " i"}, {look.Underline, " u"}, {look.Striken, " s"}} {
		if c.on {
			classes += c.name
		}
	}
	for _, part := range words(cells) {
		fmt.Fprintf(b, "<text %s x=\"%.1f\" y=\"%.1f\" textLength=\"%.1f\" lengthAdjust=\"spacingAndGlyphs\">%s</text>",
			fg.attribute(classes), left+float64(part.at)*cellWidth, cellHeight-4.5, float64(part.columns)*cellWidth, html.EscapeString(part.text))
	}
}

// part is text with at most one blank between its words, and where it stands.
type part struct {
	text        string
	at, columns int
}

// words cuts cells where two blanks or more are, so that nothing depends on how blanks are drawn.
func words(cells []Cell) (out []part) {
	var now part
	blanks := 0
	for i, c := range cells {
		if c.Width == 0 {
			continue // the right half of what was before
		}
		if strings.TrimSpace(c.Text) == "" {
			blanks++
			continue
		}
		if now.text != "" && blanks > 1 {
			out, now = append(out, now), part{}
		}
		if now.text == "" {
			now.at, blanks = i, 0
		}
		now.text += strings.Repeat(" ", blanks) + c.Text
		now.columns, blanks = i+c.Width-now.at, 0
	}
	if now.text != "" {
		out = append(out, now)
	}
	return out
}

// paint is a class of the stylesheet, or a colour as #rrggbb.
type paint string

func (p paint) attribute(classes string) string {
	if strings.HasPrefix(string(p), "#") {
		return fmt.Sprintf("class=%q style=\"fill:%s\"", strings.TrimSpace(classes), string(p))
	}
	return fmt.Sprintf("class=%q", string(p)+classes)
}

// fill is the paint of a colour; of the default one, that of ground or text.
func fill(c Colour, standard string) paint {
	const cube = "\x00\x5f\x87\xaf\xd7\xff"
	n := int(c) - 1
	switch {
	case c == Default:
		return paint(standard)
	case c&RGB != 0:
		return paint(fmt.Sprintf("#%06x", uint32(c&^RGB)))
	case n < 16:
		return paint(fmt.Sprintf("f%d", n))
	case n < 232:
		n -= 16
		return paint(fmt.Sprintf("#%02x%02x%02x", cube[n/36], cube[n/6%6], cube[n%6]))
	}
	grey := 8 + 10*(n-232)
	return paint(fmt.Sprintf("#%02x%02x%02x", grey, grey, grey))
}
