package workspace

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// class is a bracket expression such as [a-z], [!x] or [[:digit:]].
type class struct {
	negate bool
	ranges []runeRange
	tests  []func(rune) bool
}

type runeRange struct{ lo, hi rune }

// parseClass parses what follows "[" and returns how many bytes it used. An
// unclosed bracket is not a class, and then the whole line matches nothing.
func parseClass(s string, fold bool) (*class, int, bool) {
	c := &class{}
	i := 0
	if strings.HasPrefix(s, "!") || strings.HasPrefix(s, "^") {
		c.negate = true
		i++
	}
	first := true
	for i < len(s) {
		if s[i] == ']' && !first {
			return c, i + 1, true
		}
		first = false
		if strings.HasPrefix(s[i:], "[:") {
			if name, _, ok := strings.Cut(s[i+2:], ":]"); ok {
				test, known := posixClasses[name]
				if !known {
					return nil, 0, false
				}
				if fold && (name == "upper" || name == "lower") {
					test = func(r rune) bool { return unicode.IsUpper(r) || unicode.IsLower(r) }
				}
				c.tests = append(c.tests, test)
				i += len(name) + 4
				continue
			}
		}
		lo, n, ok := classRune(s[i:])
		if !ok {
			return nil, 0, false
		}
		i += n
		hi := lo
		if i+1 < len(s) && s[i] == '-' && s[i+1] != ']' {
			if hi, n, ok = classRune(s[i+1:]); !ok {
				return nil, 0, false
			}
			i += 1 + n
		}
		c.ranges = append(c.ranges, runeRange{lo, hi})
	}
	return nil, 0, false
}

func classRune(s string) (rune, int, bool) {
	r, n := utf8.DecodeRuneInString(s)
	if r != '\\' {
		return r, n, true
	}
	if n == len(s) {
		return 0, 0, false
	}
	r, m := utf8.DecodeRuneInString(s[n:])
	return r, n + m, true
}

func (c *class) has(r rune, fold bool) bool {
	in := c.holds(r)
	if fold && !in {
		in = c.holds(unicode.ToLower(r)) || c.holds(unicode.ToUpper(r))
	}
	return in != c.negate
}

func (c *class) holds(r rune) bool {
	for _, g := range c.ranges {
		if g.lo <= r && r <= g.hi {
			return true
		}
	}
	for _, t := range c.tests {
		if t(r) {
			return true
		}
	}
	return false
}

var posixClasses = map[string]func(rune) bool{
	"alnum":  func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) },
	"alpha":  unicode.IsLetter,
	"blank":  func(r rune) bool { return r == ' ' || r == '\t' },
	"cntrl":  unicode.IsControl,
	"digit":  func(r rune) bool { return r >= '0' && r <= '9' },
	"graph":  func(r rune) bool { return unicode.IsGraphic(r) && r != ' ' },
	"lower":  unicode.IsLower,
	"print":  unicode.IsPrint,
	"punct":  func(r rune) bool { return r < 128 && (unicode.IsPunct(r) || unicode.IsSymbol(r)) },
	"space":  unicode.IsSpace,
	"upper":  unicode.IsUpper,
	"xdigit": func(r rune) bool { return strings.ContainsRune("0123456789abcdefABCDEF", r) },
}
