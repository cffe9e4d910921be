package view

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
)

// marked draws JSON values in which each text is a word of its own, and collects the words.
type marked struct {
	t     *rapid.T
	words []string
}

func (m *marked) word() string {
	w := fmt.Sprintf("w%dx", len(m.words))
	m.words = append(m.words, w)
	return w
}

func (m *marked) text() []byte { return esjson.Quote(nil, m.word()) }

func (m *marked) value(depth int) []byte {
	switch kind := rapid.IntRange(0, 5).Draw(m.t, "value"); {
	case kind == 0 && depth > 0:
		var o esjson.Object
		for range rapid.IntRange(0, 3).Draw(m.t, "members") {
			o.Raw(m.word(), m.value(depth-1))
		}
		return o.Bytes()
	case kind == 1 && depth > 0:
		list := []byte("[")
		for i := range rapid.IntRange(0, 3).Draw(m.t, "elements") {
			if i > 0 {
				list = append(list, ',')
			}
			list = append(list, m.value(depth-1)...)
		}
		return append(list, ']')
	case kind == 2:
		return []byte(rapid.SampledFrom([]string{"true", "1", "-0.5", "1e400"}).Draw(m.t, "plain"))
	}
	return m.text()
}

// seen are the lines of an item as one text.
func seen(it Item) string {
	var b strings.Builder
	for _, l := range Lines(it, 0) {
		b.WriteString(l.Text + "\n")
	}
	return b.String()
}

// Whatever a model gives a tool, whichever tool that is: the person sees every word of it.
func TestNoWordOfACallIsLost(t *testing.T) {
	t.Parallel()
	names := []string{"read_file", "write_to_file", "edit", "search_and_replace", "apply_diff", "apply_patch", "execute_command", "ask_followup_question", "attempt_completion", "new_task",
		"update_todo_list", "use_mcp_tool", "mcp--a--b", "unheard_of", ""}
	keys := []string{"path", "command", "content", "diff", "patch", "input", "old_string", "new_string", "old_str", "new_str", "search", "replace", "question", "result", "regex", "query", "mode", "message", "todos", "other", "reason"}
	rapid.Check(t, func(t *rapid.T) {
		m := &marked{t: t}
		var in, o esjson.Object
		for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 0, 5, rapid.ID).Draw(t, "keys") {
			in.Raw(key, m.value(2))
		}
		o.String("type", "tool_use")
		o.String("id", "c1")
		o.String("name", rapid.SampledFrom(names).Draw(t, "tool"))
		o.Raw("input", in.Bytes())
		raw := []byte(`{"role":"assistant","content":[` + string(o.Bytes()) + `]}`)
		shown := seen(API(raw, 1))
		for _, w := range m.words {
			if !strings.Contains(shown, w) {
				t.Fatalf("%s is lost of %s:\n%s", w, raw, shown)
			}
		}
	})
}

// So it is with what a block of an unknown kind says, and a row of an unknown kind.
func TestNoWordOfTheUnknownIsLost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &marked{t: t}
		var o esjson.Object
		o.String("type", "a_kind_of_tomorrow")
		for range rapid.IntRange(0, 4).Draw(t, "members") {
			o.Raw(m.word(), m.value(3))
		}
		var row esjson.Object
		row.String("type", "say")
		row.String("say", "a_kind_of_tomorrow")
		row.String("text", string(o.Bytes()))
		role := rapid.SampledFrom([]string{"user", "assistant", "system"}).Draw(t, "role")
		for _, shown := range []string{seen(API([]byte(`{"role":"`+role+`","content":[`+string(o.Bytes())+`]}`), 2)), seen(UI(row.Bytes(), 2))} {
			for _, w := range m.words {
				if !strings.Contains(shown, w) {
					t.Fatalf("%s is lost of %s:\n%s", w, o.Bytes(), shown)
				}
			}
		}
	})
}

// The same message is the same item, whatever was read before it; and an item is not
// changed by being shown.
func TestReadingIsPure(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := []byte(filled(t, rapid.SampledFrom(shapes).Draw(t, "shape"), 1)), []byte(filled(t, rapid.SampledFrom(shapes).Draw(t, "other"), 1))
		for _, read := range []func([]byte, int) Item{UI, API} {
			first := read(a, 3)
			shown := seen(first)
			for _, most := range []int{-1, 1, 2} {
				Lines(first, most)
				Headline(first)
			}
			seen(read(b, 3))
			if again := read(a, 3); !reflect.DeepEqual(first, again) || seen(again) != shown {
				t.Fatalf("%s is at first %+v, then %+v", a, first, again)
			}
		}
	})
}

// Folding leaves out lines and says how many: what stays are the first ones, unchanged.
func TestFoldedIsTheBeginning(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b c", "", "  deep", "+plus", "-minus", "日本"}), 0, 12).Draw(t, "lines")
		it := Item{Number: 4, Class: rapid.SampledFrom([]Class{User, Model, Output, Tool, Note, Failure, Result}).Draw(t, "class"), Title: "t", Body: strings.Join(lines, "\n"), Diff: rapid.Bool().Draw(t, "diff")}
		all := Lines(it, 0)
		for most := 1; most < len(all)+2; most++ {
			some := Lines(it, most)
			if len(all)-1 <= most {
				if !slices.Equal(some, all) {
					t.Fatalf("%d lines fit %d: %v", len(all)-1, most, some)
				}
				continue
			}
			if !slices.Equal(some[:most+1], all[:most+1]) || len(some) != most+2 || !strings.HasPrefix(strings.TrimSpace(some[most+1].Text), fmt.Sprintf("... %d more line", len(all)-1-most)) {
				t.Fatalf("at most %d of %v: %v", most, all, some)
			}
		}
		none := Lines(it, -1)
		if len(none) != 1 || len(all) > 1 && !strings.Contains(none[0].Text, fmt.Sprintf("(%d line", len(all)-1)) {
			t.Fatalf("none of %v: %v", all, none)
		}
	})
}

// stamps are times that a damaged file may hold.
var stamps = []int64{0, 1, 2, 1000, 5000, 1_700_000_000_000, -1, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1, math.MinInt64 + 1}

// Whatever times and places rows tell, the stretch that answers them lies within the
// history, and answers belong to rows that are there.
func TestAnswersStayInside(t *testing.T) {
	t.Parallel()
	ts := rapid.SampledFrom(stamps)
	rapid.Check(t, func(t *rapid.T) {
		var rows, messages [][]byte
		for i := range rapid.IntRange(0, 6).Draw(t, "rows") {
			rows = append(rows, []byte(fmt.Sprintf(`{"ts":%d,"type":"ask","ask":"tool","conversationHistoryIndex":%d,"text":"{\"tool\":\"readFile\",\"path\":\"p%d\"}"}`,
				ts.Draw(t, "row"), ts.Draw(t, "index"), i%2)))
		}
		var times []int64
		for i := range rapid.IntRange(0, 8).Draw(t, "messages") {
			at := ts.Draw(t, "message")
			times = append(times, at)
			m := callMessage(at, fmt.Sprint("c", i), "read_file", fmt.Sprint("p", i%2))
			if i%2 == 1 {
				m = resultMessage(at, fmt.Sprint("c", i-1), "what it holds")
			}
			messages = append(messages, m)
		}
		from, to := Stretch(rows, times)
		if from < 0 || from > to || to > len(times) || to-from > 2*len(rows)+9 {
			t.Fatalf("%d to %d of %d for %d rows", from, to, len(times), len(rows))
		}
		used := map[string]int{}
		for i, it := range Answers(rows, messages[from:to], from) {
			if i < 0 || i >= len(rows) || it.Class == "" {
				t.Fatalf("row %d of %d is answered by %+v", i, len(rows), it)
			}
			used[it.Body]++
		}
		if used["what it holds"] > len(messages)/2 {
			t.Fatalf("%d answers out of %d messages", used["what it holds"], len(messages))
		}
	})
}

// What a command printed came in thousands of rows: they make one result, in order.
func TestACommandOfManyRows(t *testing.T) {
	t.Parallel()
	const n = 20_000
	rows := raws(`{"ts":1,"type":"say","say":"text","text":"go"}`, `{"ts":2,"type":"ask","ask":"command","text":"make"}`)
	var want strings.Builder
	for i := range n {
		text := fmt.Sprintf("line %d %s\n", i, strings.Repeat("x", 100))
		want.WriteString(text)
		rows = append(rows, row("say", "command_output", text))
	}
	messages := APIFromUI(rows)
	for block := range blocksOf(messages[len(messages)-1]) {
		if text, _ := ResultText(block); str(block, "type") != "tool_result" || text != want.String() {
			t.Errorf("%d bytes of %d came back", len(text), want.Len())
		}
	}
}
