package term

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// pressed makes the keys that a reader makes of bytes, when each comes alone.
func pressed(bytes string) (keys []tea.Msg) {
	for _, r := range bytes {
		key := tea.KeyPressMsg{Code: r, Text: string(r)}
		switch r {
		case '\x1b':
			key = tea.KeyPressMsg{Code: tea.KeyEscape}
		case '\r':
			key = tea.KeyPressMsg{Code: tea.KeyEnter}
		case '\t':
			key = tea.KeyPressMsg{Code: tea.KeyTab}
		case '\x7f':
			key = tea.KeyPressMsg{Code: tea.KeyBackspace}
		case '\x03':
			key = tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
		}
		keys = append(keys, key)
	}
	return keys
}

// told writes what a screen sees.
func told(msgs []tea.Msg) string {
	var out []string
	for _, m := range msgs {
		switch m := m.(type) {
		case tea.KeyPressMsg:
			out = append(out, m.String())
		case tea.PasteMsg:
			out = append(out, fmt.Sprintf("paste %q", m.Content))
		default:
			out = append(out, fmt.Sprintf("%T", m))
		}
	}
	return strings.Join(out, " ")
}

// What comes in pieces is the key that was pressed, and an Esc only when nothing belongs to
// it. "." is a moment in which nothing comes.
func TestTornKeysArePutTogether(t *testing.T) {
	rest := "."
	for _, tt := range []struct{ bytes, want string }{
		{"\x1b" + rest, "esc"},
		{"\x1b" + rest + "[A", "esc [ A"},
		{"\x1b[A", "up"},
		{"\x1b[B\x1b[C\x1bOD", "down right left"},
		{"\x1b[H\x1b[F\x1b[3~\x1b[5~\x1b[6~", "home end delete pgup pgdown"},
		{"\x1b[1;5C\x1b[1;2A\x1b[Z", "ctrl+right shift+up shift+tab"},
		{"\x1b[99;9u\x1b[24~x", "super+c f12 x"}, // a screen does nothing for the first two
		{"\x1b[?1;2cx", "x"},                     // is no key
		{"\x1bb\x1b\r\x1b\x7f", "alt+b alt+enter alt+backspace"},
		{"\x1bxy", "esc x y"},
		{"\x1b\x1b" + rest, "esc esc"},
		{"\x1b\x1b[A", "esc up"},
		{"\x1b\x03", "esc ctrl+c"},
		{"\x1b[" + rest + "A", "esc [ A"},
		{"\x1b[日", "esc [ 日"},
		{"\x1b[" + strings.Repeat("1", 2*longest), strings.TrimSpace("esc [ " + strings.Repeat("1 ", 2*longest))},
		{"\x1b[200~one\rtwo\t3\x1b[201~\r", `paste "one\ntwo\t3" enter`},
		{"\x1b[200~one" + rest + "\rtwo\x03", `paste "one\ntwo" ctrl+c`},
		{"\x1b[200~a\x1b[201", ""},
		{"\x1b[201~x", "x"},
		{"plain\r", "p l a i n enter"},
	} {
		var k Keys
		var got []tea.Msg
		for _, part := range strings.SplitAfter(tt.bytes, rest) {
			part, rested := strings.CutSuffix(part, rest)
			for _, key := range pressed(part) {
				out, _ := k.Take(key)
				got = append(got, out...)
			}
			if rested {
				out, _ := k.Take(restMsg{k.n})
				got = append(got, out...)
			}
		}
		if told(got) != tt.want {
			t.Errorf("%q gives %q, want %q", tt.bytes, told(got), tt.want)
		}
	}
}

// A reader that gives up one byte later takes the piece for a key with Alt.
func TestAKeyTornBehindItsSecondByte(t *testing.T) {
	var k Keys
	if out, begin := k.Take(tea.KeyPressMsg{Code: '[', Mod: tea.ModAlt}); len(out) != 0 || begin == nil {
		t.Errorf("the first piece gives %q", told(out))
	}
	if out, _ := k.Take(pressed("A")[0]); told(out) != "up" {
		t.Errorf("the second piece gives %q", told(out))
	}
}

// The rest behind an Esc that belonged to something says nothing of the next Esc.
func TestTheRestOfOneEscIsNotThatOfTheNext(t *testing.T) {
	var k Keys
	_, begin := k.Take(pressed("\x1b")[0])
	if begin == nil {
		t.Fatal("nothing brings the Esc")
	}
	late := restMsg{k.n}
	for _, key := range pressed("[A\x1b") {
		k.Take(key)
	}
	if out, _ := k.Take(late); len(out) != 0 {
		t.Errorf("the second Esc came with the rest of the first: %q", told(out))
	}
	if out, _ := k.Take(restMsg{k.n}); told(out) != "esc" {
		t.Errorf("its own rest gives %q", told(out))
	}
}

// A paste whose beginning was torn ends where its reader finds the end, and what comes whole
// goes through.
func TestATornPasteEndsWithItsEnd(t *testing.T) {
	var k Keys
	var got []tea.Msg
	for _, msg := range append(pressed("\x1b[200~one"), tea.PasteMsg{}, tea.PasteEndMsg{}, tea.PasteMsg{Content: "two"}) {
		out, _ := k.Take(msg)
		got = append(got, out...)
	}
	if want := `paste "one" tea.PasteEndMsg paste "two"`; told(got) != want {
		t.Errorf("got %q, want %q", told(got), want)
	}
}

// A paste whose end a bad line lost must not make a screen deaf: Ctrl-C alone ends it. A character that comes in pieces
// is passed on whole.
func TestCtrlCEndsAPasteWhoseEndWasLost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		given, wanted []string
	}{
		{"lost", []string{"\x1b[200~a", "b\r", "\x03", "\x03"}, []string{"\x1b[200~a", "b\r", "\x1b[201~\x03", "\x03"}},
		{"whole", []string{"\x1b[200~a\x1b[201~", "\x03"}, []string{"\x1b[200~a\x1b[201~", "\x03"}},
		{"in two pieces", []string{"\x1b[200~a", "b\x1b[201~", "\x03"}, []string{"\x1b[200~a", "b\x1b[201~", "\x03"}},
		{"a character in pieces", []string{"a\xe9", "\xa6", "\x83b\xc3", "\xa9"}, []string{"a", "", "\u9983b", "\u00e9"}},
		{"lost in a character", []string{"\x1b[200~a\xe9", "\x03"}, []string{"\x1b[200~a", "\x1b[201~\xe9\x03"}},
		{"no UTF-8", []string{"\xe9", "a", "\xff\xa6", "\xe9\xe9", "b"}, []string{"", "\xe9a", "\xff\xa6", "\xe9", "\xe9b"}},
		{"among pasted text", []string{"\x1b[200~a", "b\x03\r"}, []string{"\x1b[200~a", "b\x03\r"}},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		in := &pasting{File: r}
		var got []string
		buf := make([]byte, 100)
		for _, piece := range c.given {
			_, err := w.WriteString(piece)
			n, late := in.Read(buf)
			if err = errors.Join(err, late); err != nil {
				t.Fatal(err)
			}
			got = append(got, string(buf[:n]))
		}
		if !slices.Equal(got, c.wanted) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.wanted)
		}
		if err := errors.Join(w.Close(), r.Close()); err != nil {
			t.Error(err)
		}
	}
}
