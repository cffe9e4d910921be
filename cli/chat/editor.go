package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/internal/atomicfile"
)

// editor is the text that is being typed, of one or more lines, and the cursor in it.
type editor struct {
	text []rune
	long []string // long pastes; each is one character of text, see pasted
	at   int      // the cursor is before this rune
	cut  string   // the text that ctrl+k, ctrl+u or ctrl+w removed last
	goal int      // the column that up and down keep, -1 = the cursor's

	history *History
	place   int    // in the history; the history's length = the text is new
	draft   string // the new text, while the user browses the history
}

func newEditor(h *History) *editor { return &editor{history: h, place: h.Len(), goal: -1} }

// String returns the whole text, with its long pastes.
func (e *editor) String() string { return e.whole(e.text) }

// whole returns a part of the text, with its long pastes.
func (e *editor) whole(text []rune) string {
	if len(e.long) == 0 {
		return string(text)
	}
	var out strings.Builder
	for _, r := range text {
		if long, ok := e.pasted(r); ok {
			out.WriteString(long)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// firstLong is the first of the characters that stand for long pastes. They are in the private range at the end of
// Unicode; insert removes them from typed text.
const firstLong rune = 0x100000

// foldLines and foldBytes are the size above which the editor shows a paste as one word: drawing thousands of lines
// for each key would be too slow.
const (
	foldLines = 15
	foldBytes = 4 << 10
)

// pasted returns the long paste that a character stands for.
func (e *editor) pasted(r rune) (string, bool) {
	if i := int(r - firstLong); i >= 0 && i < len(e.long) {
		return e.long[i], true
	}
	return "", false
}

// shown returns a character in the form that the editor shows.
func (e *editor) shown(r rune) string {
	long, ok := e.pasted(r)
	if !ok {
		return string(r)
	}
	if lines := strings.Count(strings.TrimSuffix(long, "\n"), "\n") + 1; lines > 1 {
		return fmt.Sprintf("[%s lines pasted]", thousands(lines))
	}
	return fmt.Sprintf("[%s characters pasted]", thousands(len([]rune(long))))
}

func thousands(n int) string { return display.Thousands(strconv.Itoa(n)) }

func (e *editor) empty() bool { return len(e.text) == 0 }

// set replaces the text and puts the cursor at its end.
func (e *editor) set(text string) {
	e.text, e.long, e.at, e.goal = nil, nil, 0, -1
	e.insert(text)
}

// clear forgets the text, and returns to the end of the history.
func (e *editor) clear() {
	e.set("")
	e.place, e.draft = e.history.Len(), ""
}

var plain = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\t", "    ")

// insert types text. Tabs become blanks; other control characters are dropped, except for line breaks.
func (e *editor) insert(text string) {
	text = plain.Replace(text)
	in := slices.DeleteFunc([]rune(display.Safe(text)), func(r rune) bool {
		return r != '\n' && unicode.IsControl(r) || r >= firstLong
	})
	if len(in) > foldBytes || len(in) > foldLines && strings.Count(text, "\n") > foldLines {
		e.long = append(e.long, string(in))
		in = []rune{firstLong + rune(len(e.long)-1)}
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
		e.cut = e.whole(e.text[from:to])
	}
	e.remove(from, to)
}

// skip returns where the runes from i on that in accepts end, backward (by -1) or forward (1).
func (e *editor) skip(i, by int, in func(rune) bool) int {
	for next := i + min(by, 0); next >= 0 && next < len(e.text) && in(e.text[next]); next += by {
		i += by
	}
	return i
}

// before and after return the number of runes in the character before and after the cursor: marks that are drawn over
// a character belong to it.
func (e *editor) before() int { return min(e.at-e.skip(e.at, -1, joins)+1, e.at) }

func (e *editor) after() int { return min(e.skip(e.at+1, 1, joins), len(e.text)) - e.at }

func joins(r rune) bool { return r != '\n' && display.Columns(string(r)) == 0 }

// lineStart and lineEnd are the ends of the line at i.
func (e *editor) lineStart(i int) int { return e.skip(i, -1, inLine) }

func (e *editor) lineEnd(i int) int { return e.skip(i, 1, inLine) }

func inLine(r rune) bool { return r != '\n' }

func letter(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

func notBlank(r rune) bool { return !unicode.IsSpace(r) }

// word returns where the word before the cursor begins (by -1), or where the next one ends (1). in reports whether a
// character belongs to a word.
func (e *editor) word(by int, in func(rune) bool) int {
	between := e.skip(e.at, by, func(r rune) bool { return !in(r) })
	return e.skip(between, by, in)
}

// vertical moves the cursor a line up (-1) or down (1), and returns false if there is no such line.
func (e *editor) vertical(by int) bool {
	start := e.lineStart(e.at)
	goal := e.goal
	if goal < 0 {
		goal = e.at - start
	}
	end := e.lineEnd(e.at)
	to := end + 1
	if by < 0 && start == 0 || by > 0 && end == len(e.text) {
		return false
	} else if by < 0 {
		to = e.lineStart(start - 1)
	}
	e.at = min(to+goal, e.lineEnd(to))
	e.goal = goal
	return true
}

// older and newer move through the history. The text that was not sent comes after the newest entry.
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
	if e.place++; e.place == e.history.Len() {
		e.set(e.draft)
	} else {
		e.set(e.history.At(e.place))
	}
}

// edit applies a key to the text, and reports whether the key edits.
func (e *editor) edit(key string) bool {
	switch key {
	case "left", "ctrl+b":
		e.move(e.at - e.before())
	case "right", "ctrl+f":
		e.move(e.at + e.after())
	case "alt+left", "ctrl+left", "alt+b":
		e.move(e.word(-1, letter))
	case "alt+right", "ctrl+right", "alt+f":
		e.move(e.word(1, letter))
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
		e.kill(e.word(-1, notBlank), e.at)
	case "alt+backspace", "ctrl+backspace":
		e.kill(e.word(-1, letter), e.at)
	case "alt+d", "ctrl+delete":
		e.kill(e.at, e.word(1, letter))
	case "ctrl+u":
		e.kill(e.lineStart(e.at), e.at)
	case "ctrl+k":
		end := e.lineEnd(e.at)
		if end == e.at && end < len(e.text) {
			end++ // at the end of a line: its line break
		}
		e.kill(e.at, end)
	case "ctrl+y":
		e.insert(e.cut)
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

// Limits of the history.
const (
	historyEntries = 1000
	historyEntry   = 64 << 10 // bytes of one
)

// History is what a user typed, the oldest first. It is stored in a file that only its owner can read, each entry a
// JSON string on a line; several chats may add to it at once.
type History struct {
	path string // "" = it is not stored
	all  []string
}

// OpenHistory reads the history. It leaves out lines that cannot be read, so that a damaged file loses only these.
func OpenHistory(path string) (*History, error) {
	h := &History{path: path}
	if path == "" {
		return h, nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return h, fmt.Errorf("read the history of the chat: %w", err)
	}
	lines := 0
	for line := range bytes.Lines(data) {
		var text string
		if lines++; json.Unmarshal(line, &text) == nil && text != "" {
			h.put(text)
		}
	}
	if lines > 2*historyEntries { // many chats at once may write more
		return h, h.rewrite()
	}
	return h, nil
}

// put adds an entry in memory, unless it repeats the last one, and reports whether it did.
func (h *History) put(text string) bool {
	if n := len(h.all); n > 0 && h.all[n-1] == text {
		return false
	}
	h.all = append(h.all, text)
	h.all = h.all[max(len(h.all)-historyEntries, 0):]
	return true
}

// Add keeps a text that the user typed. A text that begins with a blank is not kept.
func (h *History) Add(text string) error {
	if strings.TrimSpace(text) == "" || text[0] == ' ' || text[0] == '\t' || len(text) > historyEntry {
		return nil
	}
	if !h.put(text) || h.path == "" {
		return nil
	}
	var f *os.File
	err := os.MkdirAll(filepath.Dir(h.path), 0o700)
	if err == nil {
		f, err = os.OpenFile(h.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep the line in the history: %w", err)
	}
	_, err = f.Write(lineOf(text)) // one write: lines of two chats do not mix
	return errors.Join(err, f.Close())
}

// lineOf returns the line of the file that holds an entry.
func lineOf(text string) []byte {
	line, _ := json.Marshal(text) // a text cannot fail
	return append(line, '\n')
}

// rewrite shortens the file to the entries in memory.
func (h *History) rewrite() error {
	var out bytes.Buffer
	for _, text := range h.all {
		out.Write(lineOf(text))
	}
	return api.Failed(atomicfile.WriteDerived(h.path, ".chat-*", out.Bytes()), "shorten the history of the chat")
}

// Len returns the number of entries.
func (h *History) Len() int { return len(h.all) }

// At returns an entry, the oldest at 0.
func (h *History) At(i int) string { return h.all[i] }

// Search finds the newest entry before a place that contains words, in any case of letters; -1 when there is none.
func (h *History) Search(words string, before int) int {
	words = strings.ToLower(words)
	for i := min(before, len(h.all)) - 1; i >= 0; i-- {
		if strings.Contains(strings.ToLower(h.all[i]), words) {
			return i
		}
	}
	return -1
}
