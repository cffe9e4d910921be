package task_test

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/usage"
)

// What a message says is what JSON.parse would give: the last of two members, any
// spelling of a number, names with escapes.
func TestWhatAMessageSays(t *testing.T) {
	for _, c := range []struct {
		name    string
		history task.History
		raw     string
		kind    string
		ts      int64
		text    string
		partial bool
	}{
		{"a row", task.UI, `{"ts":17,"type":"say","say":"text","text":"a"}`, "say:text", 17, "a", false},
		{"a question", task.UI, `{"ts":17,"type":"ask","ask":"tool","say":"x","text":"{}"}`, "ask:tool", 17, "{}", false},
		{"being streamed", task.UI, `{"ts":17,"type":"say","say":"text","partial":true}`, "say:text", 17, "", true},
		{"partial of another type", task.UI, `{"type":"say","say":"text","partial":"true"}`, "say:text", 0, "", false},
		{"members twice", task.UI, `{"ts":1,"ts":2,"type":"ask","type":"say","say":"a","say":"b","text":"x","text":"y","partial":true,"partial":false}`, "say:b", 2, "y", false},
		{"names with escapes", task.UI, `{"\u0074s":5,"t\u0079pe":"say","s\u0061y":"t\u0065xt","te\u0078t":"z"}`, "say:text", 5, "z", false},
		{"blanks", task.UI, " { \"ts\" : 5 ,\n\"type\" : \"say\" , \"say\" : \"text\", \"partial\" : true } ", "say:text", 5, "", true},
		{"a time with an exponent", task.UI, `{"ts":1.7e12}`, ":", 1700000000000, "", false},
		{"a time with a fraction of zero", task.UI, `{"ts":5.0}`, ":", 5, "", false},
		{"half a millisecond is no time", task.UI, `{"ts":5.5}`, ":", 0, "", false},
		{"a time in words", task.UI, `{"ts":"5"}`, ":", 0, "", false},
		{"a time beyond all numbers", task.UI, `{"ts":1e999}`, ":", 0, "", false},
		{"a time beyond int64", task.UI, `{"ts":9223372036854775808}`, ":", 0, "", false},
		{"the last millisecond", task.UI, `{"ts":9223372036854775807}`, ":", 9223372036854775807, "", false},
		{"a type nobody knows", task.UI, `{"type":"note","note":"x","say":"text"}`, "note:x", 0, "", false},
		{"types of another type", task.UI, `{"type":7,"say":"text","text":5}`, ":", 0, "", false},
		{"no object", task.UI, `[{"ts":5}]`, ":", 0, "", false},
		{"nothing", task.UI, `null`, ":", 0, "", false},
		{"a turn", task.API, `{"role":"user","content":"x","ts":9,"type":"say"}`, "user", 9, "", false},
		{"a role nobody knows", task.API, `{"role":"tool"}`, "tool", 0, "", false},
		{"no role", task.API, `{"ts":3}`, "", 3, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := tell(t, task.MessageAdded{History: c.history, Message: 1, Body: body(c.raw)})
			for name, s := range map[string]*task.State{"folded": w.State, "lean": w.again(0), "restored": w.restored(0)} {
				m := s.Message(1)
				if m.Kind() != c.kind || m.TS() != c.ts || m.Text() != c.text || m.Partial() != c.partial {
					t.Errorf("%s: kind %q, ts %d, text %q, partial %t", name, m.Kind(), m.TS(), m.Text(), m.Partial())
				}
				if got := string(m.Raw()); got != strings.TrimSpace(c.raw) {
					t.Errorf("%s: got %s, want got = strings.TrimSpace(c.raw)", name, got)
				}
			}
		})
	}
}

func TestStreamedTextIsShownAsItCame(t *testing.T) {
	w := tell(t, ui(1, `{"text":"a","ts":1,"type":"say","say":"text","partial":true}`))
	w.then(task.MessageTextSaved{Message: 1, Text: "b\u2028<"}).then(task.MessageTextSaved{Message: 1, Text: "\""})
	want := "{\"text\":\"ab\u2028<\\\"\",\"ts\":1,\"type\":\"say\",\"say\":\"text\",\"partial\":true}"
	for name, s := range map[string]*task.State{"folded": w.State, "lean": w.again(0), "restored": w.restored(0)} {
		if got := string(s.Message(1).Raw()); got != want || !s.Message(1).Partial() {
			t.Errorf("%s: got %s, want got = %v and s.Message(1).Partial()", name, got, want)
		}
	}
	w.then(task.MessageChanged{Message: 1, Body: body(say(1, "whole"))})
	w.then(task.MessageTextSaved{Message: 1, Text: " and more"})
	for name, s := range map[string]*task.State{"folded": w.State, "lean": w.again(0), "restored": w.restored(0)} {
		if got := s.Message(1).Text(); got != "whole and more" {
			t.Errorf("%s: new content holds its own text and what comes after: %q", name, got)
		}
	}
}

// A stream may be cut inside a character. The halves make it whole again, as they
// do for a program that keeps its strings in UTF-16.
func TestHalvesOfACharacterBecomeOne(t *testing.T) {
	w := tell(t, ui(1, `{"text":""}`), task.MessageTextSaved{Message: 1, Text: "\xed\xa0\xbd"})
	if got := string(w.Message(1).Raw()); got != `{"text":"\ud83d"}` {
		t.Errorf("one half: %s", got)
	}
	w.then(task.MessageTextSaved{Message: 1, Text: "\xed\xb8\x80"})
	w.then(ui(2, `{}`), task.MessageChanged{Message: 2, Body: task.Body{Compose: []task.Piece{{Literal: `{"text":`}, {TextOf: 1}, {Literal: `}`}}}})
	for name, s := range map[string]*task.State{"folded": w.State, "lean": w.again(0), "restored": w.restored(0)} {
		for id := uint64(1); id <= 2; id++ {
			if got := string(s.Message(id).Raw()); got != `{"text":"😀"}` {
				t.Errorf("%s: message %d is %s", name, id, got)
			}
		}
	}
}

func TestAMessageThatIsNoObjectTakesNoText(t *testing.T) {
	for _, raw := range []string{`7`, `null`, `[1]`, `"x"`} {
		w := tell(t, ui(1, raw), task.MessageTextSaved{Message: 1, Text: "t"})
		if got := string(w.Message(1).Raw()); got != raw {
			t.Errorf("%s became %s", raw, got)
		}
	}
}

func TestHidingTakesOutAndDestroysNothing(t *testing.T) {
	w := tell(t, ui(1, say(1, "a")), ui(2, say(2, "b")), apiMessage(3, `{"role":"user","content":"x"}`), ui(4, say(4, "c")))
	w.then(hidden("rewind", 2, 3, 2, 77, 0))
	w.then(hidden("", 1), hidden("resume", 2))
	if ids(w.UI()) != "4" || ids(w.API()) != "" {
		t.Errorf("ui %s, api %s", ids(w.UI()), ids(w.API()))
	}
	for id, want := range map[uint64]string{1: "hidden", 2: "rewind", 3: "rewind", 4: ""} {
		if m := w.Message(id); m.Hidden != want || len(m.Raw()) < 10 {
			t.Errorf("message %d is hidden %q: %s", id, m.Hidden, m.Raw())
		}
	}
	w.then(task.MessageChanged{Message: 2, Body: body(say(2, "changed"))}, ui(5, say(5, "d")))
	if ids(w.UI()) != "4 5" || w.Message(2).Text() != "changed" || w.Message(2).Hidden != "rewind" {
		t.Errorf("a change brought a message back: ui %s", ids(w.UI()))
	}
}

func TestEventsOfMessagesThatDoNotExist(t *testing.T) {
	w := tell(t, ui(1, say(1, "a")))
	for _, e := range []task.Event{
		task.MessageTextSaved{Message: 2, Text: "x"}, task.MessageTextSaved{Message: 0, Text: "x"},
		task.MessageChanged{Message: 9, Body: body(`{}`)}, ui(1, say(1, "twice")), ui(0, `{}`),
		task.MessageAdded{History: "both", Message: 2, Body: body(`{}`)}, task.MessageAdded{Message: 2, Body: body(`{}`)},
	} {
		if err := w.try(e); err == nil {
			t.Errorf("%+v was folded", e)
		}
	}
	if ids(w.UI()) != "1" || w.Message(1).Text() != "a" || w.NextMessage() != 2 || len(w.Problems) != 7 {
		t.Errorf(`got %s, want ids(w.UI()) = "1" and w.Message(1).Text() = "a" and w.NextMessage() = 2 and len(w.Problems) = 7`,
			dump(w.State))
	}
}

// One event of a commit that cannot be folded costs that event.
func TestTheRestOfACommitIsFolded(t *testing.T) {
	w := tell(t)
	err := w.try(ui(1, say(1, "a")), task.MessageChanged{Message: 9, Body: body(`{}`)}, ui(2, say(2, "b")), task.MessageTextSaved{Message: 8})
	if err == nil || !strings.Contains(err.Error(), "event 1") {
		t.Errorf("the first fault is not named: %v", err)
	}
	if ids(w.UI()) != "1 2" || len(w.Problems) != 2 {
		t.Errorf("ui %s, problems %v", ids(w.UI()), w.Problems)
	}
}

// Roo's sums are made of these rows; a reader must not need their bytes.
func TestWhatARowSpentIsKnownWithoutItsBytes(t *testing.T) {
	w := tell(t,
		ui(1, `{"ts":1,"type":"say","say":"api_req_started","text":"{\"tokensIn\":10,\"tokensOut\":3,\"cost\":0.25}"}`),
		ui(2, say(2, `{"tokensIn":99}`)),
		ui(3, `{"ts":3,"type":"say","say":"condense_context","contextCondense":{"cost":0.5,"newContextTokens":7}}`),
		ui(4, `{"ts":4,"type":"say","say":"api_req_started","text":"not JSON"}`),
		ui(5, `{"ts":5,"type":"say","say":"api_req_finished","text":"{\"tokensIn\":2,\"tokensOut\":1,\"cost\":0.5}"}`)) // until 2024
	want := usage.Tokens{In: 12, Out: 4, Cost: 1.25, ContextTokens: 3}
	for name, s := range map[string]*task.State{"folded": w.State, "restored": w.restored(0)} {
		var got usage.Tokens
		for _, m := range s.UI() {
			if spent, ok := m.Spent(); ok {
				spent.AddTo(&got)
			}
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
