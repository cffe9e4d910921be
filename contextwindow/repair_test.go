package contextwindow

import (
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/contextwindow/rules"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
)

// callsOf is an assistant message that calls the ids.
func callsOf(ids ...string) []byte {
	var items [][]byte
	for _, id := range ids {
		items = append(items, useBlock(id, "n", []byte("{}")))
	}
	var o esjson.Object
	o.String("role", "assistant")
	o.Raw("content", array(items))
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
	o.Raw("content", array(items))
	return o.Bytes()
}

// wordsOf turns a message back into words; a placeholder is "a=?".
func wordsOf(message []byte) string {
	var out []string
	for _, b := range blocks(read(message).content) {
		if blockType(b) == "tool_result" {
			text := resultText(b)
			if text == Interrupted {
				text = "?"
			}
			out = append(out, memberStr(b, "tool_use_id")+"="+text)
		} else {
			out = append(out, memberStr(b, "text"))
		}
	}
	return strings.Join(out, " ")
}

func TestRepairResults(t *testing.T) {
	for _, tt := range []struct{ name, calls, in, want string }{
		{"all is well", "a b", "a=1 b=2 text", "a=1 b=2 text"},
		{"any order is well", "a b", "b=2 a=1", "b=2 a=1"},
		{"a result is missing", "a b", "a=1 text", "b=? a=1 text"},
		{"all are missing", "a b", "text", "a=? b=? text"},
		{"a wrong id in the right place", "a b", "x=1 b=2", "a=1 b=2"},
		{"wrong ids", "a b", "x=1 y=2", "a=1 b=2"},
		{"a wrong id in the wrong place is not thrown away", "a b", "b=2 x=1", "b=2 a=1"},
		{"one too many", "a", "a=1 x=2", "a=1"},
		{"the same twice", "a b", "a=1 a=2", "b=? a=1"},
		{"results behind texts come first", "a", "text a=1", "a=1 text"},
		{"no call, nothing to repair", "", "x=1 text", "x=1 text"},
	} {
		var history [][]byte
		if tt.calls != "" {
			history = [][]byte{callsOf("old"), answersTo("old=1"), callsOf(strings.Fields(tt.calls)...)}
		}
		message := answersTo(strings.Fields(tt.in)...)
		got := RepairResults(message, history)
		if words := wordsOf(got); words != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, words, tt.want)
		}
		if tt.in == tt.want && &got[0] != &message[0] {
			t.Errorf("%s: a message that fits was copied", tt.name)
		}
	}
	for _, raw := range []string{`{"role":"assistant","content":[]}`, `{"role":"user","content":"a=1"}`, `{"role":"user"}`, `null`, `7`} {
		if got := RepairResults([]byte(raw), [][]byte{callsOf("a")}); string(got) != raw {
			t.Errorf("%s became %s", raw, got)
		}
	}
}

func TestAppend(t *testing.T) {
	for _, tt := range []struct {
		name    string
		history [][]byte
		in      []byte
		want    string
	}{
		{"results of the open calls", [][]byte{callsOf("a", "b")}, answersTo("b=2"), "a=? b=2"},
		{"results of nobody become text", [][]byte{answersTo("hi")}, answersTo("a=1", "text"), "Tool result:\n1 text"},
		{"in an empty history, too", nil, answersTo("a=1"), "Tool result:\n1"},
		{"calls that a marker hides are not open", lines(`{"role":"user","content":"a"}`, `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"n","input":{}}],"truncationParent":"T"}`,
			`{"role":"user","content":"m","isTruncationMarker":true,"truncationId":"T"}`), answersTo("a=1"), "Tool result:\n1"},
		{"words alone stay as they are", [][]byte{answersTo("hi")}, answersTo("more"), "more"},
	} {
		before := show(messagesOf(tt.history))
		out := Append(tt.history, tt.in, 77)
		last := out[len(out)-1]
		if words := wordsOf(last); words != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, words, tt.want)
		}
		if ts, _ := esjson.GetInt(last, "ts"); ts != 77 || len(out) != len(tt.history)+1 || show(messagesOf(tt.history)) != before {
			t.Errorf("%s: ts %d, %d messages", tt.name, ts, len(out))
		}
	}
	// Two continuations of one history must not write into each other.
	base := append(make([][]byte, 0, 10), answersTo("hi"))
	one, two := Append(base, answersTo("one"), 1), Append(base, answersTo("two"), 2)
	if wordsOf(one[1]) != "one" || wordsOf(two[1]) != "two" {
		t.Errorf("%s and %s", one[1], two[1])
	}
}

func messagesOf(history [][]byte) (out []llm.Message) {
	for _, raw := range history {
		out = append(out, llm.Message{Content: raw})
	}
	return out
}

// Whatever results come, afterwards each open call has exactly one, nothing of the
// user's is lost, and repairing again changes nothing.
func TestRepairProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		calls := rapid.SliceOfNDistinct(id, 1, 3, func(s string) string { return s }).Draw(t, "calls")
		var words []string
		kept := 0
		for i := range rapid.IntRange(0, 5).Draw(t, "blocks") {
			word := string(rune('p' + i))
			if rapid.Bool().Draw(t, "result") {
				word = id.Draw(t, "id") + "=" + word
			} else {
				kept++
			}
			words = append(words, word)
		}
		history := [][]byte{answersTo("begin"), callsOf(calls...)}
		got := RepairResults(answersTo(words...), history)
		answered, texts := map[string]int{}, 0
		for _, b := range blocks(read(got).content) {
			if blockType(b) == "tool_result" {
				answered[memberStr(b, "tool_use_id")]++
			} else {
				texts++
			}
		}
		for _, c := range calls {
			if answered[c] != 1 {
				t.Fatalf("%v, calls %v: %s", words, calls, wordsOf(got))
			}
		}
		if len(answered) != len(calls) || texts != kept {
			t.Fatalf("%v, calls %v: %s", words, calls, wordsOf(got))
		}
		if again := RepairResults(got, history); wordsOf(again) != wordsOf(got) {
			t.Fatalf("%s became %s", wordsOf(got), wordsOf(again))
		}
		messages, notes, err := Build(append(history, got), Options{})
		if err == nil {
			err = rules.Validate(messages)
		}
		if err != nil || len(notes) > 0 {
			t.Fatalf("%s: %v %v", wordsOf(got), err, notes)
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
