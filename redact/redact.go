// Package redact masks secrets in text, and makes text safe for a terminal.
//
// Precision comes before recall, since the model does not see what is masked in a tool's output. So a rule needs a
// prefix that only a key has, the right alphabet and length, and content that is not a placeholder (few different
// characters, "EXAMPLE"). Besides the rules, the values given to New are masked, but only in their plain form: values
// in other encodings (base64, percent) are not found.
//
// A mask is [REDACTED:kind]. The same text gives the same masked text and count, whether it comes in one piece or,
// through a Writer, in pieces cut anywhere. A Writer holds back only text that may still become part of a secret:
// usually some dozens of bytes, at most 16 KiB within a private key.
package redact

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/workspace/terminal"
)

// Known is a secret whose value is known, such as a configured API key.
type Known struct {
	Kind  string // shown in the mask; "" = "key"
	Value string // a value shorter than 8 bytes is ignored: it would match by chance
}

const minKnown = 8

// Redactor finds secrets. It is immutable and safe for concurrent use.
type Redactor struct {
	rules []rule
	// A Redactor finds each keyword by its first two bytes. For most of the text one lookup per byte excludes a secret; a
	// search per keyword would read the text once for each keyword.
	group  [1 << 14]uint16 // of the keywords that begin with a pair of bytes; 0 = there are none
	groups [][]int         // indexes in rules, in order
	reach  int             // length of the longest keyword
}

// New makes a redactor for the built-in rules and for known values.
func New(known ...Known) *Redactor {
	r := &Redactor{groups: [][]int{nil}}
	// The longest value comes first: a value that holds another one must not be masked in part.
	longest := slices.Clone(known)
	slices.SortStableFunc(longest, func(a, b Known) int { return len(b.Value) - len(a.Value) })
	for _, k := range longest {
		if len(k.Value) < minKnown {
			continue
		}
		r.rules = append(r.rules, rule{kind: cmp.Or(k.Kind, "key"), keyword: k.Value, free: true})
	}
	r.rules = append(r.rules, rules...)
	for i, rule := range r.rules {
		group := &r.group[pair(rule.keyword, 0)]
		if *group == 0 {
			*group = uint16(len(r.groups)) //nolint:gosec // there are at most as many as pairs of bytes in keywords
			r.groups = append(r.groups, nil)
		}
		r.groups[*group] = append(r.groups[*group], i)
		r.reach = max(r.reach, len(rule.keyword))
	}
	return r
}

// pair numbers the two bytes at s[i]. Bytes that differ in their highest bit alone count as one, so that the table stays
// small: the comparison with the keyword decides.
func pair(s string, i int) uint16 { return uint16(s[i]&0x7f)<<7 | uint16(s[i+1]&0x7f) }

// String masks the secrets in s and counts them.
func (r *Redactor) String(s string) (masked string, count int) {
	out, count, _ := r.mask(nil, s, 0, true)
	if count == 0 {
		return s, 0
	}
	return string(out), count
}

// Whole is the length of the part of a text in which no secret is unfinished: text that comes later makes nothing of it a
// secret, unless a keyword of a rule has only begun at its end.
func (r *Redactor) Whole(s string) int {
	low := 0
	for i := 0; i < len(s)-1; i++ {
		if r.group[pair(s, i)] == 0 {
			continue
		}
		_, from, to, more := r.judge(s, i, 0, false)
		if more {
			return max(low, strings.LastIndexAny(s[:from], " \t\r\n")+1) // what stands in front may decide
		}
		if to > 0 {
			low, i = to, to-1
		}
	}
	return len(s)
}

// mask appends s to dst with its secrets masked. before is the byte in front of
// s, 0 for none. Unless final, the rest of s that could still be part of a
// secret is left alone: done is where it starts.
func (r *Redactor) mask(dst []byte, s string, before byte, final bool) (out []byte, count, done int) {
	copied := 0 // s[:copied] is in dst
	// A keyword that has not come whole cannot be judged.
	last := len(s) - 1
	if !final {
		last = len(s) - r.reach
	}
	i := 0
	for i < last {
		if r.group[pair(s, i)] == 0 {
			i++
			continue
		}
		kind, from, to, more := r.judge(s, i, before, final)
		if more {
			break
		}
		if kind == "" {
			i++
			continue
		}
		dst = append(dst, s[copied:from]...)
		dst = append(dst, "[REDACTED:"+kind+"]"...)
		copied, count = to, count+1
		i = to
	}
	done = len(s)
	if !final {
		done = max(copied, min(i, last))
	}
	return append(dst, s[copied:done]...), count, done
}

// judge tries the rules whose keyword may begin at start. With more, a secret that is not whole begins at from.
func (r *Redactor) judge(s string, start int, before byte, final bool) (kind string, from, to int, more bool) {
	front := before
	if start > 0 {
		front = s[start-1]
	}
	for _, i := range r.groups[r.group[pair(s, start)]] {
		rule := &r.rules[i]
		if !strings.HasPrefix(s[start:], rule.keyword) {
			continue
		}
		if rule.behind != nil && !rule.behind[front] || rule.behind == nil && !rule.free && (alnum[front] || front == '_') {
			continue
		}
		from, to, more := rule.match(s, start, final)
		if more {
			return "", start, 0, true
		}
		if to > from {
			return rule.kind, from, to, false
		}
	}
	return "", 0, 0, false
}

func (r *rule) match(s string, start int, final bool) (from, to int, more bool) {
	at := start + len(r.keyword)
	if r.special != nil {
		return r.special(s, at, final)
	}
	if r.body == nil {
		return start, at, false
	}
	most := cmp.Or(r.max, maxToken)
	n, more := run(s, at, r.body, most+1, final)
	if more || n < r.min || n > most && r.max > 0 || !random(s[at:at+n]) {
		return 0, 0, more
	}
	return start, at + n, false
}

// Writer masks secrets on their way to another writer. It is not safe for
// concurrent use.
type Writer struct {
	Screen
	count int
}

// Writer returns a masking writer in front of w. Close writes the rest that it holds back, and does not close w.
func (r *Redactor) Writer(w io.Writer) *Writer {
	masking := &Writer{}
	var before byte
	masking.Screen = Screen{w: w, pass: func(held []byte, final bool) ([]byte, int) {
		out, count, done := r.mask(nil, string(held), before, final)
		masking.count += count
		switch {
		case final:
			before = 0
		case done > 0:
			before = held[done-1]
		}
		return out, done
	}}
	return masking
}

// Count returns the number of secrets masked so far.
func (w *Writer) Count() int { return w.count }

// Terminal makes text of unknown origin safe to print. It removes escape sequences, control characters except newline
// and tab, marks that change the direction of text, and invisible characters; invalid UTF-8 becomes U+FFFD. It
// removes a carriage return before a newline and turns any other into a newline, so that no text overwrites another.
// A character that joins letters or emoji, or selects their form, stays after a non-ASCII character; after an ASCII
// character, where it could only hide something, it is removed.
func Terminal(s string) string { return visible(s, func(rune) string { return "" }) }

// Marked is Terminal, but it puts the name of a removed character in its place, such as ⟦U+202E⟧, so that a reader of
// a page sees that something was hidden. It removes the escape sequences of colours and moves, and names the ESC of others,
// whose text stays: a shell would run what a terminal takes for a title.
func Marked(s string) string {
	return visible(s, func(r rune) string { return fmt.Sprintf("⟦U+%04X⟧", r) })
}

var marks = lazyregexp.New("⟦U\\+[0-9A-F]{4,6}⟧")

// Unmarked puts the characters that Marked named back.
func Unmarked(s string) string {
	return marks().ReplaceAllStringFunc(s, func(name string) string {
		r, _ := strconv.ParseInt(name[len("⟦U+"):len(name)-len("⟧")], 16, 32) // it has hexadecimal digits alone
		return string(rune(r))
	})
}

// visible returns a text in which name(c) replaces each character c that controls a terminal or is invisible.
func visible(s string, name func(rune) string) string {
	if harmless(s) {
		return s
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	var out strings.Builder
	out.Grow(len(s))
	var last rune // the last rune written
	put := func(r rune) { out.WriteRune(r); last = r }
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			put(utf8.RuneError)
		case r == 0x1b:
			n = max(terminal.Escape(s[i:]), 1)
			if mark := name(r); mark != "" && !moves().MatchString(s[i:i+n]) {
				out.WriteString(mark)
				n = 1
			}
		case r == '\r':
			put('\n')
		case joins(r):
			if keycap := strings.HasPrefix(s[i+n:], "\u20e3"); last >= utf8.RuneSelf || keycap {
				put(r)
			} else {
				out.WriteString(name(r))
			}
		case r == '\n' || r == '\t':
			put(r)
		case unicode.IsControl(r) || unicode.In(r, hidden...):
			out.WriteString(name(r))
		default:
			put(r)
		}
		i += n
	}
	return out.String()
}

// moves finds the escape sequences of colours and moves.
var moves = lazyregexp.New(`^\x1b\[\??[0-9]*(;[0-9]+)*[A-Za-z]$`)

// hidden are the characters that act or that no terminal shows; among the last are letters, such as U+3164.
var hidden = []*unicode.RangeTable{unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Other_Default_Ignorable_Code_Point}

// joins reports whether a character has no look of its own and changes the look of its neighbours: joiners and
// selectors of a form.
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

// Screen makes the text written to it safe for a terminal. It is not safe for concurrent use. Close writes the rest
// that it holds back, and leaves the underlying writer open.
type Screen struct {
	w    io.Writer
	held []byte
	pass func(held []byte, final bool) (out []byte, done int) // out replaces the first bytes of held; all of them when final
}

// TerminalText returns a writer in front of w that passes text on, line by line, as Terminal returns it.
func TerminalText(w io.Writer) *Screen {
	const long = 1 << 20 // a longer line is passed on in parts
	return &Screen{w: w, pass: func(held []byte, final bool) ([]byte, int) {
		done := len(held)
		if !final {
			if done = bytes.LastIndexByte(held, '\n') + 1; done == 0 && len(held) >= long {
				done = wholeRunes(held)
			}
		}
		return []byte(Terminal(string(held[:done]))), done
	}}
}

// TerminalJSON returns a writer in front of w that escapes, in JSON, the characters that control a terminal or are
// invisible: the values stay the same.
func TerminalJSON(w io.Writer) *Screen {
	return &Screen{w: w, pass: func(held []byte, final bool) ([]byte, int) {
		done := len(held)
		if !final {
			done = wholeRunes(held)
		}
		return escaped(held[:done]), done
	}}
}

// Write accepts all of p, and may hold back a part of it.
func (s *Screen) Write(p []byte) (int, error) {
	s.held = append(s.held, p...)
	if err := s.flush(false); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes the rest. The writer can be used again for another text.
func (s *Screen) Close() error { return s.flush(true) }

func (s *Screen) flush(final bool) error {
	out, done := s.pass(s.held, final)
	s.held = s.held[:copy(s.held, s.held[done:])]
	if len(out) == 0 {
		return nil
	}
	_, err := s.w.Write(out)
	return err
}

// wholeRunes returns the length of p without an incomplete character at its end.
func wholeRunes(p []byte) int { return len(terminal.WholeEnd(p)) }

func escaped(p []byte) []byte {
	out := make([]byte, 0, len(p))
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		switch {
		case r == utf8.RuneError && n == 1:
			out = append(out, `\ufffd`...)
		case r == '\n' || r == '\t' || !unicode.IsControl(r) && !unicode.In(r, hidden...):
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
