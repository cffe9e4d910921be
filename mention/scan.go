package mention

import (
	"strings"
	"unicode/utf8"
)

// Kind is the kind of thing that a mention refers to.
type Kind string

// The kinds of mentions.
const (
	File     Kind = "file"     // a file or a folder
	Address  Kind = "address"  // scheme://...
	Commit   Kind = "commit"   // 7 to 40 lower-case hexadecimal digits
	Changes  Kind = "changes"  // git-changes
	Problems Kind = "problems" // problems
	Terminal Kind = "terminal" // terminal
)

// Mention is one "@..." in a text.
type Mention struct {
	Kind     Kind
	At, End  int    // byte offsets in the text, from the "@" on
	Name     string // as written, without the "@"
	Path     string // of a file: without the first "/", blanks no longer escaped
	Trailing bool   // a path that ends in "/"
}

// Scan finds the mentions of a text, in order. An "@" counts at the beginning and after a blank. A mention ends before
// a blank or the end, or before one punctuation mark followed by one of these.
func Scan(text string) []Mention {
	var out []Mention
	for at := 0; at < len(text); {
		next := strings.IndexByte(text[at:], '@')
		if next < 0 {
			break
		}
		at += next
		if n, kind := mentionLength(text[at+1:]); n > 0 && mayBegin(text, at) {
			m := Mention{
				Kind: kind,
				At:   at,
				End:  at + 1 + n,
				Name: text[at+1 : at+1+n],
			}
			if kind == File {
				m.Path = strings.ReplaceAll(m.Name[1:], `\ `, " ")
				m.Trailing = strings.HasSuffix(m.Path, "/")
			}
			out = append(out, m)
			at = m.End
			continue
		}
		at++
	}
	return out
}

// namedMentions are the mentions that are fixed names.
var namedMentions = []struct {
	word string
	kind Kind
}{{"problems", Problems}, {"git-changes", Changes}, {"terminal", Terminal}}

// mentionLength is the length of the mention at the beginning of a text, 0 when there is none.
func mentionLength(s string) (int, Kind) {
	if strings.HasPrefix(s, "/") {
		if n := bodyLength(s[1:]); n > 0 {
			return n + 1, File
		}
		return 0, ""
	}
	if n := count(s, isWord); n > 0 && strings.HasPrefix(s[n:], "://") {
		if b := bodyLength(s[n+3:]); b > 0 {
			return n + 3 + b, Address
		}
	}
	if n := count(s, isHex); n >= 7 && n <= 40 && count(s[n:], isWord) == 0 && mayEnd(s[n:]) {
		return n, Commit
	}
	for _, w := range namedMentions {
		if rest, ok := strings.CutPrefix(s, w.word); ok && count(rest, isWord) == 0 && mayEnd(rest) {
			return len(w.word), w.kind
		}
	}
	return 0, ""
}

// bodyLength is the length of the shortest run of at least one character after which a mention may end. A backslash is
// part of it only before a blank.
func bodyLength(s string) int {
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\\' && strings.HasPrefix(s[i+1:], " "):
			size = 2
		case r == '\\', isSpace(r):
			return 0
		}
		i += size
		if mayEnd(s[i:]) {
			return i
		}
	}
	return 0
}

// mayEnd reports whether a mention may end before a text.
func mayEnd(rest string) bool {
	if rest != "" && strings.IndexByte(".,;:!?", rest[0]) >= 0 && blankOrEnd(rest[1:]) {
		return true
	}
	return blankOrEnd(rest)
}

func blankOrEnd(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return s == "" || isSpace(r)
}

// mayBegin reports whether a mention or command may begin at a byte of a text.
func mayBegin(text string, at int) bool {
	r, _ := utf8.DecodeLastRuneInString(text[:at])
	return at == 0 || isSpace(r)
}

// Slash is one "/name" in a text.
type Slash struct {
	At, End int // byte offsets in the text, from the "/" on
	Name    string
}

// Commands finds possible slash commands, in order: at the beginning or after a blank, and before a blank or the end.
// It does not check whether a command of that name exists.
func Commands(text string) []Slash {
	var out []Slash
	for at := 0; at < len(text); at++ {
		next := strings.IndexByte(text[at:], '/')
		if next < 0 {
			break
		}
		at += next
		n := count(text[at+1:], isName)
		if n > 0 && mayBegin(text, at) && blankOrEnd(text[at+1+n:]) {
			out = append(out, Slash{At: at, End: at + 1 + n, Name: text[at+1 : at+1+n]})
		}
	}
	return out
}

func count(s string, is func(byte) bool) int {
	n := 0
	for n < len(s) && is(s[n]) {
		n++
	}
	return n
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' }

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func isName(c byte) bool { return isWord(c) || c == '.' || c == '-' }

// isSpace is ECMAScript's \s: unicode.IsSpace accepts U+0085 and not U+FEFF.
func isSpace(r rune) bool {
	switch r {
	case '\t', '\n', '\v', '\f', '\r', ' ', 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF:
		return true
	}
	return r >= 0x2000 && r <= 0x200A
}
