package checkpoint

import "bytes"

// edit replaces lines from..to of a text by lines newFrom..newTo of another one.
type edit struct{ from, to, newFrom, newTo int }

// splitLines gives the lines of a text with their ends. A text that ends without one has
// a last line without one, which differs from the same line with one.
func splitLines(text []byte) [][]byte {
	var out [][]byte
	for len(text) > 0 {
		n := bytes.IndexByte(text, '\n') + 1
		if n == 0 {
			n = len(text)
		}
		out = append(out, text[:n])
		text = text[n:]
	}
	return out
}

// diffEffort bounds the work of a diff: the edits of a stretch that takes more are one
// replacement. Texts with so little in common are not read line by line.
const diffEffort = 4 << 20

// diffLines gives the edits that turn one text into another, in order, with equal lines
// between them: Myers' algorithm, from both ends, in linear space. The edits are the fewest
// possible unless the search exceeds diffEffort. The search of go-udiff was rejected: it
// stops after 100 edits and replaces the rest as a whole, which a merge would call a conflict.
func diffLines(a, b [][]byte) []edit {
	ids := map[string]int{}
	d := &differ{a: number(a, ids), b: number(b, ids), effort: diffEffort}
	size := 2*(len(a)+len(b)) + 4
	d.down, d.up = make([]int, size), make([]int, size)
	d.diff(0, len(a), 0, len(b))
	return d.out
}

// number gives equal lines equal numbers.
func number(lines [][]byte, ids map[string]int) []int {
	out := make([]int, len(lines))
	for i, l := range lines {
		n, ok := ids[string(l)]
		if !ok {
			n = len(ids)
			ids[string(l)] = n
		}
		out[i] = n
	}
	return out
}

type differ struct {
	a, b     []int
	down, up []int // the furthest points on each diagonal, from the start and from the end
	effort   int
	out      []edit
}

// diff adds the edits of a stretch.
func (d *differ) diff(a0, a1, b0, b1 int) {
	for a0 < a1 && b0 < b1 && d.a[a0] == d.b[b0] {
		a0, b0 = a0+1, b0+1
	}
	for a0 < a1 && b0 < b1 && d.a[a1-1] == d.b[b1-1] {
		a1, b1 = a1-1, b1-1
	}
	if a0 == a1 || b0 == b1 {
		d.add(edit{a0, a1, b0, b1})
		return
	}
	x, y, ok := d.middle(a0, a1, b0, b1)
	if !ok {
		d.add(edit{a0, a1, b0, b1})
		return
	}
	d.diff(a0, x, b0, y)
	d.diff(x, a1, y, b1)
}

// add joins edits that touch.
func (d *differ) add(e edit) {
	if e.from == e.to && e.newFrom == e.newTo {
		return
	}
	if n := len(d.out); n > 0 && d.out[n-1].to == e.from && d.out[n-1].newTo == e.newFrom {
		d.out[n-1].to, d.out[n-1].newTo = e.to, e.newTo
		return
	}
	d.out = append(d.out, e)
}

// middle gives a point on a shortest way through a stretch in which neither the first
// nor the last lines are equal. false: it takes too long.
func (d *differ) middle(a0, a1, b0, b1 int) (x, y int, ok bool) {
	n, m := a1-a0, b1-b0
	delta, odd := n-m, (n-m)%2 != 0
	mid := (n+m+1)/2 + 1 // diagonals lie from -mid to mid
	at := func(k int) int { return k + mid }
	d.down[at(1)], d.up[at(1)] = 0, 0
	for steps := 0; steps <= mid-1; steps++ {
		if d.effort -= 2*steps + 2; d.effort < 0 {
			return 0, 0, false
		}
		for k := -steps; k <= steps; k += 2 {
			if k == -steps || k != steps && d.down[at(k-1)] < d.down[at(k+1)] {
				x = d.down[at(k+1)]
			} else {
				x = d.down[at(k-1)] + 1
			}
			y = x - k
			for x < n && y >= 0 && y < m && d.a[a0+x] == d.b[b0+y] {
				x, y, d.effort = x+1, y+1, d.effort-1
			}
			d.down[at(k)] = x
			if back := delta - k; odd && back >= -(steps-1) && back <= steps-1 && x+d.up[at(back)] >= n && inside(x, y, n, m) {
				return a0 + x, b0 + y, true
			}
		}
		for k := -steps; k <= steps; k += 2 {
			if k == -steps || k != steps && d.up[at(k-1)] < d.up[at(k+1)] {
				x = d.up[at(k+1)]
			} else {
				x = d.up[at(k-1)] + 1
			}
			y = x - k
			for x < n && y >= 0 && y < m && d.a[a1-1-x] == d.b[b1-1-y] {
				x, y, d.effort = x+1, y+1, d.effort-1
			}
			d.up[at(k)] = x
			if back := delta - k; !odd && back >= -steps && back <= steps && x+d.down[at(back)] >= n && inside(n-x, m-y, n, m) {
				return a1 - x, b1 - y, true
			}
		}
	}
	return 0, 0, false
}

// inside: a point of the stretch that is neither of its ends, so that both parts are
// smaller.
func inside(x, y, n, m int) bool {
	return x >= 0 && y >= 0 && x <= n && y <= m && x+y > 0 && x+y < n+m
}
