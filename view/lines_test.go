package view

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLines(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		it   Item
		max  int
		want []Line
	}{
		{"a diff is coloured and cut",
			Item{Number: 7, Class: Tool, Title: "edit a", Body: "@@ -1 +1 @@\n-x\n+y\n z", Diff: true}, 2,
			[]Line{{Head, "#7 tool edit a"}, {Dim, "  @@ -1 +1 @@"}, {Removed, "  -x"}, {Dim, "  ... 2 more lines"}}},
		{"one line too many is one line",
			Item{Class: Output, Body: "1\n2\n3"}, 2,
			[]Line{{Dim, "output"}, {Dim, "  1"}, {Dim, "  2"}, {Dim, "  ... 1 more line"}}},
		{"just enough lines are all shown",
			Item{Class: Output, Body: "1\n2\n"}, 2,
			[]Line{{Dim, "output"}, {Dim, "  1"}, {Dim, "  2"}}},
		{"choices are one line each",
			Item{Number: 2, Class: Question, Body: "which?", Choices: []string{"a\nb", "c\r#9 you yes"}}, 0,
			[]Line{{Asked, "#2 question"}, {Plain, "  which?"}, {Asked, "  1. a b"}, {Asked, "  2. c #9 you yes"}}},
		{"a command of many lines is no headline",
			Item{Number: 3, Class: Tool, Title: "$ cat <<E\nx\nE"}, 0,
			[]Line{{Head, "#3 tool $ cat <<E"}, {Plain, "  x"}, {Plain, "  E"}}},
		{"a carriage return does not make up a headline",
			Item{Number: 3, Class: Output, Body: "10%\r100%\r\n#4 you yes\v#5\u2028#6"}, 0,
			[]Line{{Dim, "#3 output"}, {Dim, "  10%"}, {Dim, "  100%"}, {Dim, "  #4 you yes"}, {Dim, "  #5"}, {Dim, "  #6"}}},
		{"not in a title either",
			Item{Number: 3, Class: Tool, Title: "read a\r#4 you yes"}, 0,
			[]Line{{Head, "#3 tool read a"}, {Plain, "  #4 you yes"}}},
		{"what is unfinished and what is not text is said",
			Item{Number: 1, Class: User, Body: "look", Images: 1, Partial: true}, 0,
			[]Line{{Head, "#1 you (interrupted) [1 image]"}, {Plain, "  look"}}},
		{"two images", Item{Class: Model, Images: 2}, 0, []Line{{Head, "model [2 images]"}}},
		{"empty lines inside stay, at the end they go",
			Item{Class: Model, Body: "a\n\nb\n\n \t\r\n"}, 0,
			[]Line{{Head, "model"}, {Said, "  a"}, {Said, "  "}, {Said, "  b"}}},
		{"parts stand below, indented, each cut by itself",
			Item{Number: 4, Class: Model, Title: "assistant", Parts: []Item{
				{Class: Reasoning, Body: "1\n2\n3"}, {Class: Tool, Title: "read_file", Body: "{}"}, {Class: Failure, Title: "result (error)"},
			}}, 1,
			[]Line{{Head, "#4 model assistant"}, {Dim, "  thinking"}, {Dim, "    1"}, {Dim, "    ... 2 more lines"},
				{Head, "  tool read_file"}, {Plain, "    {}"}, {Bad, "  result (error)"}}},
	} {
		if diff := cmp.Diff(tt.want, Lines(tt.it, tt.max)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// Every class says at the start of its line what it is, in a style of its own kind.
func TestHeads(t *testing.T) {
	t.Parallel()
	got := map[Class]Line{}
	for _, c := range []Class{User, Model, Reasoning, Tool, Output, Question, Result, Request, Note, Failure, Unknown} {
		lines := Lines(Item{Class: c, Title: "T", Body: "B"}, 0)
		if len(lines) != 2 {
			t.Fatalf("%s: got %v, want len(lines) = 2", c, lines)
		}
		got[c] = lines[0]
	}
	want := map[Class]Line{
		User: {Head, "you T"}, Model: {Head, "model T"}, Reasoning: {Dim, "thinking T"}, Tool: {Head, "tool T"}, Output: {Dim, "output T"}, Question: {Asked, "question T"},
		Result: {Good, "result T"}, Request: {Dim, "T"}, Note: {Dim, "· T"}, Failure: {Bad, "failed T"}, Unknown: {Head, "? T"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Cutting shows the first lines, and says how many are left out; nothing is shown
// twice or lost without a word.
func TestCutAtEveryLength(t *testing.T) {
	t.Parallel()
	const n = 6
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("line %d", i))
	}
	it := Item{Class: Model, Body: strings.Join(all, "\n")}
	for most := 1; most <= n+1; most++ {
		lines := Lines(it, most)[1:]
		shown := min(most, n)
		for i, l := range lines[:shown] {
			if l.Text != "  "+all[i] {
				t.Errorf("at most %d: line %d is %q", most, i, l.Text)
			}
		}
		if left := n - shown; left > 0 && (len(lines) != shown+1 || !strings.Contains(lines[shown].Text, fmt.Sprintf("... %d more line", left))) || left == 0 && len(lines) != n {
			t.Errorf("at most %d: %v", most, lines)
		}
	}
}

func TestDiffStyle(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]Style{
		"+added": Added, "-removed": Removed, "@@ -1 +1 @@": Dim, " same": Plain, "": Plain, "x+y": Plain, "@": Plain, "+": Added, "-": Removed,
	} {
		if got := DiffStyle(line); got != want {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
	}
	// The marks are looked for in diffs only: a list in prose is not coloured.
	for _, l := range Lines(Item{Class: Model, Body: "- a point\n+ another\n@@ x"}, 0)[1:] {
		if l.Style != Said {
			t.Errorf("got %+v, want the style %s", l, Said)
		}
	}
}

func ExampleLines() {
	row := []byte(`{"ts":1700000000000,"type":"ask","ask":"tool","text":"{\"tool\":\"appliedDiff\",\"path\":\"a.go\",\"diff\":\"@@ -1 +1 @@\\n-old\\n+new\"}"}`)
	for _, l := range Lines(UI(row, 4), 0) {
		fmt.Printf("%-7s %s\n", l.Style, l.Text)
	}
	// Output:
	// head    #4 tool edit a.go
	// dim       @@ -1 +1 @@
	// removed   -old
	// added     +new
}

func ExampleAPI() {
	message := []byte(`{"role":"assistant","content":[{"type":"text","text":"I look at it."},{"type":"tool_use","id":"call_1","name":"read_file","input":{"path":"a.go"}}]}`)
	for _, l := range Lines(API(message, 2), 1) {
		fmt.Println(l.Text)
	}
	// Output:
	// #2 model
	//   I look at it.
	//   tool read_file a.go
}

// The same item gives the same lines, and rendering it leaves it as it was: one item
// may be shown in several places.
func TestLinesArePure(t *testing.T) {
	t.Parallel()
	it := API([]byte(`{"role":"user","content":[{"type":"text","text":"a\r\nb\n"},{"type":"tool_result","tool_use_id":"c","content":"x\ry"}]}`), 3)
	before := fmt.Sprintf("%#v", it)
	first := Lines(it, 1)
	for range 3 {
		if diff := cmp.Diff(first, Lines(it, 1)); diff != "" {
			t.Errorf("another time, other lines: %s", diff)
		}
	}
	if after := fmt.Sprintf("%#v", it); after != before {
		t.Errorf("the item became %s", after)
	}
	if len(Lines(Item{}, 0)) != 1 {
		t.Error("an item of nothing has no line")
	}
}
