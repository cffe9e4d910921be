package contextwindow

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/apirules"
)

// callsOf is an assistant message that calls the ids.
func callsOf(ids ...string) []byte {
	var items [][]byte
	for _, id := range ids {
		items = append(items, useBlock(id, "n", []byte("{}")))
	}
	var o esjson.Object
	o.String("role", "assistant")
	o.Raw("content", esjson.List(items))
	return o.Bytes()
}

// answersTo is a user message: "a=x" is the result x of a, other words are texts.
func answersTo(words ...string) []byte {
	var items [][]byte
	for _, w := range words {
		if id, text, ok := strings.Cut(w, "="); ok {
			items = append(items, resultBlock(id, text))
		} else {
			items = append(items, textOf(w))
		}
	}
	var o esjson.Object
	o.String("role", "user")
	o.Raw("content", esjson.List(items))
	return o.Bytes()
}

// wordsOf turns a message back into words; a placeholder is "a=?".
func wordsOf(message []byte) string {
	var out []string
	for _, b := range blocks(readTags(message).content) {
		if esjson.TextOf(b, "type") == "tool_result" {
			text := esjson.TextOf(b, "content")
			if text == Interrupted {
				text = "?"
			}
			out = append(out, esjson.TextOf(b, "tool_use_id")+"="+text)
		} else {
			out = append(out, esjson.TextOf(b, "text"))
		}
	}
	return strings.Join(out, " ")
}

// What is sent of the message behind a model's calls: each call's result first, in the
// order of the calls, then everything else. What answers nothing is told as text.
func TestEveryCallIsAnsweredOnce(t *testing.T) {
	for _, tt := range []struct{ name, calls, in, want string }{
		{"all is well", "a b", "a=1 b=2 text", "a=1 b=2 text"},
		{"another order", "a b", "b=2 a=1", "a=1 b=2"},
		{"a result is missing", "a b", "a=1 text", "a=1 b=? text"},
		{"all are missing", "a b", "text", "a=? b=? text"},
		{"a wrong id", "a b", "x=1 b=2", "a=? b=2 Tool result:\n1"},
		{"wrong ids", "a b", "x=1 y=2", "a=? b=? Tool result:\n1 Tool result:\n2"},
		{"one too many", "a", "a=1 x=2", "a=1 Tool result:\n2"},
		{"the same twice", "a b", "a=1 a=2", "a=1 b=?"},
		{"results behind texts come first", "a", "text a=1", "a=1 text"},
		{"no call", "", "x=1 text", "Tool result:\n1 text"},
	} {
		history := lines(`{"role":"user","content":"begin"}`, `{"role":"assistant","content":"hm"}`)
		if tt.calls != "" {
			history = [][]byte{answersTo("begin"), callsOf("old"), answersTo("old=1"), callsOf(strings.Fields(tt.calls)...)}
		}
		messages, _, err := Build(append(history, answersTo(strings.Fields(tt.in)...)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		sent := sentAs(messages)
		if words := wordsOf(sent[len(sent)-1]); words != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, words, tt.want)
		}
	}
}

// A call that a marker hides asks for no result, and its result is no answer.
func TestHiddenCallsAreNotAnswered(t *testing.T) {
	messages, _, err := Build(append(lines(`{"role":"user","content":"a"}`, `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"n","input":{}}],"truncationParent":"T"}`,
		`{"role":"user","content":"m","isTruncationMarker":true,"truncationId":"T"}`), answersTo("a=1")), Options{})
	if err != nil || len(messages) != 1 {
		t.Fatal(messages, err)
	}
	if words := wordsOf(sentAs(messages)[0]); words != "a m Tool result:\n1" {
		t.Errorf("got %s, want words = \"a m Tool result:\\n1\"", words)
	}
}

// Whatever results come, each open call is sent with exactly one, no text and no result
// is lost but second ones, and what was sent is sent again as it is.
func TestNoResultIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		calls := rapid.SliceOfNDistinct(id, 1, 3, func(s string) string { return s }).Draw(t, "calls")
		var words, told []string
		seen := map[string]bool{}
		for i := range rapid.IntRange(0, 5).Draw(t, "blocks") {
			word := string(rune('p' + i))
			if !rapid.Bool().Draw(t, "result") {
				told = append(told, word)
			} else {
				of := id.Draw(t, "id")
				if !seen[of] || !slices.Contains(calls, of) {
					told = append(told, word)
				}
				seen[of], word = true, of+"="+word
			}
			words = append(words, word)
		}
		messages, _, err := Build([][]byte{answersTo("begin"), callsOf(calls...), answersTo(words...)}, Options{})
		if err == nil {
			err = apirules.Validate(messages)
		}
		if err != nil {
			t.Fatal(err)
		}
		sent := sentAs(messages)
		got := sent[2]
		var answered []string
		for _, b := range blocks(readTags(got).content) {
			if esjson.TextOf(b, "type") == "tool_result" {
				answered = append(answered, esjson.TextOf(b, "tool_use_id"))
			}
		}
		if !slices.Equal(answered, calls) {
			t.Fatalf("%v, calls %v: %s", words, calls, wordsOf(got))
		}
		for _, word := range told {
			if !strings.Contains(string(got), `"`+word+`"`) && !strings.Contains(string(got), `\n`+word+`"`) {
				t.Fatalf("%v, calls %v: %s", words, calls, wordsOf(got))
			}
		}
		again, notes, err := Build(sent, Options{})
		if err != nil || len(notes) > 0 || show(again) != show(messages) {
			t.Fatalf("%s became %s: %v %v", show(messages), show(again), err, notes)
		}
	})
}

func TestTidy(t *testing.T) {
	for in, want := range map[string]string{
		`"plain"`: `"plain"`, `"\u0041\n"`: `"\u0041\n"`, `"\ud83d\ude00"`: `"\ud83d\ude00"`, `"\uD83D\uDE00"`: `"\uD83D\uDE00"`,
		`"\ud83d"`: `"\ufffd"`, `"\ude00"`: `"\ufffd"`, `"\ud83dx\ude00"`: `"\ufffdx\ufffd"`, `"\ud83d\ud83d\ude00"`: `"\ufffd\ud83d\ude00"`, `"\ud83d\\ude00"`: `"\ufffd\\ude00"`,
		`"\\ud83d"`: `"\\ud83d"`, `"\\\ud83d"`: `"\\\ufffd"`, `{"\ud800":1}`: `{"\ufffd":1}`, "\"a\xff\xfeb\"": "\"a\uFFFDb\"", "\"\xed\xa0\x80\"": "\"\uFFFD\"", "\"\xff\\ud800\"": "\"\uFFFD\\ufffd\"",
	} {
		got, changed := tidy([]byte(in))
		if string(got) != want || changed != (in != want) {
			t.Errorf("tidy(%s) = %s, %v; want %s", in, got, changed, want)
		}
	}
}

// tidy leaves what is good alone, and what it makes is good: the half characters, and
// nothing else, are replaced.
func TestTidyProperties(t *testing.T) {
	unit := rapid.SampledFrom([]uint16{'a', '\\', '"', 0xD83D, 0xDE00, 0xD800, 0xDFFF, 0xFFFD, 0x20AC})
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.SliceOfN(unit, 0, 12).Draw(t, "units")
		var raw strings.Builder
		raw.WriteByte('"')
		for _, u := range units {
			if u == 'a' || u == 0x20AC {
				raw.WriteRune(rune(u))
			} else {
				const digits = "0123456789aBcDeF"
				raw.WriteString(`\u`)
				for shift := 12; shift >= 0; shift -= 4 {
					raw.WriteByte(digits[u>>shift&15])
				}
			}
		}
		raw.WriteByte('"')
		got, changed := tidy([]byte(raw.String()))
		text, err := esjson.Unquote(got)
		if want := string(utf16.Decode(units)); err != nil || text != want || !utf8.ValidString(text) {
			t.Fatalf("%s became %s: %q, want %q (%v)", raw.String(), got, text, want, err)
		}
		if again, twice := tidy(got); twice || changed && string(got) == raw.String() || string(again) != string(got) {
			t.Fatalf("%s became %s, then %s", raw.String(), got, again)
		}
	})
}

func useBlock(id, name string, input []byte) []byte {
	var o esjson.Object
	o.String("type", "tool_use")
	o.String("id", id)
	o.String("name", name)
	o.Raw("input", input)
	return o.Bytes()
}
