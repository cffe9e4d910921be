package term

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/cli/theme"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/view"
)

// rich are the options of a terminal without colours.
func rich(width int) Options { return Options{Live: true, Rich: true, Width: width} }

func TestMarkdownIsShownAsItComes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		o      Options
		events []string
		want   string
	}{
		{"words are not cut at the edge", rich(13), []string{
			`message.delta 0 {"message":5,"offset":0,"text":"you can ty"}`,
			`message.delta 0 {"message":5,"offset":10,"text":"pe while **it"}`,
			`message.delta 0 {"message":5,"offset":23,"text":" works**"}`,
			`message.changed 3 {"message":5,"content":{"type":"say","say":"text","text":"you can type while **it works**"}}`,
		}, "you can type\nwhile it\nworks\n"},
		{"a table comes when it is finished", rich(40), []string{
			`message.delta 0 {"message":5,"offset":0,"text":"| a | b |\n|---|---|\n"}`,
			`message.delta 0 {"message":5,"offset":20,"text":"| 1 | 2 |\n"}`,
			`message.changed 3 {"message":5,"content":{"type":"say","say":"text","text":"| a | b |\n|---|---|\n| 1 | 2 |\n"}}`,
		}, "a │ b\n──┼──\n1 │ 2\n"},
		{"thinking is indented", rich(21), []string{
			`reasoning.delta 0 {"message":4,"offset":0,"text":"I think of a long plan"}`,
			`message.delta 0 {"message":5,"offset":0,"text":"Done"}`,
		}, "  I think of a long\n  plan\n\nDone\n"},
		{"output of a command is no Markdown", rich(9), []string{
			addedCommand,
			`tool.started 1000 {"call":"c1","name":"execute_command","message":6}`,
			`message.added 1 {"history":"ui","message":8,"content":{"type":"say","say":"command_output","text":""}}`,
			`message.delta 0 {"message":8,"call":"c1","offset":0,"text":"*** a long line | of output\n"}`,
		}, "$ make t…\n  *** a long line | of output\n"},
		{"a notice in the middle", rich(40), []string{
			`message.delta 0 {"message":5,"offset":0,"text":"- one and"}`,
			`notice 0 {"text":"saved"}`,
			`message.delta 0 {"message":5,"offset":9,"text":" two\n- three"}`,
		}, "• one\n! saved\nand two\n• three\n"},
		{"a tool call ends what waited", rich(40), []string{
			`message.delta 0 {"message":5,"offset":0,"text":"an **open"}`,
			`tool.finished 9 {"call":"c","name":"list_files","outcome":"ok","result":{"content":"x"}}`,
		}, "an **open\n\n✓ list_files\n"},
		{"no Markdown in a log", Options{Rich: true, Width: 12}, []string{
			`message.delta 0 {"message":5,"offset":0,"text":"you can type **while** it works"}`,
		}, "you can type **while** it works\n"},
		{"the width of the moment", Options{Live: true, Rich: true, Width: 80, Size: func() int { return 11 }}, []string{
			`message.delta 0 {"message":5,"offset":0,"text":"you can type"}`,
		}, "you can\ntype\n"},
	} {
		if got := play(t, c.o, c.events...); got != c.want {
			t.Errorf("%s: got\n%q\nwant\n%q", c.name, got, c.want)
		}
	}
}

func TestLinesOfSubtasksFit(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	d := New(&b, Options{Live: true, Rich: true, Size: func() int { return 25 }}).Below()
	show(d, "message.delta", `{"message":5,"offset":0,"text":"words that are more than one line of it\n\nend"}`)
	d.Flush()
	if got, want := b.String(), "│ words that are more\n│ than one line of it\n│ \n│ end\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCallsThatNeedNoRow(t *testing.T) {
	t.Parallel()
	const asked = `message.added 1 {"history":"ui","message":7,"content":{"type":"ask","ask":"tool","text":"{\"tool\":\"editedExistingFile\",\"path\":\"main.go\"}"}}`
	for _, c := range []struct {
		name   string
		events []string
		want   string
	}{
		{"the file's own lines count", []string{
			`tool.finished 9 {"call":"c","name":"read_file","outcome":"ok","result":{"content":"File: a.go\n1 | package a\n2 | \n3 | x\n4 | "}}`,
		}, "✓ read_file · 3 lines\n"},
		{"a result", []string{`tool.finished 9 {"call":"c","name":"attempt_completion","outcome":"ok","result":{"content":"a\nb"}}`}, ""},
		{"a question", []string{`tool.finished 9 {"call":"c","name":"ask_followup_question","outcome":"ok","result":{"content":"a\nb"}}`}, ""},
		{"a result that failed", []string{`tool.finished 9 {"call":"c","name":"attempt_completion","outcome":"error","result":{"content":"a"}}`},
			"✗ attempt_completion · error\n"},
		{"denied by a person", []string{asked,
			`tool.finished 9 {"call":"c","name":"write_to_file","outcome":"denied","approval":{"state":"denied","by":"user","kind":"mode","rule":"ask","feedback":"not in\nthis folder"},"result":{"content":"x"}}`,
		}, "✗ denied: write_to_file main.go: not in this folder\n"},
		{"denied without a word", []string{asked,
			`tool.finished 9 {"call":"c","name":"write_to_file","outcome":"denied","approval":{"state":"denied","by":"user","kind":"mode","rule":"ask"},"result":{"content":"x"}}`,
			`tool.finished 9 {"call":"d","name":"read_file","outcome":"denied","approval":{"state":"denied","by":"policy","kind":"mode","rule":"ask"},"result":{"content":"x"}}`,
		}, "✗ denied: write_to_file main.go\n✗ denied: read_file\n"},
		{"what a run will cost is no warning", []string{`notice 0 {"kind":"plan","text":"to a model: 3 tokens"}`}, "to a model: 3 tokens\n"},
	} {
		if got := play(t, Options{}, c.events...); got != c.want {
			t.Errorf("%s: got\n%q\nwant\n%q", c.name, got, c.want)
		}
	}
}

// What a run does now stands on the last line until something is written. A log, a quiet person and a terminal that
// can only print get none of it.
func TestTick(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"a terminal", rich(60), "⠋ running list_files · 2s" + "\r" + "⠙ running list_files · 1m05s" +
			"\r" + strings.Repeat(" ", 28) + "\r" + "✓ list_files\n"},
		{"narrow", rich(12), "⠋ running …" + "\r" + "⠙ running …" + "\r" + strings.Repeat(" ", 11) + "\r" + "✓ list_files\n"},
		{"a log", Options{Rich: true}, "✓ list_files\n"},
		{"quiet", Options{Rich: true, Live: true, Quiet: true}, ""},
		{"a simple terminal", Options{Live: true}, "✓ list_files\n"},
	} {
		var b strings.Builder
		d := New(&b, c.o)
		d.Tick(start)
		show(d, "tool.started", `{"call":"c","name":"list_files"}`)
		d.Tick(start)
		d.Tick(start.Add(2 * time.Second))
		d.Tick(start.Add(65 * time.Second))
		show(d, "tool.finished", `{"call":"c","name":"list_files","outcome":"ok","result":{"content":"x"}}`)
		if got := b.String(); got != c.want {
			t.Errorf("%s: got\n%q\nwant\n%q", c.name, got, c.want)
		}
	}
	var b strings.Builder
	columns := 60
	shrinks := rich(60)
	shrinks.Size = func() int { return columns }
	d := New(&b, shrinks)
	show(d, "tool.started", `{"call":"c","name":"list_files"}`)
	d.Tick(start)
	d.Tick(start.Add(2 * time.Second))
	columns = 12
	d.Tick(start.Add(65 * time.Second))
	show(d, "tool.finished", `{"call":"c","name":"list_files","outcome":"ok","result":{"content":"x"}}`)
	want := "⠋ running list_files · 2s\r⠙ running …\r" + strings.Repeat(" ", 11) + "\r✓ list_files\n"
	if got := b.String(); got != want { // more than the window is wide would move the lines up with each tick
		t.Errorf("a window that shrinks: got\n%q\nwant\n%q", got, want)
	}
	b.Reset()
	d = New(&b, rich(60))
	show(d, "message.delta", `{"message":5,"offset":0,"text":"words that go on "}`)
	d.Tick(start)
	d.Tick(start.Add(time.Minute))
	if got := b.String(); got != "words that go" {
		t.Errorf("behind words: got %q", got)
	}
	d.Flush()
	d.Tick(start.Add(time.Minute))
	d.prompt("> ")
	show(d, "turn.started", `{"turn":1}`)
	d.Tick(start.Add(time.Hour))
	d.Tick(start.Add(2 * time.Hour))
	if got := b.String(); got != "words that go on\n> " {
		t.Errorf("after its end, and behind a prompt: got %q", got)
	}
}

func TestAttention(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ how, want string }{
		{"bell", "\a"}, {"osc9", "\x1b]9;may I? [2J\a"}, {"off", ""}, {"", ""},
	} {
		var b strings.Builder
		New(&b, Options{Live: true, Notify: c.how}).Attention("may\nI? \x07[2J")
		if b.String() != c.want {
			t.Errorf("%s: got %q, want %q", c.how, b.String(), c.want)
		}
		b.Reset()
		New(&b, Options{Notify: c.how}).Attention("x")
		if b.String() != "" {
			t.Errorf("%s in a log: got %q", c.how, b.String())
		}
	}
}

func TestDollars(t *testing.T) {
	t.Parallel()
	for usd, want := range map[int64]string{0: "$0.00", 1: "under $0.01", 4_999: "under $0.01", 5_000: "$0.01", 1_234_567: "$1.23", 12_005_000: "$12.01"} {
		if got := Dollars(money.USD(usd)); got != want {
			t.Errorf("%d: got %q, want %q", usd, got, want)
		}
	}
	u := Totals{Turns: 1, Cost: money.USD(1300)}
	if got, want := u.Text("completed"), "completed · 1 turn · under $0.01"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := u.Exact("completed"), "completed · 1 turn · $0.0013"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A style without a theme has the terminal's own colours.
func TestStyle(t *testing.T) {
	t.Parallel()
	for style, want := range map[view.Style]string{
		view.Head: "\x1b[1mx\x1b[0m", view.Dim: "\x1b[2mx\x1b[0m", view.Bad: "\x1b[31mx\x1b[0m", view.Good: "\x1b[32mx\x1b[0m",
		view.Asked: "\x1b[33mx\x1b[0m", view.Added: "\x1b[32mx\x1b[0m", view.Removed: "\x1b[31mx\x1b[0m", view.Plain: "x",
	} {
		if got := (Style{theme.Basic()}).Paint(style, "x"); got != want {
			t.Errorf("%s: got %q, want %q", style, got, want)
		}
	}
}
