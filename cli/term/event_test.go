package term

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/view"
)

// chunks is a writer that keeps each write apart.
type chunks []string

func (c *chunks) Write(p []byte) (int, error) {
	*c = append(*c, string(p))
	return len(p), nil
}

func show(d *Display, typ, data string) { d.Show(typ, stamped(1, data)) }

// stamped puts the time into an event, in Unix milliseconds; 0 = none.
func stamped(ms int64, data string) []byte {
	rest, ok := strings.CutPrefix(data, "{")
	if !ok || ms == 0 {
		return []byte(data)
	}
	if rest != "}" {
		rest = "," + rest
	}
	return []byte(`{"at":"` + time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") + `"` + rest)
}

// A terminal gets each event in one write, however many lines and colours it has;
// a log gets whole lines.
func TestWritesAreGathered(t *testing.T) {
	t.Parallel()
	events := [][2]string{
		{"message.added", `{"history":"ui","message":5,"content":{"type":"say","say":"text","text":""}}`},
		{"message.delta", `{"message":5,"offset":0,"text":"one\ntwo\nth"}`},
		{"message.delta", `{"message":5,"offset":10,"text":"ree "}`},
		{"message.delta", `{"message":5,"offset":14,"text":"and more"}`},
		{"message.changed", `{"message":5,"content":{"type":"say","say":"text","text":"one\ntwo\nthree and more"}}`},
		{"notice", `{"text":"saved"}`},
	}
	for name, c := range map[string]struct {
		o    Options
		want []string
	}{
		"terminal": {Options{Live: true}, []string{"one\ntwo\nth", "ree ", "and more", "\n", "! saved\n"}},
		"log":      {Options{}, []string{"one\ntwo\nthree and more\n", "! saved\n"}},
	} {
		var got chunks
		d := New(&got, c.o)
		for _, e := range events {
			show(d, e[0], e[1])
		}
		if diff := cmp.Diff(c.want, []string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// An unfinished line of a log does not gather without end.
func TestLongLineOfALogIsWrittenInPieces(t *testing.T) {
	t.Parallel()
	var got chunks
	d := New(&got, Options{})
	show(d, "message.added", `{"history":"ui","message":5,"content":{"type":"say","say":"text","text":""}}`)
	for i := range 100 {
		show(d, "message.delta", fmt.Sprintf(`{"message":5,"offset":%d,"text":%q}`, i*1000, strings.Repeat("x", 1000)))
	}
	d.Flush()
	for _, c := range got {
		if len(c) > holdBytes+1000 {
			t.Errorf("%d bytes in one write", len(c))
		}
	}
	if whole := strings.Join(got, ""); whole != strings.Repeat("x", 100_000)+"\n" {
		t.Errorf("%d bytes were written", len(whole))
	}
}

// A terminal that is gone does not stop the run that is shown on it.
func TestWriterThatFails(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	r.Close()
	d := New(w, Options{Live: true})
	for range 3 {
		d.Notice("x")
		show(d, "turn.started", `{"turn":1}`)
	}
	if d.Usage.Turns != 3 {
		t.Errorf("%d turns", d.Usage.Turns)
	}
	if len(d.buf) != 0 {
		t.Errorf("%d bytes gather for nobody", len(d.buf))
	}
}

func TestWhatIsReadOfAnEvent(t *testing.T) {
	t.Parallel()
	two, cost := int64(2), int64(-5)
	for _, c := range []struct {
		name, typ, data string
		want            fields
		ok              bool
	}{
		{"a call", "tool.finished", `{"call":"c","name":"n","outcome":"error","exit":2,"result":[1],"approval":{"rule":"rm"}}`,
			fields{Call: "c", Name: "n", Outcome: "error", Exit: &two, Result: []byte("[1]"), Approval: []byte(`{"rule":"rm"}`)}, true},
		{"without an exit", "tool.finished", `{"call":"c","exit":null,"approval":null}`, fields{Call: "c", Approval: []byte("null")}, true},
		{"usage", "usage.changed", `{"input":3,"output":4,"cost_micros":-5}`, fields{Input: 3, Output: 4, Cost: &cost}, true},
		{"the cost is unknown", "usage.changed", `{"input":3,"cost_micros":null}`, fields{Input: 3}, true},
		{"the model's own history", "message.added", `{"history":"api","message":1,"content":{}}`, fields{}, false},
		{"a row", "message.added", `{"seq":1,"history":"ui","message":18446744073709551615,"content":{"a":1}}`,
			fields{History: "ui", Message: 1<<64 - 1, Content: []byte(`{"a":1}`)}, true},
		{"wrong kinds", "message.delta", `{"message":"x","offset":{},"text":7}`, fields{}, true},
		{"a lone surrogate", "notice", `{"text":"a\ud800b"}`, fields{Text: "a\uFFFDb"}, true},
		{"no object", "notice", `["text"]`, fields{}, false},
		{"nothing", "notice", ``, fields{}, false},
	} {
		got, ok := readFields([]byte(c.data))
		if ok != c.ok {
			t.Errorf("%s: ok %v", c.name, ok)
		}
		if diff := cmp.Diff(c.want, got); ok && diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// Each of these types is shown or counted; every other is left alone.
func TestTypesThatAreShown(t *testing.T) {
	t.Parallel()
	for _, typ := range []string{
		"message.added", "message.changed", "message.text_saved", "message.delta", "reasoning.delta",
		"tool.started", "tool.finished", "turn.started", "usage.changed", "notice", "wait.delta",
		"subtask.started", "history.condensed", "foreign.imported", "foreign.refused",
	} {
		var got chunks
		d := New(&got, Options{Live: true, Verbose: true})
		show(d, "message.added", `{"history":"ui","message":9,"content":{"type":"say","say":"text","text":""}}`)
		before := d.Usage
		show(d, typ, `{"history":"ui","message":9,"call":"c","offset":0,"name":"n","outcome":"ok","text":"words","reason":"why","input":1,"output":1,
			"content":{"type":"say","say":"text","text":"words"},"result":{"content":"x"}}`)
		d.Flush()
		if typ == "tool.started" { // is shown when it ends
			continue
		}
		if len(got) == 0 && d.Usage == before {
			t.Errorf("%s is read and not shown", typ)
		}
	}
	var got chunks
	d := New(&got, Options{Live: true, Verbose: true})
	for _, typ := range []string{"epoch.opened", "run.started", "turn.ended", "message.hidden", "input.queued", "hologram"} {
		show(d, typ, `{"text":"words","reason":"why"}`)
	}
	if len(got) > 0 {
		t.Errorf("written: %q", got)
	}
}

// hostile is text as a model, a tool or a file may have it.
func hostile() *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(rapid.OneOf(
		rapid.SampledFrom([]string{"\x1b[2J", "\x1b]0;title\a", "\u009b31m", "\r", "\b", "\x00", "\u202e", "\u2066", "\x7f", "\n", "\t", "é", "日本", "\xff", "\U000e0041"}),
		rapid.StringMatching(`[a-z ]{1,8}`),
	), 0, 12), func(parts []string) string { return strings.Join(parts, "") })
}

// checkSafe finds what a terminal would act on.
func checkSafe(t *rapid.T, out string) {
	for i, r := range out {
		switch {
		case r == '\n' || r == '\t':
		case r < 0x20, r >= 0x7f && r < 0xa0, r == 0x202e, r == 0x2066, r == utf8.RuneError && !strings.HasPrefix(out[i:], "\ufffd"):
			t.Fatalf("%U reaches the terminal in %q", r, out)
		}
	}
}

// Whatever models and tools write, nothing of it acts on the terminal, and no
// event makes the display fail.
func TestNothingHostileReachesATerminal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		d := New(&b, Options{
			Width: rapid.SampledFrom([]int{0, 1, 20, 80}).Draw(t, "width"), Verbose: rapid.Bool().Draw(t, "verbose"), Live: rapid.Bool().Draw(t, "live"),
		})
		q := func(name string) string { return fmt.Sprintf("%q", hostile().Draw(t, name)) }
		json := func(s string) string { // Go's spelling of a string is not quite JSON's
			return strings.NewReplacer(`\x`, `\u00`, `\a`, `\u0007`, `\v`, `\u000b`, `\U000e0041`, `\udb40\udc41`).Replace(s)
		}
		for range rapid.IntRange(1, 6).Draw(t, "events") {
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0:
				show(d, "message.added", json(`{"history":"ui","message":5,"content":{"type":"say","say":"text","text":`+q("text")+`}}`))
			case 1:
				show(d, "message.added", json(`{"history":"ui","message":6,"content":{"type":"ask","ask":"command","text":`+q("command")+`}}`))
				show(d, "tool.started", `{"call":"c","message":6}`)
			case 2:
				show(d, "tool.finished", json(`{"call":"c","name":`+q("name")+`,"outcome":`+q("outcome")+`,"result":{"content":`+q("result")+`}}`))
			case 3:
				show(d, "notice", json(`{"text":`+q("notice")+`}`))
			case 4:
				show(d, "message.delta", json(`{"message":5,"offset":0,"text":`+q("delta")+`}`))
			case 5:
				show(d, "foreign.refused", json(`{"reason":`+q("reason")+`}`))
			}
		}
		d.Lines([]view.Line{{Text: hostile().Draw(t, "line")}})
		d.Flush()
		checkSafe(t, b.String())
		if out := b.String(); out != "" && !strings.HasSuffix(out, "\n") {
			t.Fatalf("the last line is not finished: %q", out)
		}
	})
}

// FuzzShow: an event of any bytes is shown or not, and never fails.
func FuzzShow(f *testing.F) {
	for _, typ := range []string{
		"message.added", "message.changed", "message.text_saved", "message.delta", "reasoning.delta",
		"tool.started", "tool.finished", "turn.started", "usage.changed", "notice", "wait.delta",
		"subtask.started", "history.condensed", "foreign.imported", "foreign.refused",
	} {
		f.Add(typ, `{"history":"ui","message":1,"content":{"type":"ask","ask":"tool","text":"{}"},"result":[{"type":"text","text":"x"}],"text":"a"}`)
	}
	f.Fuzz(func(t *testing.T, typ, data string) {
		var b strings.Builder
		d := New(&b, Options{Live: true, Verbose: true, Width: 40})
		show(d, "message.added", data)
		show(d, typ, data)
		show(d, typ, data)
		d.Flush()
		if out := b.String(); out != "" && !strings.HasSuffix(out, "\n") && !strings.HasSuffix(out, " \r") { // a count-down was wiped
			t.Fatalf(`got %q, want out = "" or strings.HasSuffix(out, "\n") or strings.HasSuffix(out, " \r")`, out)
		}
	})
}

func TestToolLines(t *testing.T) {
	t.Parallel()
	const row = `message.added 1 {"history":"ui","message":7,"content":{"type":"ask","ask":"tool","text":"{\"tool\":\"readFile\",\"path\":\"a.go\"}"}}`
	started := `tool.started 1000 {"call":"c","message":7}`
	for name, c := range map[string]struct {
		o    Options
		end  string
		want string
	}{
		"one line is no count": {Options{}, `{"call":"c","name":"read_file","outcome":"ok","result":{"content":"1\n"}}`, "✓ read_file a.go\n"},
		"no result":            {Options{}, `{"call":"c","name":"read_file","outcome":"ok","result":{"content":""}}`, "✓ read_file a.go\n"},
		"an image":             {Options{}, `{"call":"c","name":"read_file","outcome":"ok","result":{"content":[{"type":"image","source":{}}]}}`, "✓ read_file a.go · 1 image\n"},
		"cancelled":            {Options{}, `{"call":"c","name":"read_file","outcome":"cancelled","result":{"content":"1\n2\n"}}`, "? read_file a.go · cancelled\n"},
		"a call nobody began":  {Options{}, `{"call":"other","name":"read_file","outcome":"ok","result":{"content":"1"}}`, "✓ read_file\n"},
		"an error, told":       {Options{Verbose: true}, `{"call":"c","name":"read_file","outcome":"error","result":{"content":"no\nsuch"}}`, "✗ read_file a.go · error\n  no\n  such\n"},
		"a long error, cut": {Options{Verbose: true}, `{"call":"c","name":"read_file","outcome":"error","result":{"content":"` + strings.Repeat(`x\n`, 12) + `"}}`,
			"✗ read_file a.go · error\n" + strings.Repeat("  x\n", 10) + "  ... 2 more lines\n"},
		"quiet": {Options{Quiet: true}, `{"call":"c","name":"read_file","outcome":"ok","result":{"content":"1"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := play(t, c.o, row, started, "tool.finished 1001 "+c.end); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestRowsThatNoOtherEventTells(t *testing.T) {
	t.Parallel()
	added := func(content string) string {
		return `message.added 1 {"history":"ui","message":3,"content":` + content + `}`
	}
	for _, c := range []struct{ name, content, want string }{
		{"an error", `{"type":"say","say":"error","text":"it broke\nbadly"}`, "✗ "},
		{"a failed diff", `{"type":"say","say":"diff_error","text":"no match"}`, "✗ "},
		{"an ignored file", `{"type":"say","say":"rooignore_error","text":"x.env"}`, "✗ "},
		{"the person's own words", `{"type":"say","say":"user_feedback","text":"hello"}`, ""},
		{"a row of the future", `{"type":"say","say":"hologram","text":"x"}`, ""},
		{"no row at all", `"text"`, ""},
	} {
		got := play(t, Options{}, added(c.content))
		if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) || strings.Count(got, "\n") > 1 {
			t.Errorf(`%s: got %q, want (c.want != "" or got = "") and strings.HasPrefix(got, c.want) and strings.Count(got, "\n") <= 1`,
				c.name, got)
		}
	}
}

// Two texts that grow at the same time do not run into each other.
func TestTextsTakeTurns(t *testing.T) {
	t.Parallel()
	got := play(t, Options{Live: true}, addedThought, addedText,
		`reasoning.delta 0 {"message":4,"offset":0,"text":"hm"}`,
		`message.delta 0 {"message":5,"offset":0,"text":"a"}`,
		`reasoning.delta 0 {"message":4,"offset":2,"text":", well"}`,
		`notice 0 {"text":"busy"}`,
		`message.delta 0 {"message":5,"offset":1,"text":"b"}`,
		`tool.finished 1 {"call":"c","name":"x","outcome":"ok","result":{"content":""}}`,
	)
	if want := "  hm\na\n  , well\n! busy\nb\n✓ x\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
