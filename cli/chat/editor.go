package chat

import (
	"slices"
	"strings"
	"unicode"

	display "github.com/roost-dev/roost/cli/term"
)

// editor is the text that is being typed, of one or more lines, and the cursor in it.
type editor struct {
	text []rune
	at   int    // the cursor is before this rune
	cut  []rune // what ctrl+k, ctrl+u and ctrl+w took last
	goal int    // the column that up and down keep, -1 = the cursor's

	history *History
	place   int    // in the history; its length = the text is new
	draft   string // the new text, while the user browses the history
}

func newEditor(h *History) *editor { return &editor{history: h, place: h.Len(), goal: -1} }

func (e *editor) String() string { return string(e.text) }

func (e *editor) empty() bool { return len(e.text) == 0 }

// set replaces the text and puts the cursor at its end.
func (e *editor) set(text string) {
	e.text = []rune(text)
	e.at, e.goal = len(e.text), -1
}

// clear forgets the text, and leaves the history.
func (e *editor) clear() {
	e.set("")
	e.place, e.draft = e.history.Len(), ""
}

// insert types text. Tabs become blanks, and of the other characters that have no
// picture only line breaks stay.
func (e *editor) insert(text string) {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\t", "    ").Replace(text)
	var in []rune
	for _, r := range display.Safe(text) {
		if r == '\n' || !unicode.IsControl(r) {
			in = append(in, r)
		}
	}
	e.text = slices.Insert(e.text, e.at, in...)
	e.at += len(in)
	e.goal = -1
}

func (e *editor) move(to int) {
	e.at = max(min(to, len(e.text)), 0)
	e.goal = -1
}

func (e *editor) remove(from, to int) {
	from, to = max(from, 0), min(to, len(e.text))
	if from < to {
		e.text = slices.Delete(e.text, from, to)
	}
	e.move(from)
}

func (e *editor) kill(from, to int) {
	if from < to {
		e.cut = slices.Clone(e.text[from:to])
	}
	e.remove(from, to)
}

// before and after are how far it is to the next place between two characters: what is
// drawn over a character belongs to it.
func (e *editor) before() int {
	n := 1
	for e.at-n > 0 && joins(e.text[e.at-n]) {
		n++
	}
	return min(n, e.at)
}

func (e *editor) after() int {
	n := 1
	for e.at+n < len(e.text) && joins(e.text[e.at+n]) {
		n++
	}
	return min(n, len(e.text)-e.at)
}

func joins(r rune) bool { return r != '\n' && display.Columns(string(r)) == 0 }

// lineStart and lineEnd are the ends of the line at i.
func (e *editor) lineStart(i int) int {
	for i > 0 && e.text[i-1] != '\n' {
		i--
	}
	return i
}

func (e *editor) lineEnd(i int) int {
	for i < len(e.text) && e.text[i] != '\n' {
		i++
	}
	return i
}

func letter(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

// wordLeft and wordRight are the next ends of a word.
func (e *editor) wordLeft() int {
	i := e.at
	for i > 0 && !letter(e.text[i-1]) {
		i--
	}
	for i > 0 && letter(e.text[i-1]) {
		i--
	}
	return i
}

func (e *editor) wordRight() int {
	i := e.at
	for i < len(e.text) && !letter(e.text[i]) {
		i++
	}
	for i < len(e.text) && letter(e.text[i]) {
		i++
	}
	return i
}

// blankLeft is where the word before the cursor begins. A word is what is between blanks.
func (e *editor) blankLeft() int {
	i := e.at
	for i > 0 && unicode.IsSpace(e.text[i-1]) {
		i--
	}
	for i > 0 && !unicode.IsSpace(e.text[i-1]) {
		i--
	}
	return i
}

// vertical moves a line up (-1) or down (1), and reports false where there is none.
func (e *editor) vertical(by int) bool {
	start := e.lineStart(e.at)
	goal := e.goal
	if goal < 0 {
		goal = e.at - start
	}
	to := 0
	if by < 0 {
		if start == 0 {
			return false
		}
		to = e.lineStart(start - 1)
	} else {
		end := e.lineEnd(e.at)
		if end == len(e.text) {
			return false
		}
		to = end + 1
	}
	e.at = min(to+goal, e.lineEnd(to))
	e.goal = goal
	return true
}

// older and newer go through the history. What was typed and not sent comes again
// behind its end.
func (e *editor) older() {
	if e.place == 0 {
		return
	}
	if e.place == e.history.Len() {
		e.draft = e.String()
	}
	e.place--
	e.set(e.history.At(e.place))
}

func (e *editor) newer() {
	if e.place >= e.history.Len() {
		return
	}
	e.place++
	if e.place == e.history.Len() {
		e.set(e.draft)
		return
	}
	e.set(e.history.At(e.place))
}

// edit applies a key to the text, and reports whether the key edits.
func (e *editor) edit(key string) bool {
	switch key {
	case "left", "ctrl+b":
		e.move(e.at - e.before())
	case "right", "ctrl+f":
		e.move(e.at + e.after())
	case "alt+left", "ctrl+left", "alt+b":
		e.move(e.wordLeft())
	case "alt+right", "ctrl+right", "alt+f":
		e.move(e.wordRight())
	case "home", "ctrl+a":
		e.move(e.lineStart(e.at))
	case "end", "ctrl+e":
		e.move(e.lineEnd(e.at))
	case "ctrl+home":
		e.move(0)
	case "ctrl+end":
		e.move(len(e.text))
	case "backspace", "ctrl+h", "shift+backspace":
		e.remove(e.at-e.before(), e.at)
	case "delete":
		e.remove(e.at, e.at+e.after())
	case "ctrl+w":
		e.kill(e.blankLeft(), e.at)
	case "alt+backspace", "ctrl+backspace":
		e.kill(e.wordLeft(), e.at)
	case "alt+d", "ctrl+delete":
		at := e.at
		e.kill(at, e.wordRight())
	case "ctrl+u":
		e.kill(e.lineStart(e.at), e.at)
	case "ctrl+k":
		end := e.lineEnd(e.at)
		if end == e.at && end < len(e.text) {
			end++ // at its end: the line break
		}
		e.kill(e.at, end)
	case "ctrl+y":
		e.insert(string(e.cut))
	case "alt+enter", "ctrl+j", "shift+enter":
		e.insert("\n")
	case "up", "ctrl+p":
		if !e.vertical(-1) {
			e.older()
		}
	case "down", "ctrl+n":
		if !e.vertical(1) {
			e.newer()
		}
	default:
		return false
	}
	return true
}
