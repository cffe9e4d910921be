package task_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/task"
)

func TestLinesThatAreNoEvents(t *testing.T) {
	for _, line := range []string{
		``, ` `, `7`, `"message.added"`, `[]`, `[{"type":"run.ended"}]`, `{`, `{"type":"run.ended"`, `{"type":7}`, `{"type":["run.ended"]}`,
		`{"type":"run.ended"}}`, `{"type":"message.added"`, `{"type":"message.text_saved","message":1,"text":"a}`,
		`{"type":"message.added","history":7,"message":1,"raw":{}}`,
		`{"type":"message.added","history":"ui","message":"1","raw":{}}`,
		`{"type":"message.added","history":"ui","message":1.5,"raw":{}}`,
		`{"type":"message.added","history":"ui","message":-1,"raw":{}}`,
		`{"type":"message.added","history":"ui","message":18446744073709551616,"raw":{}}`,
		`{"type":"message.added","history":"ui","message":1,"blob":7}`,
		`{"type":"message.added","history":"ui","message":1,"compose":{"literal":"x"}}`,
		`{"type":"message.added","history":"ui","message":1,"compose":["x"]}`,
		`{"type":"message.added","history":"ui","message":1,"compose":[{"text_of":"1"}]}`,
		`{"type":"message.changed","message":1,"compose":[{"literal":1}]}`,
		`{"type":"message.changed","message":1,"compose":[{"result":null}]}`,
		`{"type":"message.text_saved","message":1,"text":null}`,
		`{"type":"message.hidden","messages":1}`, `{"type":"message.hidden","messages":[-1]}`,
		`{"type":"tool.finished","call":7,"result":{}}`, `{"type":"tool.finished","call":"c","exit":"0"}`,
		`{"type":"foreign.imported","rows":[7]}`, `{"type":"task.adopted","files":[{"spans":["1"]}]}`,
		`{"type":"usage.changed","cost_micros":0.5}`, `{"type":"task.changed","settings":"code"}`, `{"type":"question.closed","approve":"yes"}`,
	} {
		if e, err := task.Decode([]byte(line)); err == nil {
			t.Errorf("%s was read as %#v", line, e)
		}
		w := tell(t, ui(1, say(1, "a")))
		before := dump(w.State)
		if err := w.line(line); err == nil || len(w.Problems) != 1 {
			t.Errorf("%s was folded: %v", line, w.Problems)
		}
		w.Problems, w.Seq = nil, 1
		if dump(w.State) != before {
			t.Errorf("%s changed the state", line)
		}
	}
}

// A log may have been written by another version, or mended by hand.
func TestOtherSpellingsOfAnEvent(t *testing.T) {
	want := task.MessageAdded{History: task.API, Message: 7, Body: task.Body{Raw: json.RawMessage(`{"a":1.0}`)}}
	for name, line := range map[string]string{
		"as it is written":     `{"type":"message.added","history":"api","message":7,"raw":{"a":1.0}}`,
		"the type at the end":  `{"history":"api","message":7,"raw":{"a":1.0},"type":"message.added"}`,
		"blanks":               " {\n\"type\" : \"message.added\",\t\"history\" : \"api\", \"message\" : 7 , \"raw\" : {\"a\":1.0} } ",
		"names with escapes":   `{"\u0074ype":"message\u002eadded","h\u0069story":"\u0061pi","m\u0065ssage":7,"r\u0061w":{"a":1.0}}`,
		"members nobody knows": `{"type":"message.added","later":[1,{"raw":2}],"history":"api","message":7,"raw":{"a":1.0},"by":"x"}`,
		"the last one counts":  `{"type":"message.added","history":"ui","message":3,"raw":0,"history":"api","message":7,"raw":{"a":1.0}}`,
	} {
		got, err := task.Decode([]byte(line))
		if err != nil {
			t.Errorf("%s: got %v, want no error", name, err)
			continue
		}
		if d := cmp.Diff(task.Event(want), got); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", name, d)
		}
	}
}

func TestWhatNobodyKnowsIsKeptToTheByte(t *testing.T) {
	for _, line := range []string{
		`{"type":"checkpoint.imagined","x":1.0}`, `{"x":"\ud800","type":"history.mended"}`, `{ "type" : "later" }`, `{"type":""}`, `{}`,
		`{"type":"message.added.v2","history":"ui","message":1,"raw":{}}`, `{"type":"` + strings.Repeat("x", 100) + `"}`,
		`{"type":"Message.added","message":1}`,
	} {
		e, err := task.Decode([]byte(line))
		if err != nil {
			t.Errorf("%s: got %v, want no error", line, err)
			continue
		}
		if _, unknown := e.(task.Unknown); !unknown {
			t.Errorf("%s was taken for %T", line, e)
		}
		if back, err := task.Encode(e); err != nil || string(back) != line {
			t.Errorf("%s came back as %s (%v)", line, back, err)
		}
		w := tell(t, ui(1, say(1, "a")))
		before := dump(w.State)
		if err := w.line(line); err != nil {
			t.Errorf("%s: got %v, want no error", line, err)
		}
		w.Seq, w.UpdatedAt = 1, 1001
		if dump(w.State) != before {
			t.Errorf("%s changed the state", line)
		}
	}
}

// Every type has its decoder: one that was forgotten would come back as unknown.
func TestEveryEventTypeIsKnown(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range zeroEvents {
		if seen[e.EventType()] {
			t.Errorf("%s comes twice", e.EventType())
		}
		seen[e.EventType()] = true
		got, err := task.Decode([]byte(`{"type":"` + e.EventType() + `"}`))
		if err != nil || reflect.TypeOf(got) != reflect.TypeOf(e) {
			t.Errorf("%s was read as %T (%v)", e.EventType(), got, err)
		}
	}
}

// Text of any kind goes through the log unchanged, and the line stays one line of
// ASCII-safe JSON as the journal needs it.
func TestAnyTextGoesThroughTheLog(t *testing.T) {
	for _, text := range []string{
		"", "\u2028\u2029", "<script>&amp;", "\x00\x1f\x7f", "\xed\xa0\xbd", "\xed\xb8\x80\xed\xa0\xbd", "😀é", "a\r\n\tb\\\"/", strings.Repeat("x", 1<<16),
	} {
		for name, c := range map[string]struct {
			event task.Event
			get   func(e task.Event) string
		}{
			"streamed": {task.MessageTextSaved{Message: 1, Text: text}, func(e task.Event) string { return e.(task.MessageTextSaved).Text }},
			"literal": {task.MessageChanged{Message: 1, Body: task.Body{Compose: []task.Piece{{Literal: text}}}},
				func(e task.Event) string { return e.(task.MessageChanged).Compose[0].Literal }},
			"call": {task.MessageChanged{Message: 1, Body: task.Body{Compose: []task.Piece{{Result: "c" + text}}}},
				func(e task.Event) string { return e.(task.MessageChanged).Compose[0].Result[1:] }},
		} {
			line, err := task.Encode(c.event)
			if err != nil {
				t.Fatal(err)
			}
			if !json.Valid(line) || strings.ContainsAny(string(line), "\n\r") {
				t.Errorf("%s %q: the line is %s", name, text, line)
			}
			got, err := task.Decode(line)
			if err != nil || c.get(got) != text {
				t.Errorf("%s: %q came back as %#v (%v)", name, text, got, err)
			}
		}
	}
}

// What Decode takes means the same when it is written again: the log can be
// copied, forked and migrated.
func again(t interface{ Fatalf(string, ...any) }, line []byte) {
	e, err := task.Decode(line)
	if err != nil {
		return
	}
	out, err := task.Encode(e)
	if err != nil {
		return // a message without content, which only a damaged log has
	}
	back, err := task.Decode(out)
	if err != nil {
		t.Fatalf("%q became %q: %v", line, out, err)
	}
	if d := cmp.Diff(e, back, cmp.Comparer(sameRaw)); d != "" && json.Valid(line) {
		t.Fatalf("%q became %q: %s", line, out, d)
	}
}

func FuzzDecodeEncode(f *testing.F) {
	for _, e := range zeroEvents {
		f.Add([]byte(`{"type":"` + e.EventType() + `"}`))
	}
	f.Add([]byte(`{"type":"tool.finished","result":{"x":"\ud800"},"Result":1,"call":"c"}`))
	f.Add([]byte(`{"type":"message.added","history":"ui","message":1,"compose":[{"literal":"\ud800"},{"text_of":1},{"result":"c"}]}`))
	f.Add([]byte(`{"type":"foreign.imported","rows":[{"message":1,"off":2,"len":3}],"item":{"a":1}}`))
	f.Fuzz(func(t *testing.T, line []byte) { again(t, line) })
}

// Hostile lines on top of a real run: whatever they say, the state stays one.
func TestHostileLinesOnTopOfARun(t *testing.T) {
	numbers := []string{"0", "1", "2", "3", "7", "-1", "1048577", "9223372036854775807", "18446744073709551615", "1e3", "null", `"1"`}
	texts := []string{`"c1"`, `"ui"`, `"api"`, `""`, `"blob0"`, `"\ud800"`, `7`, `{}`, `[]`, `[[]]`, `{"type":"tool_use","id":"c1"}`, assistant("c1"), results("c1")}
	rapid.Check(t, func(t *rapid.T) {
		p := play(t)
		for range rapid.IntRange(1, 4).Draw(t, "lines") {
			name := rapid.SampledFrom(zeroEvents).Draw(t, "type").EventType()
			line := `{"type":"` + name + `"`
			for range rapid.IntRange(0, 5).Draw(t, "members") {
				key := rapid.SampledFrom([]string{"message", "messages", "history", "raw", "blob", "compose", "call", "result", "rows", "files", "run", "question", "first", "child", "input", "cost_micros", "path", "item", "result_blob"}).Draw(t, "key")
				line += `,"` + key + `":` + rapid.SampledFrom(append(numbers, texts...)).Draw(t, "value")
				if rapid.Bool().Draw(t, "in a list") {
					line = strings.TrimSuffix(line, "}") + `,"rows":[{"message":` + rapid.SampledFrom(numbers).Draw(t, "row") + `,"off":1,"len":` + rapid.SampledFrom(numbers).Draw(t, "len") + `}]`
				}
			}
			_ = p.s.Apply(commit(p.s.Seq+1, json.RawMessage(line+"}")))
			checkValid(t, p.s)
		}
		data, err := p.s.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := task.Restore(data, memory{}, 0); err != nil {
			t.Fatal(err)
		}
		use(p.s)
	})
}
