package term

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/cli/theme"
	"github.com/roost-dev/roost/view"
)

// play feeds events, each "type at {json}", and gives what was written.
func play(t *testing.T, o Options, events ...string) string {
	t.Helper()
	var b strings.Builder
	d := New(&b, o)
	for _, e := range events {
		var typ, at string
		rest := e
		typ, rest, _ = strings.Cut(rest, " ")
		at, rest, _ = strings.Cut(rest, " ")
		var ms int64
		if _, err := fmt.Sscan(at, &ms); err != nil {
			t.Fatalf("event %q: %v", e, err)
		}
		d.Show(typ, stamped(ms, rest))
	}
	d.Flush()
	return b.String()
}

const (
	addedText    = `message.added 1 {"history":"ui","message":5,"content":{"ts":1,"type":"say","say":"text","text":"","partial":true}}`
	addedThought = `message.added 1 {"history":"ui","message":4,"content":{"ts":1,"type":"say","say":"reasoning","text":"","partial":true}}`
	addedCommand = `message.added 1 {"history":"ui","message":6,"content":{"ts":1,"type":"ask","ask":"command","text":"make test"}}`
	addedRead    = `message.added 1 {"history":"ui","message":7,"content":{"ts":1,"type":"ask","ask":"tool","text":"{\"tool\":\"readFile\",\"path\":\"src/a.go\"}"}}`
)

func TestDisplay(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		o      Options
		events []string
		want   string
	}{
		{"live text comes once", Options{Live: true}, []string{
			addedText,
			`message.delta 0 {"message":5,"offset":0,"text":"Hello "}`,
			`message.delta 0 {"message":5,"offset":6,"text":"you"}`,
			`message.text_saved 2 {"message":5,"text":"Hello you"}`,
			`message.changed 3 {"message":5,"content":{"type":"say","say":"text","text":"Hello you"}}`,
		}, "Hello you\n"},
		{"the durable event fills what live missed", Options{Live: true}, []string{
			addedText,
			`message.delta 0 {"message":5,"offset":0,"text":"He"}`,
			`message.delta 0 {"message":5,"offset":6,"text":"you"}`,
			`message.changed 3 {"message":5,"content":{"type":"say","say":"text","text":"Hello you"}}`,
		}, "Hello you\n"},
		{"text whose beginning was saved before", Options{Live: true}, []string{
			`message.delta 0 {"message":5,"offset":10,"text":"three "}`,
			`message.text_saved 2 {"message":5,"text":"three four"}`,
			`message.changed 3 {"message":5,"content":{"type":"say","say":"text","text":"one two   three four five"}}`,
		}, "one two   three four five\n"},
		{"words that are in the log only at their end", Options{Live: true}, []string{
			`reasoning.delta 0 {"message":4,"offset":0,"text":"hm"}`,
			`message.delta 0 {"message":5,"offset":0,"text":"Hello "}`,
			`message.delta 0 {"message":5,"offset":6,"text":"you"}`,
			`message.added 3 {"history":"ui","message":4,"content":{"type":"say","say":"reasoning","text":"hm","partial":false}}`,
			`message.added 3 {"history":"ui","message":5,"content":{"type":"say","say":"text","text":"Hello you","partial":false}}`,
			`notice 0 {"text":"n"}`,
		}, "  hm\nHello you\n! n\n"},
		{"output of a command whose row was not seen", Options{Live: true}, []string{
			`message.delta 0 {"message":5,"call":"c1","offset":0,"text":"out"}`,
		}, ""},
		{"thinking is shown live only", Options{}, []string{
			addedThought, `message.text_saved 2 {"message":4,"text":"hm"}`,
			addedText, `message.text_saved 2 {"message":5,"text":"done"}`,
		}, "done\n"},
		{"thinking then words", Options{Live: true}, []string{
			addedThought, `reasoning.delta 0 {"message":4,"offset":0,"text":"a\nb"}`,
			addedText, `message.delta 0 {"message":5,"offset":0,"text":"c"}`,
		}, "  a\n  b\nc\n"},
		{"a read", Options{}, []string{
			addedRead,
			`tool.started 1000 {"call":"c1","name":"read_file","message":7}`,
			`tool.finished 1010 {"call":"c1","name":"read_file","outcome":"ok","result":{"type":"tool_result","content":"1\n2\n3\n"}}`,
		}, "✓ read_file src/a.go · 3 lines\n"},
		{"a command", Options{}, []string{
			addedCommand,
			`tool.started 1000 {"call":"c1","name":"execute_command","message":6}`,
			`tool.finished 3400 {"call":"c1","name":"execute_command","outcome":"ok","exit":2,"result":{"content":"x"}}`,
		}, "$ make test\n✗ execute_command make test · exit 2 · 2.4s\n"},
		{"denied", Options{}, []string{
			`tool.finished 3400 {"call":"c1","name":"execute_command","outcome":"denied","approval":{"state":"denied","by":"policy","rule":"rm"},"result":{"content":"x"}}`,
		}, "✗ denied: execute_command: a rule denies rm\n"},
		{"denied by a hook", Options{}, []string{
			`tool.finished 3400 {"call":"c1","name":"execute_command","outcome":"denied","approval":{"state":"denied","by":"policy","kind":"hook","rule":"no-push"},"result":{"content":"x"}}`,
		}, "✗ denied: execute_command: the hook no-push denies it\n"},
		{"unknown outcome", Options{}, []string{
			`tool.finished 3400 {"call":"c1","name":"execute_command","outcome":"unknown","result":{"content":"x"}}`,
		}, "? execute_command · unknown\n"},
		{"escape sequences do not reach the terminal", Options{Live: true}, []string{
			addedText, `message.delta 0 {"message":5,"offset":0,"text":"a\u001b[2Jb\u0007"}`,
		}, "ab\n"},
		{"quiet", Options{Quiet: true, Live: true}, []string{
			addedText, `message.delta 0 {"message":5,"offset":0,"text":"a"}`, `notice 0 {"text":"not saved"}`,
		}, "! not saved\n"},
		{"colour", Options{Theme: theme.Basic()}, []string{`notice 0 {"text":"x"}`}, "\x1b[33m! x\x1b[0m\n"},
		{"not JSON, and types from the future", Options{}, []string{`notice 0 {`, `hologram 0 {"text":"x"}`}, ""},
		{"width", Options{Width: 30}, []string{
			`message.added 1 {"history":"ui","message":6,"content":{"type":"ask","ask":"command","text":"echo a very long line that never ends"}}`,
			`tool.started 1000 {"call":"c1","name":"execute_command","message":6}`,
			`tool.finished 1001 {"call":"c1","name":"execute_command","outcome":"ok","exit":0,"result":{"content":"x"}}`,
		}, "$ echo a very long line that …\n✓ execute_command ec… · exit 0\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := play(t, tt.o, tt.events...); got != tt.want {
				t.Errorf("written:\n%q\nwant:\n%q", got, tt.want)
			}
		})
	}
}

// However live and durable pieces of a text mix, it is shown exactly once.
func TestTextIsShownOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-zé ]{1,40}`).Draw(t, "text")
		var b strings.Builder
		d := New(&b, Options{Live: true})
		d.Show("message.added", []byte(`{"history":"ui","message":5,"content":{"type":"say","say":"text","text":""}}`))
		runes := []rune(text)
		saved := 0
		for i := 0; i < len(runes); {
			n := rapid.IntRange(1, len(runes)-i).Draw(t, "n")
			piece, offset := string(runes[i:i+n]), len(string(runes[:i]))
			if rapid.Bool().Draw(t, "live") {
				d.Show("message.delta", fmt.Appendf(nil, `{"message":5,"offset":%d,"text":%q}`, offset, piece))
			}
			i += n
			if rapid.Bool().Draw(t, "save") {
				d.Show("message.text_saved", fmt.Appendf(nil, `{"message":5,"text":%q}`, string(runes[saved:i])))
				saved = i
			}
		}
		d.Show("message.changed", fmt.Appendf(nil, `{"message":5,"content":{"type":"say","say":"text","text":%q}}`, text))
		if got := strings.TrimSuffix(b.String(), "\n"); got != text {
			t.Fatalf("shown %q, want %q", got, text)
		}
	})
}

func TestTotals(t *testing.T) {
	t.Parallel()
	d := New(&strings.Builder{}, Options{})
	for _, e := range []struct {
		typ  string
		ms   int64
		data string
	}{
		{"turn.started", 10, `{"turn":1}`},
		{"usage.changed", 20, `{"input":100,"output":20,"cost_micros":1500}`},
		{"turn.started", 30, `{"turn":2}`},
		{"usage.changed", 40, `{"input":10,"output":2,"cache_read":300,"cache_write":1000,"cost_micros":null}`},
	} {
		d.Show(e.typ, stamped(e.ms, e.data))
	}
	want := Totals{Turns: 2, In: 1410, Out: 22, Cost: 1500, Unknown: true, Started: 10, LastSeen: 40}
	if d.Usage != want {
		t.Errorf("totals %+v, want %+v", d.Usage, want)
	}
}

func TestWidths(t *testing.T) {
	t.Parallel()
	if got := Cut("日本語テキスト", 7); got != "日本語…" || Columns(got) > 7 {
		t.Errorf("Cut: %q", got)
	}
	if got := Pad("日", 4); got != "日  " {
		t.Errorf("Pad: %q", got)
	}
	if got := (Style{}).Paint(view.Bad, "x"); got != "x" {
		t.Errorf("Paint without colour: %q", got)
	}
	for d, want := range map[time.Duration]string{
		350 * time.Millisecond: "350ms", 2400 * time.Millisecond: "2.4s", 185 * time.Second: "3m05s", 130 * time.Minute: "2h10m",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%v) = %q, want %q", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		5 * time.Second: "5s", 3 * time.Hour: "3h", 96 * time.Hour: "4d", 60 * 24 * time.Hour: "8w", 800 * 24 * time.Hour: "2y",
	} {
		if got := Age(d); got != want {
			t.Errorf("Age(%v) = %q, want %q", d, got, want)
		}
	}
}

// A count-down stands on one line, and what comes next takes its place. A log and a
// quiet person get none.
func TestCountDown(t *testing.T) {
	events := []string{
		`notice 1 {"text":"busy"}`, `wait.delta 1 {"text":"12s"}`, `wait.delta 2 {"text":"9s\u001b[2J"}`, `notice 3 {"text":"on"}`, `wait.delta 4 {"text":"1s"}`,
	}
	const wiped = "\r                       \r"
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"watched": {Options{Live: true}, "! busy\n  asking again in 12s" + wiped[:22] + "\r  asking again in 9s"},
		"a log":   {Options{}, "! busy\n! on\n"},
		"quiet":   {Options{Live: true, Quiet: true}, "! busy\n! on\n"},
		"narrow":  {Options{Live: true, Width: 9}, "! busy\n  askin…"},
	} {
		got := play(t, c.o, events...)
		if !strings.HasPrefix(got, c.want) || strings.Contains(got, "\x1b[2J") || !strings.Contains(got, "! on\n") {
			t.Errorf(`%s: got %q, want strings.HasPrefix(got, c.want) and not strings.Contains(got, "\x1b[2J") and strings.Contains(got, "! on\n")`,
				name, got)
		}
		if c.o.Live && !c.o.Quiet && !strings.HasSuffix(got, " \r") {
			t.Errorf("%s: something stays on the line: %q", name, got)
		}
	}
}
