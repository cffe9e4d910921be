package chat

import (
	"fmt"

	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	display "github.com/roost-dev/roost/cli/term"
)

// page is a terminal as far as the painter needs one, with all that scrolled away: its
// lines never end.
type page struct {
	t     *rapid.T
	width int
	lines [][]string // of cells; "" is the right half of a wide one
	y, x  int
}

func (p *page) Write(b []byte) (int, error) {
	text := string(b)
	for len(text) > 0 {
		if rest, ok := strings.CutPrefix(text, "\x1b["); ok {
			i := strings.IndexFunc(rest, func(r rune) bool { return r >= 0x40 && r <= 0x7e })
			p.control(rest[:i], rest[i])
			text = rest[i+1:]
			continue
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		switch r {
		case '\r':
			p.x = 0
		case '\n':
			p.y++
		default:
			p.put(string(r))
		}
	}
	return len(b), nil
}

func (p *page) line() *[]string {
	for len(p.lines) <= p.y {
		p.lines = append(p.lines, nil)
	}
	return &p.lines[p.y]
}

func (p *page) put(c string) {
	w := display.Columns(c)
	if p.x+w > p.width {
		p.t.Fatalf("%q is written behind column %d", c, p.width)
	}
	l := p.line()
	for len(*l) < p.x+w {
		*l = append(*l, " ")
	}
	(*l)[p.x] = c
	if w == 2 {
		(*l)[p.x+1] = ""
	}
	p.x += w
}

func (p *page) control(args string, final byte) {
	n, _ := strconv.Atoi(args)
	n = max(n, 1)
	switch final {
	case 'A':
		if p.y -= n; p.y < 0 {
			p.t.Fatal("the cursor left the screen")
		}
	case 'B':
		if p.y += n; p.y >= len(p.lines) {
			p.t.Fatal("the cursor went below what is drawn")
		}
	case 'C':
		p.x += n
	case 'J', 'K':
		l := p.line()
		*l = (*l)[:min(p.x, len(*l))]
		if final == 'J' {
			if p.y == 0 && p.x == 0 {
				p.t.Fatal("all is cleared: some terminals keep that")
			}
			p.lines = p.lines[:p.y+1]
		}
	case 'h', 'l', 'm':
	default:
		p.t.Fatalf("ESC [ %s %c", args, final)
	}
}

func (p *page) String() string {
	var out strings.Builder
	for _, l := range p.lines {
		out.WriteString(strings.TrimRight(strings.Join(l, ""), " ") + "\n")
	}
	return out.String()
}

// Whatever is printed and typed in whatever order: what was printed stands there once, in
// order, and below it the rows that were drawn last, with the cursor in its place.
func TestWhatIsPrintedStandsThereOnceAboveTheRows(t *testing.T) {
	words := rapid.StringMatching(`[a-z 日本]{0,30}`)
	rapid.Check(t, func(t *rapid.T) {
		const width = 24
		scr := &page{t: t, width: width}
		p := painter{w: scr}
		var printed, want strings.Builder
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			above := ""
			for range rapid.IntRange(0, 3).Draw(t, "lines") {
				above += "p" + strings.TrimSpace(fmt.Sprintf("%.10s", rapid.StringMatching(`[a-z]{0,10}`).Draw(t, "line"))) + "\n"
			}
			text := []rune(strings.Join(rapid.SliceOfN(words, 1, 4).Draw(t, "typed"), "\n"))
			at := rapid.IntRange(0, len(text)).Draw(t, "at")
			most := rapid.IntRange(1, 6).Draw(t, "most")
			r := typed("> ", "  ", &editor{text: text, at: at}, width, most)
			if len(r.list) > most || r.y < 0 || r.y >= len(r.list) || r.x >= width {
				t.Fatalf("%d rows of %d, the cursor at %d,%d", len(r.list), most, r.y, r.x)
			}
			p.draw(above, r, width)
			printed.WriteString(above)
			want.Reset()
			want.WriteString(printed.String())
			for _, l := range r.list {
				want.WriteString(strings.TrimRight(string(l), " ") + "\n")
			}
			// What is cleared and empty cannot be told apart, and need not be.
			if got, want := strings.TrimRight(scr.String(), "\n"), strings.TrimRight(want.String(), "\n"); got != want {
				t.Fatalf("the screen is\n%s\nwant\n%s", got, want)
			}
			if y := strings.Count(printed.String(), "\n") + r.y; scr.y != y || scr.x != r.x {
				t.Fatalf("the cursor is at %d,%d, not %d,%d", scr.y, scr.x, y, r.x)
			}
		}
		p.leave(width)
		if got := strings.TrimRight(scr.String(), "\n"); got != strings.TrimRight(printed.String(), "\n") {
			t.Fatalf("left behind:\n%s\nwant\n%s", got, printed.String())
		}
	})
}

// Whatever is typed is laid out in rows that fit, and nothing of it is lost.
func TestTypedTextIsLaidOutWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []rune(rapid.StringMatching(`[a-z 日\n]{0,200}`).Draw(t, "text"))
		width := rapid.IntRange(8, 60).Draw(t, "width")
		r := typed("> ", "  ", &editor{text: text, at: len(text)}, width, 0)
		var all strings.Builder
		for _, l := range r.list {
			if l.columns() >= width {
				t.Fatalf("row %q on %d columns", l, width)
			}
			all.WriteString(string(l))
		}
		strip := func(s string) string { return strings.NewReplacer(" ", "", "\n", "", ">", "").Replace(s) }
		if strip(all.String()) != strip(string(text)) {
			t.Fatalf("%q is laid out as %q", string(text), all.String())
		}
	})
}

func TestLongWordsAreShownShort(t *testing.T) {
	c := talking(t, newDesk(t))
	var lines []string
	for i := range 5000 {
		lines = append(lines, fmt.Sprintf("line %d.", i+1))
	}
	c.quote(strings.Join(lines, "\n"))
	got := c.text()
	for _, want := range []string{"› line 1.\n", "  line 25.\n  … 4970 more lines …\n  line 4996.\n", "  line 5000.\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if n := strings.Count(got, "\n"); n != quoted+1 {
		t.Errorf("%d lines", n)
	}
	from := len(got)
	c.quote(strings.Join(lines[:quoted], "\n"))
	if got := c.text()[from:]; strings.Contains(got, "more lines") || strings.Count(got, "\n") != quoted {
		t.Errorf("%d lines are cut:\n%s", quoted, got)
	}
}

// What others say while a screen is drawn stands above the editor, and is harmless.
func TestAside(t *testing.T) {
	c := talking(t, newDesk(t))
	c.Note("\nthe connection is lost (x\x1b[2J\u202ey)\nagain\n\n")
	c.Note("\n")
	if got := c.text(); got != "the connection is lost (xy)\nagain\n" {
		t.Errorf("it says %q", got)
	}
}
