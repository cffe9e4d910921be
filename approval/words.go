package approval

import (
	"path"
	"runtime"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// State is the result of a decision.
type State string

// The states.
const (
	Allow State = "allow"
	Ask   State = "ask"
	Deny  State = "deny"
)

// hasOddCharacter reports a character that may look different from what runs, or that shells treat specially.
func hasOddCharacter(line string) bool {
	if !utf8.ValidString(line) {
		return true
	}
	for _, r := range line {
		if r == ' ' {
			continue
		}
		if unicode.IsControl(r) || unicode.IsSpace(r) || !unicode.IsGraphic(r) || unicode.In(r, unicode.Cf,
			unicode.Zl, unicode.Zp, unicode.Zs, unicode.Co) || blankLetter(r) {
			return true
		}
	}
	return false
}

// blankLetter reports letters and marks that show nothing.
func blankLetter(r rune) bool {
	return r == 0x034F || r == 0x115F || r == 0x1160 || r == 0x17B4 || r == 0x17B5 || r == 0x3164 || r == 0xFFA0 ||
		r == 0x2800 || r >= 0xFE00 && r <= 0xFE0F || r >= 0xE0100 && r <= 0xE01EF
}

// word is a word as far as it is known before the line runs.
type word struct {
	text  string
	known bool
}

func words(ws []*syntax.Word) []word {
	out := make([]word, len(ws))
	for i, w := range ws {
		known := true
		syntax.Walk(w, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ArithmExp, *syntax.ProcSubst, *syntax.ExtGlob, *syntax.BraceExp:
				known = false
			case *syntax.DblQuoted, *syntax.SglQuoted:
				_, single := n.(*syntax.SglQuoted)
				return !single
			case *syntax.Lit:
				if strings.ContainsAny(n.Value, "*?[{~^") && !insideQuotes(w, n) {
					known = false
				}
			}
			return known
		})
		text := ""
		if known {
			text, known = literal(w.Parts, false)
		}
		out[i] = word{text, known}
	}
	return out
}

// literal evaluates parts that hold no expansions.
func literal(parts []syntax.WordPart, quoted bool) (string, bool) {
	var b strings.Builder
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescape(part.Value, quoted))
		case *syntax.SglQuoted:
			if !part.Dollar {
				b.WriteString(part.Value)
				continue
			}
			s, err := expand.Literal(nil, &syntax.Word{Parts: []syntax.WordPart{part}})
			if err != nil {
				return "", false
			}
			b.WriteString(s)
		case *syntax.DblQuoted:
			s, ok := literal(part.Parts, true)
			if !ok {
				return "", false
			}
			b.WriteString(s)
		default:
			return "", false
		}
	}
	return b.String(), true
}

func unescape(s string, quoted bool) string {
	if !strings.Contains(s, "\\") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (!quoted || strings.IndexByte("\"\\$`\n", s[i+1]) >= 0) {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func insideQuotes(w *syntax.Word, lit *syntax.Lit) bool {
	for _, p := range w.Parts {
		if d, ok := p.(*syntax.DblQuoted); ok && d.Pos().Offset() <= lit.Pos().Offset() && lit.End().Offset() <= d.End().Offset() {
			return true
		}
	}
	return false
}

func baseName(s string) string { return strings.TrimSuffix(strings.ToLower(path.Base(s)), ".exe") }

var otherShell = runtime.GOOS == "windows"

// isStream reports a file that refers to an open one. A pattern that names what a program runs would not name it then:
// "echo TEXT | go run /dev/stdin".
func isStream(a string) bool {
	a = path.Clean(a)
	return a == "/dev/stdin" || strings.HasPrefix(a, "/dev/fd/") || strings.HasPrefix(a, "/proc/") && strings.Contains(a, "/fd/")
}
