package intake

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// list is a history in memory.
type list []string

func (l list) Len() int { return len(l) }

func (l list) Raw(i int) ([]byte, error) { return []byte(l[i]), nil }

// broken is a list whose elements cannot be read.
type broken int

func (b broken) Len() int { return int(b) }

func (b broken) Raw(int) ([]byte, error) { return nil, errors.New("no disk") }

func say(ts int, kind string, rest ...string) string {
	return fmt.Sprintf(`{"ts":%d,"type":"say","say":%q%s}`, ts, kind, strings.Join(append([]string{""}, rest...), ","))
}

func ask(ts int, kind string, rest ...string) string {
	return fmt.Sprintf(`{"ts":%d,"type":"ask","ask":%q%s}`, ts, kind, strings.Join(append([]string{""}, rest...), ","))
}

func turnOf(ts int, role string, rest ...string) string {
	return fmt.Sprintf(`{"role":%q,"content":[],"ts":%d%s}`, role, ts, strings.Join(append([]string{""}, rest...), ","))
}

const (
	cancelledText = `"text":"{\"apiProtocol\":\"anthropic\",\"cancelReason\":\"user_cancelled\"}"`
	streaming     = `"partial":true`
	streamed      = `"partial":false`
)

// Each row is a moment in Roo's order of writing.
func TestDisagreement(t *testing.T) {
	first := list{say(100, "text"), say(150, "api_req_started")}
	sent := list{turnOf(200, "user")}
	replied := append(first[:2:2], say(300, "text", streamed))
	stored := append(sent[:1:1], turnOf(400, "assistant"))
	for _, c := range []struct {
		name    string
		ui, api rawList
		want    string // part of what is said; "" = they agree
	}{
		{"nothing yet", list{}, list{}, ""},
		{"only the task's words", list{say(100, "text")}, list{}, "API history has not begun"},
		{"only a turn", list{}, sent, "UI history has not begun"},
		{"a request is out", first, sent, ""},
		{"the reply streams", append(first[:2:2], say(300, "text", streaming)), sent, ""},
		{"the reply has ended and is not stored", replied, sent, "the model's reply"},
		{"a tool question has ended and is not stored", append(first[:2:2], ask(310, "tool", streamed)), sent, "the model's reply"},
		{"a result is shown and not stored", append(first[:2:2], say(310, "completion_result", streamed)), sent, "the model's reply"},
		{"reasoning alone is no reply", append(first[:2:2], say(250, "reasoning", streamed)), sent, ""},
		{"the reply is stored", replied, stored, ""},
		{"a question after the reply waits for the person", append(replied[:3:3], ask(410, "tool")), stored, ""},
		{"outputs of a tool", append(replied[:3:3], ask(410, "command"), say(420, "command_output", streamed)), stored, ""},
		{"the next request row is saved, its turn is not", append(replied[:3:3], say(500, "api_req_started")), stored, "the turn that was sent"},
		{"the next turn is saved", append(replied[:3:3], say(500, "api_req_started")), append(stored[:2:2], turnOf(510, "user")), ""},
		{"the turn is there and its request row is not", replied, append(stored[:2:2], turnOf(510, "user")), "rows of the newest turn"},
		{"a whole turn ahead", replied, append(stored[:2:2], turnOf(510, "user"), turnOf(600, "assistant")), "rows of the newest turn"},
		{"the person said more", append(replied[:3:3], ask(410, "completion_result"), say(450, "user_feedback")), stored, "the user's words"},
		{"the person edited a proposal", append(replied[:3:3], say(450, "user_feedback_diff")), stored, "the user's words"},
		{"a child came back", append(replied[:3:3], say(450, "subtask_result")), stored, "the user's words"},
		{"the child's result is in both", append(replied[:3:3], say(450, "subtask_result")), append(stored[:2:2], turnOf(451, "user")), ""},
		{"the person cancelled the reply", list{say(100, "text"), say(150, "api_req_started", cancelledText), say(300, "text", streamed)}, sent, ""},
		{"the request was cancelled at once", append(replied[:3:3], say(500, "api_req_started", cancelledText)), stored, ""},
		{"retried in the middle of a stream", append(first[:2:2], say(300, "text", streaming), say(350, "api_req_started")), sent, ""},
		{"completed", append(replied[:3:3], ask(410, "completion_result")), stored, ""},
		{"opened again", append(replied[:3:3], ask(900, "resume_task")), stored, ""},
		{"opened again after a kill in the stream", append(first[:2:2], say(300, "text", streaming), ask(900, "resume_task")), sent, ""},
		{"opened again, and the reply was never stored", append(replied[:3:3], ask(900, "resume_task")), sent, ""},
		{"opened again and answered", append(replied[:3:3], ask(900, "resume_task"), say(910, "user_feedback")), stored, "the user's words"},
		{"condensed, and the row is to come", replied, append(stored[:2:2], turnOf(401, "user", `"isSummary":true`, `"condenseId":"c1"`)), "rows of the newest turn"},
		{"condensed", append(replied[:3:3], say(450, "condense_context", `"contextCondense":{"condenseId":"c1"}`)), append(stored[:2:2], turnOf(401, "user", `"isSummary":true`, `"condenseId":"c1"`)), ""},
		{"condensed by another row", append(replied[:3:3], say(450, "condense_context", `"contextCondense":{"condenseId":"c0"}`)), append(stored[:2:2], turnOf(401, "user", `"isSummary":true`, `"condenseId":"c1"`)), "rows of the newest turn"},
		{"messages without times", first, list{`{"role":"user","content":"old"}`}, ""},
		{"rows without times", list{`{"type":"say","say":"text"}`}, sent, ""},
		{"a ts that is none", list{`{"ts":"x","type":"say","say":"text"}`, `null`, `7`}, list{turnOf(200, "user")}, ""},
		{"not even objects", list{`1`}, list{`"x"`}, ""},
		{"unreadable", broken(3), broken(2), ""},
	} {
		got := disagreement(c.ui, c.api)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// writer saves a task's two lists in Roo's order.
type writer struct {
	now     int
	ui, api list
	half    bool // between the two saves of a step
	check   func(w *writer, did string)
}

func (w *writer) tick() int { w.now += 7; return w.now }

func (w *writer) saveUI(half bool, did string, row string) {
	w.ui, w.half = append(w.ui, row), half
	w.check(w, did)
}

func (w *writer) saveAPI(did string, message string) {
	w.api, w.half = append(w.api, message), false
	w.check(w, did)
}

func (w *writer) request() {
	w.saveUI(true, "request row", say(w.tick(), "api_req_started"))
	w.saveAPI("turn sent", turnOf(w.tick(), "user"))
}

func (w *writer) reply(tool bool) {
	at := w.tick()
	w.saveUI(false, "reply begins", say(at, "text", streaming))
	w.ui = w.ui[:len(w.ui)-1]
	w.saveUI(true, "reply ends", say(at, "text", streamed))
	if tool {
		w.saveUI(true, "question shown", ask(w.tick(), "tool", streamed))
	}
	w.saveAPI("reply stored", turnOf(w.tick(), "assistant"))
}

// Between the two saves of a step Roo's files never agree, after it always.
func TestHalfStepsOfRooDisagree(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := &writer{now: 1000, check: func(w *writer, did string) {
			if why := disagreement(w.ui, w.api); (why != "") != w.half {
				r.Fatalf("after %q (half %v): %q\n%s\n%s", did, w.half, why, strings.Join(w.ui, "\n"), strings.Join(w.api, "\n"))
			}
		}}
		w.saveUI(true, "task", say(w.tick(), "text"))
		w.request()
		for range rapid.IntRange(0, 12).Draw(r, "turns") {
			switch rapid.SampledFrom([]string{"tool", "talk", "feedback", "cancel", "condense", "reopen"}).Draw(r, "turn") {
			case "tool":
				w.reply(true)
				w.saveUI(false, "output", say(w.tick(), "command_output", streamed))
				w.request()
			case "talk":
				w.reply(false)
				w.request()
			case "feedback":
				w.reply(true)
				w.saveUI(true, "words", say(w.tick(), "user_feedback"))
				w.request()
			case "cancel":
				at := w.tick()
				w.ui = append(w.ui, say(at, "api_req_started", cancelledText))
				w.saveUI(false, "cancelled", say(w.tick(), "text", streamed))
				w.saveUI(false, "resume row", ask(w.tick(), "resume_task"))
				w.saveUI(true, "words", say(w.tick(), "user_feedback"))
				w.request()
			case "condense":
				w.reply(false)
				id := fmt.Sprint("c", w.now)
				w.api = append(w.api, turnOf(w.now+1, "user", `"isSummary":true`, fmt.Sprintf(`"condenseId":%q`, id)))
				w.half = true
				w.check(w, "summary stored")
				w.saveUI(false, "condense row", say(w.tick(), "condense_context", fmt.Sprintf(`"contextCondense":{"condenseId":%q}`, id)))
				w.request()
			case "reopen":
				w.reply(true)
				w.saveUI(false, "resume row", ask(w.tick(), "resume_task"))
				w.saveUI(true, "words", say(w.tick(), "user_feedback"))
				w.request()
			}
		}
	})
}

func FuzzDisagreement(f *testing.F) {
	f.Add(`{"ts":1,"type":"say","say":"text"}`, `{"role":"user","ts":2}`)
	f.Add(`{"ts":1e400,"type":{}}`, `[`)
	f.Fuzz(func(t *testing.T, row, message string) {
		// Whatever stands in files, there is an answer, and the same one again.
		ui, api := list{row, row}, list{message, message}
		if first, again := disagreement(ui, api), disagreement(ui, api); first != again {
			t.Error("two answers")
		}
	})
}
