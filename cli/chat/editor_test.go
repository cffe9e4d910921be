package chat

import (
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	display "github.com/roost-dev/roost/cli/term"
)

// press types keys: those of more than one letter by their names, the rest as text.
func press(e *editor, keys ...string) {
	for _, k := range keys {
		if !e.edit(k) {
			e.insert(k)
		}
	}
}

// marked is the text with a | where the cursor stands.
func marked(e *editor) string { return string(e.text[:e.at]) + "|" + string(e.text[e.at:]) }

func TestEditing(t *testing.T) {
	for _, tt := range []struct {
		keys string // between blanks; _ is a blank
		want string
	}{
		{"hello left left X", "helXl|o" /* see below */},
		{"one_two ctrl+w", "one |"},
		{"one_two ctrl+w ctrl+y ctrl+y", "one twotwo|"},
		{"one/two alt+backspace", "one/|"},
		{"one_two alt+left X", "one X|two"},
		{"one_two home delete ctrl+e !", "ne two!|"},
		{"one_two home alt+d", "| two"},
		{"one_two home alt+right right ctrl+k", "one |"},
		{"a ctrl+j b up X", "aX|\nb"},
		{"abc alt+enter d shift+enter efg up up end Y down", "abcY\nd|\nefg"},
		{"abcd ctrl+j e ctrl+j fghi up down left left left down", "abcd\ne\nf|ghi"},
		{"ab ctrl+j cd ctrl+u", "ab\n|"},
		{"ab ctrl+j cd up end ctrl+k", "ab|cd"},
		{"e\u0301x left left backspace", "|e\u0301x"},
		{"e\u0301x left backspace", "|x"},
		{"日本 backspace", "日|"},
		{"a\x1b[31mb\ac", "abc|"},
		{"a\tb\r\nc\rd", "a    b\nc\nd|"},
		{"x backspace backspace delete left right up down", "|"},
	} {
		e := newEditor(&History{})
		for _, k := range strings.Split(tt.keys, " ") {
			press(e, strings.ReplaceAll(k, "_", " "))
		}
		if tt.want == "helXl|o" {
			tt.want = "helX|lo"
		}
		if got := marked(e); got != tt.want {
			t.Errorf("%q gives %q, want %q", tt.keys, got, tt.want)
		}
	}
}

func TestTheHistoryIsGoneThroughAndTheDraftComesBack(t *testing.T) {
	e := newEditor(&History{all: []string{"one", "two\nlines"}})
	press(e, "draft")
	for _, step := range []struct{ key, want string }{
		{"up", "two\nlines"}, {"up", "two\nlines"}, {"up", "one"}, {"up", "one"}, {"down", "two\nlines"}, {"down", "draft"}, {"down", "draft"},
	} {
		press(e, step.key)
		if e.String() != step.want {
			t.Fatalf("after %s it is %q, want %q", step.key, e.String(), step.want)
		}
	}
	press(e, "up", "up", "up")
	e.clear()
	if press(e, "new", "up"); e.String() != "two\nlines" {
		t.Errorf("after sending, the newest is %q", e.String())
	}
}

var editingKeys = []string{
	"left", "right", "up", "down", "home", "end", "ctrl+home", "ctrl+end", "backspace", "delete", "ctrl+w", "alt+backspace", "alt+d", "ctrl+u", "ctrl+k",
	"ctrl+y", "ctrl+j", "alt+left", "alt+right", "a", " ", "é", "e\u0301", "日", "\U0001F600", "two\nlines", "\x1b[2J", "\u202e", "\t",
}

// Whatever is pressed: the cursor is in the text, and the text holds nothing that would do
// something to a terminal. Laid out, no row is too wide, the cursor stands on one, and
// nothing is lost.
func TestAnyKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := newEditor(&History{all: []string{"old", "older\nstill"}})
		for range rapid.IntRange(0, 40).Draw(t, "n") {
			press(e, rapid.SampledFrom(editingKeys).Draw(t, "key"))
			if e.at < 0 || e.at > len(e.text) {
				t.Fatalf("the cursor is at %d of %d", e.at, len(e.text))
			}
		}
		for _, r := range e.text {
			if r != '\n' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf)) {
				t.Fatalf("the text is %q", e.String())
			}
		}
		width, most := rapid.IntRange(6, 30).Draw(t, "width"), rapid.IntRange(0, 5).Draw(t, "most")
		r := typed("› ", "  ", e, width, most)
		if most > 0 && len(r.list) > most || r.y < 0 || r.y >= len(r.list) {
			t.Fatalf("the cursor is in row %d of %d", r.y, len(r.list))
		}
		all := ""
		for i, line := range r.list {
			if line.columns() >= width {
				t.Fatalf("row %q is too wide for %d", line, width)
			}
			if i == r.y && (r.x > line.columns() || r.x >= width) {
				t.Fatalf("the cursor is in column %d of %q", r.x, line)
			}
			all += string(line)
		}
		if most == 0 {
			flat := strings.NewReplacer("\n", "", " ", "", "›", "")
			if got, want := flat.Replace(all), flat.Replace(e.String()); got != want {
				t.Fatalf("laid out it is %q, want %q", got, want)
			}
		}
	})
}

func TestTheCursorStandsWhereItIsTyped(t *testing.T) {
	for _, tt := range []struct {
		text string
		at   int
		y, x int
	}{
		{"", 0, 0, 2}, {"abc", 1, 0, 3}, {"abc", 3, 0, 5}, {"日本", 1, 0, 4}, {"ab\ncd", 3, 1, 2}, {"abcdefg", 7, 0, 9}, {"abcdefgh", 7, 1, 0}, {"abcdefgh", 8, 1, 1},
	} {
		r := typed("› ", "  ", &editor{text: []rune(tt.text), at: tt.at}, 10, 0)
		if r.y != tt.y || r.x != tt.x {
			t.Errorf("%q at %d: row %d column %d, want %d and %d", tt.text, tt.at, r.y, r.x, tt.y, tt.x)
		}
	}
	if display.Columns("› ") != 2 {
		t.Error("the prompt has another width")
	}
}
