package redact

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/roost-dev/roost/workspace/terminal"
)

// Terminal makes text of unknown origin safe to print. It removes escape sequences, control characters except newline
// and tab, marks that turn the direction of text, and invisible format characters; bytes that are no UTF-8 become
// U+FFFD. A carriage return before a newline is removed; elsewhere it becomes a newline, so that nothing is
// overprinted. A character that joins letters or emoji, or selects their form, stays after such a character and is
// removed after an ASCII one, where it could only hide something.
func Terminal(s string) string {
	if harmless(s) {
		return s
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	var out strings.Builder
	out.Grow(len(s))
	var last rune // that was written
	put := func(r rune) { out.WriteRune(r); last = r }
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			put(utf8.RuneError)
		case r == 0x1b:
			n = max(terminal.Escape(s[i:]), 1)
		case r == '\r':
			put('\n')
		case joins(r):
			if keycap := strings.HasPrefix(s[i+n:], "\u20e3"); last >= utf8.RuneSelf || keycap {
				put(r)
			}
		case r == '\n' || r == '\t':
			put(r)
		case unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co):
			// dropped
		default:
			put(r)
		}
		i += n
	}
	return out.String()
}

// joins reports whether a character has no look of its own, and changes how its
// neighbours look: joiners and selectors of a form.
func joins(r rune) bool {
	return r == 0x200C || r == 0x200D || r == 0x034F || r >= 0xFE00 && r <= 0xFE0F || r >= 0xE0100 && r <= 0xE01EF
}

func harmless(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 && c != '\n' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}

// Screen makes what is written safe for a terminal. It is not safe for concurrent use.
// Close writes what is held back and leaves the writer behind it open.
type Screen struct {
	w     io.Writer
	held  []byte
	whole func([]byte) int // how much of the held bytes can be judged by itself
	clean func([]byte) []byte
}

// TerminalText returns a writer in front of w that passes text on as Terminal gives it, line
// by line.
func TerminalText(w io.Writer) *Screen {
	const long = 1 << 20 // a line that is longer goes in parts
	return &Screen{
		w: w,
		whole: func(p []byte) int {
			if i := bytes.LastIndexByte(p, '\n'); i >= 0 || len(p) < long {
				return i + 1
			}
			return runes(p)
		},
		clean: func(p []byte) []byte { return []byte(Terminal(string(p))) },
	}
}

// TerminalJSON returns a writer in front of w that escapes, in JSON, the characters that act on
// a terminal or show as nothing: the values stay what they are.
func TerminalJSON(w io.Writer) *Screen { return &Screen{w: w, whole: runes, clean: escaped} }

// Write takes all of p; a part of it may be held back.
func (s *Screen) Write(p []byte) (int, error) {
	s.held = append(s.held, p...)
	n := s.whole(s.held)
	if n == 0 {
		return len(p), nil
	}
	_, err := s.w.Write(s.clean(s.held[:n]))
	s.held = s.held[:copy(s.held, s.held[n:])]
	return len(p), err
}

// Close writes the rest.
func (s *Screen) Close() error {
	if len(s.held) == 0 {
		return nil
	}
	_, err := s.w.Write(s.clean(s.held))
	s.held = nil
	return err
}

// runes is the length of p without a character at its end that has not come whole.
func runes(p []byte) int {
	for n := len(p) - 1; n >= 0 && n > len(p)-utf8.UTFMax; n-- {
		if utf8.RuneStart(p[n]) {
			if !utf8.FullRune(p[n:]) {
				return n
			}
			break
		}
	}
	return len(p)
}

func escaped(p []byte) []byte {
	out := make([]byte, 0, len(p))
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		switch {
		case r == utf8.RuneError && n == 1:
			out = append(out, `\ufffd`...)
		case r == '\n' || r == '\t' || !unicode.IsControl(r) && !unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co):
			out = append(out, p[:n]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		p = p[n:]
	}
	return out
}
