package cli

import (
	"strconv"
	"strings"
	"unicode/utf8"

	display "github.com/roost-dev/roost/cli/term"
)

// vt is a terminal's screen, as far as programs that draw on all of it need one:
// bytes go in, and what a person sees comes out. A sequence that it does not know it
// keeps in odd.
type vt struct {
	rows, cols  int
	cells       [][]string // "" is the right half of a wide character
	x, y        int
	top, bottom int // of the scrolled region, from 0, bottom included
	last        string
	alt, hidden bool
	pending     []byte
	odd         []string
}

func newVT(rows, cols int) *vt {
	v := new(vt)
	v.resize(rows, cols)
	return v
}

func (v *vt) resize(rows, cols int) {
	v.rows, v.cols, v.top, v.bottom = rows, cols, 0, rows-1
	for len(v.cells) < rows {
		v.cells = append(v.cells, nil)
	}
	v.cells = v.cells[:rows]
	for i := range v.cells {
		for len(v.cells[i]) < cols {
			v.cells[i] = append(v.cells[i], " ")
		}
		v.cells[i] = v.cells[i][:cols]
	}
	v.x, v.y = min(v.x, cols-1), min(v.y, rows-1)
}

// String is the screen, a line a row, without blanks at the ends.
func (v *vt) String() string {
	var out strings.Builder
	for _, row := range v.cells {
		out.WriteString(strings.TrimRight(strings.Join(row, ""), " ") + "\n")
	}
	return out.String()
}

func (v *vt) write(p []byte) {
	v.pending = append(v.pending, p...)
	for len(v.pending) > 0 {
		n := v.step(v.pending)
		if n == 0 {
			return // the rest comes
		}
		v.pending = v.pending[n:]
	}
}

// step takes one character or sequence, and says how long it is; 0 = it is not whole.
func (v *vt) step(p []byte) int {
	switch c := p[0]; {
	case c == 0x1b:
		return v.escape(p)
	case c == '\r':
		v.x = 0
	case c == '\n':
		v.down()
	case c == '\b':
		v.x = max(v.x-1, 0)
	case c == '\t':
		v.x = min(v.x/8*8+8, v.cols-1)
	case c < 0x20:
	default:
		if !utf8.FullRune(p) {
			return 0
		}
		r, n := utf8.DecodeRune(p)
		v.put(string(r))
		return n
	}
	return 1
}

func (v *vt) put(char string) {
	w := display.Columns(char)
	if w == 0 {
		v.cells[v.y][max(v.x-1, 0)] += char
		return
	}
	if v.x+w > v.cols {
		v.x = 0
		v.down()
	}
	v.cells[v.y][v.x] = char
	if w == 2 {
		v.cells[v.y][v.x+1] = ""
	}
	v.x, v.last = v.x+w, char
}

func (v *vt) down() {
	if v.y == v.bottom {
		v.scroll(v.top, 1)
	} else {
		v.y = min(v.y+1, v.rows-1)
	}
}

// scroll moves the lines from top to the region's end up by n, or down by -n.
func (v *vt) scroll(top, n int) {
	for ; n > 0; n-- {
		copy(v.cells[top:v.bottom+1], v.cells[top+1:v.bottom+1])
		v.cells[v.bottom] = blank(v.cols)
	}
	for ; n < 0; n++ {
		copy(v.cells[top+1:v.bottom+1], v.cells[top:v.bottom])
		v.cells[top] = blank(v.cols)
	}
}

func blank(n int) []string { return strings.Split(strings.Repeat(" ", n), "") }

func (v *vt) escape(p []byte) int {
	if len(p) < 2 {
		return 0
	}
	switch p[1] {
	case '[':
		for i := 2; i < len(p); i++ {
			if p[i] >= 0x40 && p[i] <= 0x7e {
				v.csi(string(p[2:i]), p[i])
				return i + 1
			}
		}
		return 0
	case ']', 'P', '_':
		v.odd = append(v.odd, string(p[:2]))
		end := strings.IndexAny(string(p), "\a\x1b\\")
		return max(end+1, 2)
	case 'M':
		if v.y == v.top {
			v.scroll(v.top, -1)
		} else {
			v.y = max(v.y-1, 0)
		}
	case '7', '8', '=', '>':
	default:
		v.odd = append(v.odd, string(p[:2]))
	}
	return 2
}

func (v *vt) csi(params string, final byte) {
	if strings.ContainsAny(params, "<=>?$ ") {
		switch params + string(final) {
		case "?1049h", "?1049l":
			v.alt = final == 'h'
			v.cells = nil
			v.resize(v.rows, v.cols)
		case "?25h", "?25l":
			v.hidden = final == 'l'
		}
		return
	}
	var args []int
	for _, s := range strings.Split(params, ";") {
		n, _ := strconv.Atoi(s)
		args = append(args, n)
	}
	n := max(args[0], 1)
	line := v.cells[v.y]
	switch final {
	case 'A':
		v.y = max(v.y-n, 0)
	case 'B':
		v.y = min(v.y+n, v.rows-1)
	case 'C':
		v.x = min(v.x+n, v.cols-1)
	case 'D':
		v.x = max(min(v.x, v.cols-1)-n, 0)
	case 'Z':
		v.x = max((v.x+7)/8-n, 0) * 8
	case 'I':
		v.x = min((v.x/8+n)*8, v.cols-1)
	case 'G', '`':
		v.x = min(n, v.cols) - 1
	case 'd':
		v.y = min(n, v.rows) - 1
	case 'H', 'f':
		v.y, v.x = min(n, v.rows)-1, 0
		if len(args) > 1 {
			v.x = min(max(args[1], 1), v.cols) - 1
		}
	case 'J', 'K':
		v.erase(args[0], final == 'J')
	case 'X':
		copy(line[min(v.x, v.cols):], blank(min(n, max(v.cols-v.x, 0))))
	case 'P':
		copy(line[v.x:], append(append([]string{}, line[min(v.x+n, v.cols):]...), blank(n)...))
	case '@':
		copy(line[v.x:], append(blank(n), line[v.x:]...))
	case 'L':
		v.scroll(v.y, -n)
	case 'M':
		v.scroll(v.y, n)
	case 'S':
		v.scroll(v.top, n)
	case 'T':
		v.scroll(v.top, -n)
	case 'b':
		for range n {
			v.put(v.last)
		}
	case 'r':
		v.top, v.bottom, v.x, v.y = n-1, v.rows-1, 0, 0
		if len(args) > 1 && args[1] > 0 {
			v.bottom = min(args[1], v.rows) - 1
		}
	case 'm':
	default:
		v.odd = append(v.odd, "\x1b["+params+string(final))
	}
}

// erase blanks a line, or with it the lines above or below: what is 0 for what comes,
// 1 for what was before, 2 for all.
func (v *vt) erase(what int, screen bool) {
	from, to := min(v.x, v.cols), v.cols
	if what > 0 {
		from = 0
	}
	if what == 1 {
		to = min(v.x+1, v.cols)
	}
	copy(v.cells[v.y][from:to], blank(to-from))
	for y := range v.cells {
		if screen && (what == 2 || what == 0 && y > v.y || what == 1 && y < v.y) {
			v.cells[y] = blank(v.cols)
		}
	}
}
