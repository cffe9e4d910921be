package redact

import "strings"

// alphabet is a set of bytes.
type alphabet [256]bool

func letters(s string) *alphabet {
	var a alphabet
	for i := range len(s) {
		a[s[i]] = true
	}
	return &a
}

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
)

var (
	alnum   = letters(lower + upper + digits)
	word    = letters(lower + upper + digits + "_-")
	wordDot = letters(lower + upper + digits + "_-.")
	capital = letters(upper + digits)
	hex     = letters(digits + "abcdef")
	base64s = letters(lower + upper + digits + "+/=_-")
	bearers = letters(lower + upper + digits + "-._~+/=")

	npmTokens = letters(lower + upper + digits + "-._+/=")
)

// rule is one kind of secret: a keyword and what must follow it.
type rule struct {
	kind    string
	keyword string
	body    *alphabet
	min     int // of the body
	max     int // 0 = maxToken; a longer run is no secret of this kind
	free    bool
	behind  *alphabet // of the byte in front of the keyword; nil = free decides
	special func(s string, at int, final bool) (from, to int, more bool)
}

const maxToken = 1024

// run measures how far s[at:] stays in a, up to limit bytes. more: it reaches the
// end of s, which is not the end of the text.
func run(s string, at int, a *alphabet, limit int, final bool) (n int, more bool) {
	for n < limit && at+n < len(s) && a[s[at+n]] {
		n++
	}
	return n, !final && n < limit && at+n == len(s)
}

// random reports whether s looks like the output of a machine rather than of a writer of examples.
func random(s string) bool {
	var seen [256]bool
	distinct, number := 0, false
	for i := range len(s) {
		if !seen[s[i]] {
			seen[s[i]] = true
			distinct++
		}
		number = number || s[i] >= '0' && s[i] <= '9'
	}
	return distinct >= 8 && (number || len(s) >= 40) && !strings.Contains(s, "EXAMPLE") && !strings.Contains(s, "example")
}
