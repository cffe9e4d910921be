package contextwindow_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/apirules"
)

func said(text string, ts int) []byte {
	return fmt.Appendf(nil, `{"role":"user","content":[{"type":"text","text":%q}],"ts":%d}`, text, ts)
}

func called(id string, ts int) []byte {
	return fmt.Appendf(nil, `{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":%q,"name":"look","input":{"path":"a"}}],"ts":%d}`, id, ts)
}

func answered(id, text string, ts int) []byte {
	return fmt.Appendf(nil, `{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%q}],"ts":%d}`, id, text, ts)
}

// looks is a history of so many calls with results of size bytes each.
func looks(n, size int) [][]byte {
	list := [][]byte{said("the task", 100)}
	for i := range n {
		id := fmt.Sprint("c", i)
		list = append(list, called(id, 200+20*i), answered(id, strings.Repeat("r", size), 210+20*i))
	}
	return list
}

func TestPlanCondense(t *testing.T) {
	waiting := append(looks(4, 10), called("open", 900))
	words := append(looks(4, 10), called("q", 900), answered("q", "ok", 901), said("and then?", 902))
	for _, c := range []struct {
		name     string
		list     [][]byte
		keep     int
		sent, at int
	}{
		{"nothing is small enough to stay", looks(3, 1000), 10, 7, 7},
		{"the newest call stays with its result", looks(3, 1000), 1500, 5, 5},
		{"two calls stay", looks(3, 1000), 2600, 3, 3},
		{"a call that is not answered stays", waiting, 0, 9, 9},
		{"a person's words stay", words, 0, 11, 11},
		{"words stay, and what fits before them", words, 400, 9, 9},
	} {
		got, err := contextwindow.PlanCondense(c.list, c.keep)
		if err != nil || got.Sent != c.sent || got.At != c.at || len(got.Cover) != c.sent {
			t.Errorf("%s: %+v, %v; want %d sent, at %d", c.name, got, err, c.sent, c.at)
		}
	}
	for _, list := range [][][]byte{nil, {said("x", 1)}, {said("x", 1), called("c", 2)}, looks(1, 10)[:2]} {
		if got, err := contextwindow.PlanCondense(list, 0); !errors.Is(err, contextwindow.ErrTooShort) {
			t.Errorf("of %d messages: %+v, %v", len(list), got, err)
		}
	}
}

// A condensation covers the messages that a truncation hid, and its marker, and does not count them as sent.
func TestCondenseATruncatedHistory(t *testing.T) {
	list := looks(4, 10)
	for i := 1; i < 3; i++ {
		list[i] = esjson.Set(list[i], "truncationParent", []byte(`"t"`))
	}
	list = slices.Insert(list, 1, []byte(`{"role":"user","content":"m","isTruncationMarker":true,"truncationId":"t"}`))
	got, err := contextwindow.PlanCondense(list, 0)
	if want := (contextwindow.Condensation{Cover: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, Sent: 7, At: 10}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

// A summary of a summary stands for all before it; one that is new is left alone.
func TestCondenseTwice(t *testing.T) {
	list := looks(4, 300)
	first, err := contextwindow.PlanCondense(list, 600)
	if err != nil {
		t.Fatal(err)
	}
	list = first.With(list, first.Message(list, contextwindow.Summary{ID: "one", Text: "1"}, 5))
	if got, err := contextwindow.PlanCondense(list, 600); !errors.Is(err, contextwindow.ErrTooShort) {
		t.Errorf("right behind a summary: %+v, %v", got, err)
	}
	list = append(list, called("x", 900), answered("x", strings.Repeat("r", 300), 901), called("y", 902), answered("y", "r", 903))
	second, err := contextwindow.PlanCondense(list, 300)
	if err != nil {
		t.Fatal(err)
	}
	summary := second.Message(list, contextwindow.Summary{ID: "two", Text: "2"}, 5)
	got := second.With(list, summary)
	var tags []string
	for _, raw := range got {
		tag, _ := esjson.GetString(raw, "condenseParent")
		tags = append(tags, tag)
	}
	want := []string{"one", "one", "one", "one", "one", "one", "one", "two", "two", "two", "two", "two", "", "", ""}
	if d := cmp.Diff(want, tags); d != "" {
		t.Error(d)
	}
	sent := contextwindow.Effective(got)
	if len(sent) != 3 || string(sent[0]) != string(summary) {
		t.Errorf("%d messages are sent: %.300s", len(sent), sent)
	}
	// Without the newest, the one before it holds again.
	back := slices.DeleteFunc(slices.Clone(got), func(raw []byte) bool { return string(raw) == string(summary) })
	if d := cmp.Diff(len(list), len(contextwindow.Cleaned(t, back))); d != "" {
		t.Error(d)
	}
	for i, raw := range contextwindow.Cleaned(t, back) {
		if string(raw) != string(list[i]) {
			t.Errorf("message %d: %s", i, raw)
		}
	}
}

func TestSummaryMessage(t *testing.T) {
	list := looks(2, 10)
	c := contextwindow.Condensation{Cover: []int{0, 1, 2}, At: 3}
	got := string(c.Message(list, contextwindow.Summary{ID: "id", Text: "words", Reminders: []string{"hold"}, Ending: "end"}, 7))
	want := `{"role":"user","content":[{"type":"text","text":"## Conversation Summary\nwords"},{"type":"text","text":"<system-reminder>\nhold\n</system-reminder>"},{"type":"text","text":"end"}],"ts":219,"isSummary":true,"condenseId":"id"}`
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	c.At = len(list)
	if ts, _ := esjson.GetInt(c.Message(list, contextwindow.Summary{}, 7), "ts"); ts != 231 {
		t.Errorf("at the end: ts %d", ts)
	}
	if ts, _ := esjson.GetInt(c.Message([][]byte{[]byte(`{"role":"user"}`), []byte(`{"role":"user"}`), []byte(`{"role":"user"}`)}, contextwindow.Summary{}, 7), "ts"); ts != 7 {
		t.Errorf("without times: ts %d", ts)
	}
}

func TestCommands(t *testing.T) {
	first := said("/go now\n<command name=\"go\">\nGO\n</command>\n\n<command name=\"x\">y</command><command name=\"go\">again</command> <commander>", 1)
	got := contextwindow.Commands([][]byte{first, said("<command name=\"late\">z</command>", 2)})
	if d := cmp.Diff([]string{"<command name=\"go\">\nGO\n</command>", "<command name=\"x\">y</command>"}, got); d != "" {
		t.Error(d)
	}
	if got := contextwindow.Commands(nil); got != nil {
		t.Errorf("of nothing: %q", got)
	}
}

// Whatever the history looks like: nothing is lost by condensing, what is sent after it
// is valid, holds the end of what was sent before, and taking the summary away gives
// the history back.
func TestCondenseProperty(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		list := [][]byte{said("begin", 1)}
		ts, open := 2, ""
		for i := range rapid.IntRange(0, 14).Draw(r, "messages") {
			ts += rapid.IntRange(-1, 3).Draw(r, "step")
			switch kind := rapid.IntRange(0, 5).Draw(r, "kind"); {
			case open != "" && kind > 0:
				list, open = append(list, answered(open, strings.Repeat("x", rapid.IntRange(0, 300).Draw(r, "size")), ts)), ""
			case kind < 4:
				open = fmt.Sprint("c", i)
				list = append(list, called(open, ts))
			default:
				list = append(list, said("more", ts))
			}
			if rapid.IntRange(0, 9).Draw(r, "truncate") == 0 {
				list, _ = contextwindow.Truncated(r, list, 0.5, fmt.Sprint("t", i), int64(ts))
			}
			if rapid.IntRange(0, 5).Draw(r, "condense") > 0 {
				continue
			}
			plan, err := contextwindow.PlanCondense(list, rapid.IntRange(0, 600).Draw(r, "keep"))
			if err != nil {
				continue
			}
			summary := plan.Message(list, contextwindow.Summary{ID: fmt.Sprint("s", i), Text: "sum"}, int64(ts))
			next := plan.With(list, summary)
			if len(next) != len(list)+1 {
				r.Fatalf("%d messages became %d", len(list), len(next))
			}
			back := slices.DeleteFunc(slices.Clone(next), func(raw []byte) bool { return string(raw) == string(summary) })
			was := contextwindow.Cleaned(r, list)
			for k, raw := range contextwindow.Cleaned(r, back) {
				if string(raw) != string(was[k]) {
					r.Fatalf("message %d: %s, was %s", k, raw, list[k])
				}
			}
			sent := contextwindow.Effective(next)
			if string(sent[0]) != string(summary) {
				r.Fatalf("what is sent begins with %s", sent[0])
			}
			list = next
		}
		messages, _, err := contextwindow.Build(list, contextwindow.For("anthropic"))
		if err != nil {
			r.Fatal(err)
		}
		if err := apirules.Validate(messages); err != nil {
			r.Fatalf("%v in %s", err, list)
		}
	})
}

func TestTranscript(t *testing.T) {
	list := append(looks(2, 3000), []byte(`{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},{"type":"tool_result","tool_use_id":"z","is_error":true,"content":[{"type":"text","text":"bad"}]}]}`),
		[]byte(`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"}]}`), []byte(`{"role":"user","content":"plain"}`), []byte(`null`))
	got := contextwindow.Transcript(list, 100_000)
	for _, part := range []string{"User:\nthe task", "Assistant:\nI look.\n[Tool Use: look]\npath: a", "[Tool Result]\nrrr", "[image]\n[Tool Result (Error)]\nbad", "User:\nplain"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is not in %.300s", part, got)
		}
	}
	if strings.Contains(got, "hm") || strings.Contains(got, "left out") {
		t.Error(got)
	}
	if got = contextwindow.Transcript(list, 3000); len(got) > 3000 || !strings.Contains(got, "bytes left out") || !strings.Contains(got, "plain") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	if got = contextwindow.Transcript(looks(200, 3000), 3000); len(got) > 3100 || !strings.Contains(got, "messages are left out") || !strings.Contains(got, "the task") || !strings.Contains(got, strings.Repeat("r", 50)) {
		t.Errorf("%d bytes: %.400s", len(got), got)
	}
	if got = contextwindow.Transcript(nil, 10); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

// A text of any bytes is cut between characters, and never grows beyond its room by
// much.
func TestTranscriptProperty(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var list [][]byte
		for _, text := range rapid.SliceOfN(rapid.StringN(0, 400, -1), 0, 20).Draw(r, "texts") {
			list = append(list, fmt.Appendf(nil, `{"role":"user","content":%s}`, esjson.Quote(nil, text)))
		}
		room := rapid.IntRange(0, 4000).Draw(r, "room")
		got := contextwindow.Transcript(list, room)
		if len(got) > room+200+20*40 {
			r.Fatalf("%d bytes for %d", len(got), room)
		}
		if strings.ToValidUTF8(got, "") != got {
			r.Fatalf("half a character: %q", got)
		}
	})
}
