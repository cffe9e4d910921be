package screen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Limit is how long a test waits for a condition before it fails. Nothing is measured by it.
const Limit = time.Minute

// ROOST_GOLDEN=rewrite go test ./package makes Golden write its files. With ROOST_PICTURES=FOLDER it also draws each
// picture there, as FOLDER/NAME.svg: those of README and docs come from there.
const rewrite, pictures = "ROOST_GOLDEN", "ROOST_PICTURES"

// On starts a program on a terminal of a test. It is skipped where there are no pseudo-terminals.
func On(t testing.TB, cmd *exec.Cmd, o Options) *Terminal {
	t.Helper()
	x, err := Start(cmd, o)
	if errors.Is(err, ErrNone) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Close)
	return x
}

// See waits until each of the texts is seen, and none of those after "!".
func See(t testing.TB, x *Terminal, texts ...string) *Picture {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Limit)
	defer cancel()
	p, err := x.WaitFor(ctx, texts...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Press types keys, named as in a script.
func Press(t testing.TB, x *Terminal, names string) {
	t.Helper()
	list, err := keys(names)
	for _, key := range list {
		err = errors.Join(err, x.Type(key))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Golden waits until the text of the screen is that of a file of testdata. steady replaces what differs from run to
// run (folders, ids, moments); nil changes nothing. With ROOST_GOLDEN=rewrite it writes the file from the screen as it
// is once nothing has changed for a while.
func Golden(t testing.TB, x *Terminal, name string, steady func(string) string) {
	t.Helper()
	golden(t, x, name, steady, (*Picture).Text)
}

// GoldenLooks is Golden for a file that also holds how each cell looks: below the text a letter for each cell that has
// a look of its own, and what the letters mean.
func GoldenLooks(t testing.TB, x *Terminal, name string, steady func(string) string) {
	t.Helper()
	golden(t, x, name, steady, func(p *Picture) string { return p.Text() + p.looks() })
}

func golden(t testing.TB, x *Terminal, name string, steady func(string) string, text func(*Picture) string) {
	t.Helper()
	if steady == nil {
		steady = func(s string) string { return s }
	}
	path := filepath.Join("testdata", name+".txt")
	if os.Getenv(rewrite) == "rewrite" {
		got := x.settled(t.Context(), func(p *Picture) string { return text(p.with(steady)) })
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(got), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), Limit)
	defer cancel()
	p, err := x.Wait(ctx, func(p *Picture) bool { return text(p.with(steady)) == string(want) })
	if err != nil {
		t.Fatalf("the screen is not %s (-want +got):\n%s", path, cmp.Diff(string(want), text(p.with(steady))))
	}
	if dir := os.Getenv(pictures); dir != "" {
		var b bytes.Buffer
		file := filepath.Join(dir, name+".svg")
		err := errors.Join(SVG(&b, []Frame{{Picture: p.with(steady)}}, x.themes(p)...), os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, b.Bytes(), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
}

// themes are those of a drawn picture: the terminal's alone where colours were chosen for its ground.
func (t *Terminal) themes(p *Picture) []Theme {
	for _, cells := range p.Cells {
		for _, c := range cells {
			if max(c.Look.Fg, c.Look.Bg) > Palette(15) {
				return []Theme{map[bool]Theme{false: Dark, true: Light}[t.light]}
			}
		}
	}
	return nil
}

// with is the picture with another text in its lines. What replaces a text looks as that did.
func (p *Picture) with(steady func(string) string) *Picture {
	out := *p
	out.Cells = slices.Clone(p.Cells)
	lines := strings.Split(strings.TrimSuffix(steady(p.Text()), "\n"), "\n")
	for y := range min(len(lines), len(p.Cells)) {
		if before := p.Line(y); before != lines[y] {
			out.Cells[y] = replaced(p.Cells[y], []rune(before), []rune(lines[y]))
		}
	}
	return &out
}

// replaced are the cells of a line whose text changes, where it differs.
func replaced(cells []Cell, before, after []rune) (out []Cell) {
	begin, end := 0, 0
	for begin < min(len(before), len(after)) && before[begin] == after[begin] {
		begin++
	}
	for end < min(len(before), len(after))-begin && before[len(before)-1-end] == after[len(after)-1-end] {
		end++
	}
	at, inserted, kept := 0, false, true // at counts in before
	for _, c := range cells {
		n := len([]rune(c.Text))
		if c.Width == 0 { // the right half of the cell before
			if kept {
				out = append(out, c)
			}
			continue
		}
		if at+n > begin && !inserted {
			inserted = true
			for _, r := range after[begin : len(after)-end] {
				out = append(out, Cell{Text: string(r), Width: 1, Look: c.Look})
			}
		}
		if kept = at < begin || at >= len(before)-end; kept {
			out = append(out, c)
		}
		at += n
	}
	for len(out) < len(cells) {
		out = append(out, Cell{Text: " ", Width: 1})
	}
	return out[:len(cells)]
}

// letters are the names of looks in a kept picture, one letter a look.
const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// looks are the lines of letters for the cells, and what each letter means. A cell that looks as the terminal's own
// text has none.
func (p *Picture) looks() string {
	var known []Look
	var grid, legend strings.Builder
	for _, cells := range p.Cells {
		line := ""
		for _, c := range cells {
			look := c.seen()
			n := slices.Index(known, look)
			if n < 0 && look != (Look{}) {
				n, known = len(known), append(known, look)
				fmt.Fprintf(&legend, "%c %s\n", letters[n%len(letters)], look)
			}
			if n < 0 {
				line += " "
			} else {
				line += letters[n%len(letters) : n%len(letters)+1]
			}
		}
		grid.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return "--- looks\n" + strings.TrimRight(grid.String(), "\n") + "\n--- letters\n" + legend.String()
}

// seen is the part of a cell's look that is visible: the colour of the text of a blank is not.
func (c Cell) seen() Look {
	look := c.Look
	if strings.TrimSpace(c.Text) == "" && c.Width > 0 {
		look.Bold, look.Faint, look.Italic = false, false, false
		if !look.Reverse && !look.Underline && !look.Striken {
			look.Fg = Default
		}
	}
	return look
}

// String is the look in words: the text's colour, "on" its ground's, attributes.
func (l Look) String() string {
	words := []string{l.Fg.String()}
	if l.Bg != Default {
		words = append(words, "on", l.Bg.String())
	}
	for _, a := range []struct {
		on   bool
		name string
	}{{l.Bold, "bold"}, {l.Faint, "faint"}, {l.Italic, "italic"}, {l.Underline, "underline"}, {l.Reverse, "reverse"}, {l.Striken, "struck"}} {
		if a.on {
			words = append(words, a.name)
		}
	}
	return strings.Join(words, " ")
}

// String is "own" for the terminal's own colour, else its number in the palette or #rrggbb.
func (c Colour) String() string {
	switch {
	case c == Default:
		return "own"
	case c&RGB != 0:
		return fmt.Sprintf("#%06x", uint32(c&^RGB))
	}
	return strconv.Itoa(int(c) - 1)
}

// settled is what the screen shows once that has not changed for a while.
func (t *Terminal) settled(ctx context.Context, text func(*Picture) string) string {
	for {
		was := text(t.Picture())
		soon, cancel := context.WithTimeout(ctx, 700*time.Millisecond)
		_, err := t.Wait(soon, func(p *Picture) bool { return text(p) != was })
		cancel()
		if err != nil {
			return was
		}
	}
}
