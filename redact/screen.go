package redact

import (
	"bytes"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

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
