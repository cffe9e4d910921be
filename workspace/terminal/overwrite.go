package terminal

import "strings"

// Overwrite resolves carriage returns: within a line, what follows one replaces
// what stood there, as far as it reaches. An empty piece replaces nothing.
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
// lines. What would be left of half a pair is removed with it.
func Erase(s string) string {
	if strings.IndexByte(s, '\b') < 0 {
		return s
	}
	u := units(s)
	out := u[:0]
	for i, c := range u {
		if c != '\b' {
			out = append(out, c)
			continue
		}
		if len(out) == 0 {
			continue
		}
		gone := out[len(out)-1]
		out = out[:len(out)-1]
		last := i+1 == len(u) || u[i+1] != '\b'
		if last && low(gone) && len(out) > 0 && high(out[len(out)-1]) {
			out = out[:len(out)-1]
		}
	}
	return text(out)
}
