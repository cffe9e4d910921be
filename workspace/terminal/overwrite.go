package terminal

import "strings"

// Overwrite resolves carriage returns: within a line, the text after one replaces the text before it, as far as it
// reaches. An empty piece replaces nothing.
func Overwrite(s string) string {
	if strings.IndexByte(s, '\r') < 0 {
		return s
	}
	var out strings.Builder
	for i, line := range strings.Split(s, "\n") {
		if i > 0 {
			out.WriteByte('\n')
		}
		if strings.IndexByte(line, '\r') < 0 {
			out.WriteString(line)
			continue
		}
		out.WriteString(overwriteLine(line))
	}
	return out.String()
}

func overwriteLine(line string) string {
	pieces := strings.Split(line, "\r")
	if ascii(line) {
		cur := []byte(pieces[0])
		for _, p := range pieces[1:] {
			if len(p) >= len(cur) {
				cur = []byte(p)
			} else {
				copy(cur, p)
			}
		}
		return string(cur)
	}
	cur := units(pieces[0])
	for _, p := range pieces[1:] {
		u := units(p)
		n := len(u)
		if n >= len(cur) {
			cur = u
			continue
		}
		// Half a pair cannot stay: a blank takes its place.
		half := n > 0 && (high(u[n-1]) || low(cur[n]))
		copy(cur, u)
		if half {
			cur[n] = ' '
		}
	}
	return text(cur)
}

// Erase resolves backspaces: each removes the code unit before it, also across
// lines. What is left of half a pair at the end is removed with it.
func Erase(s string) string {
	if strings.IndexByte(s, '\b') < 0 {
		return s
	}
	u := units(s)
	out := u[:0]
	var halves []int // where in out a pair lost its second half
	for _, c := range u {
		if c != '\b' {
			out = append(out, c)
			continue
		}
		n := len(out) - 1
		if n < 0 {
			continue
		}
		if len(halves) > 0 && halves[len(halves)-1] == n {
			halves = halves[:len(halves)-1]
		}
		if splits(out, n) {
			halves = append(halves, n-1)
		}
		out = out[:n]
	}
	kept := out[:0]
	for i, c := range out {
		if len(halves) > 0 && halves[0] == i {
			halves = halves[1:]
			continue
		}
		kept = append(kept, c)
	}
	return text(kept)
}
