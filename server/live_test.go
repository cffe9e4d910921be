package server

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

const streaming = `
- {delay: 3ms, text: "some words that stream one after the other", reasoning: "a thought or two", tools: [{name: execute_command, input: {command: "echo one; echo two"}}]}
- {delay: 3ms, text: "more words", tools: [{name: attempt_completion, input: {result: "done at last"}}]}
`

// utterance is what both kinds of events have.
type utterance struct {
	Type, Text, Task, Run string
	Message               uint64
	TS                    int64
	Offset                int
	Content               struct{ Text string }
}

func (f frame) said(t testing.TB) (s utterance) {
	t.Helper()
	var raw struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Task    string `json:"task_id"`
		Run     string `json:"run_id"`
		Message uint64 `json:"message"`
		TS      int64  `json:"ts"`
		Offset  int    `json:"offset"`
		Content struct{ Text string }
	}
	if err := json.Unmarshal([]byte(f.Data), &raw); err != nil && f.Type != "message.added" {
		t.Fatal(f, err)
	}
	return utterance{raw.Type, raw.Text, raw.Task, raw.Run, raw.Message, raw.TS, raw.Offset, raw.Content}
}

// until reads a stream up to an event of a type.
func (s *stream) until(typ string) (out []frame) {
	s.t.Helper()
	for {
		out = append(out, s.take(1)...)
		if out[len(out)-1].Type == typ {
			return out
		}
	}
}

// What a model says comes before it is durable, without an id, at its place in the
// message, and before the message itself: on the stream of the task, of all tasks and of
// the run. The durable events beside are the journal's.
func TestDeltasAreLive(t *testing.T) {
	g := newWorkingBench(t)
	all := g.follow("/v1/events")
	var idle made
	g.did(201, &idle, "POST", "/v1/tasks", g.task(streaming, ""))
	resp := g.send("POST", "/v1/tasks/"+idle.Task+"/runs", `{"message":{"text":"go"}}`, "Accept: "+streamMedia)
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusAccepted {
		body, _ := io.ReadAll(resp.Body)
		t.Fatal(resp.Status, string(body))
	}
	own := &stream{t, resp, bufio.NewReader(resp.Body)}
	for name, frames := range map[string][]frame{"run": own.until("stream.end"), "all": all.until("run.ended")} {
		deltas, texts := 0, map[uint64]string{}
		done, begun := map[uint64]bool{}, map[uint64]int{}
		added := map[uint64]int{} // how much of a message was there when it was added: it may be saved while it streams
		for _, f := range frames {
			if !strings.HasSuffix(f.Type, ".delta") {
				if f.Type == "message.added" {
					s := f.said(t)
					done[s.Message], added[s.Message] = true, len(s.Content.Text)
					if got, ok := texts[s.Message]; ok && s.Content.Text != "" && !strings.Contains(s.Content.Text, got) && !strings.Contains(got, s.Content.Text) {
						t.Errorf("%s: message %d is %q, its deltas %q", name, s.Message, s.Content.Text, got)
					}
				}
				continue
			}
			s := f.said(t)
			deltas++
			if f.ID != "" || s.Task != idle.Task || s.Run == "" {
				t.Errorf(`%s: got %+v, want f.ID = "" and s.Task = idle.Task and s.Run != ""`, name, f)
			}
			if f.Type != "message.delta" && f.Type != "reasoning.delta" || s.Message == 0 {
				continue
			}
			// The row of a command stands before its output, and is changed behind it.
			early := done[s.Message] && !strings.Contains(f.Data, `"call":`) && s.Offset < added[s.Message]
			if early || !done[s.Message] && strings.Contains(f.Data, `"call":`) || s.TS == 0 {
				t.Errorf("%s: a delta on the wrong side of its message: %+v", name, f)
			}
			if _, any := texts[s.Message]; !any && name == "run" { // that one may have come late
				begun[s.Message] = s.Offset
			}
			if s.Offset != begun[s.Message]+len(texts[s.Message]) {
				t.Errorf("%s: offset %d behind %q", name, s.Offset, texts[s.Message])
			}
			texts[s.Message] += s.Text
		}
		if deltas < 1 || name == "all" && deltas < 5 {
			t.Errorf("%s: %d deltas", name, deltas)
		}
	}
}

// A stream of a run goes on while the run waits for a person, and ends with the run; who
// has seen the end is told that there is nothing more.
func TestStreamOfARun(t *testing.T) {
	g := newWorkingBench(t)
	run := g.started(askWhich)
	q := g.question(run.Task)
	s := g.follow("/v1/runs/" + run.ID + "/events")
	before := s.until("question.opened")
	g.did(200, nil, "POST", "/v1/questions/"+q.ID+"/answer", `{"choice":2}`)
	rest := s.until("stream.end")
	if f, ok := s.next(); ok {
		t.Errorf("behind the end: %+v", f)
	}
	end := rest[len(rest)-2]
	if end.Type != "run.ended" || !strings.Contains(rest[len(rest)-1].Data, `"reason":"run_ended"`) {
		t.Errorf("got %+v, want end.Type = \"run.ended\" and strings.Contains(rest[len(rest)-1].Data, `\"reason\":\"run_ended\"`)",
			rest)
	}
	durable := func(list []frame) []frame {
		return slices.DeleteFunc(slices.Clone(list), func(f frame) bool { return f.ID == "" })
	}
	var want []frame
	for _, f := range journalOf(t, g.store, run.Task) {
		if f.said(t).Run == run.ID {
			if want = append(want, f); f.Type == "run.ended" {
				break
			}
		}
	}
	if diff := firstDifference(want, durable(append(before, rest...))); diff != "" {
		t.Error(diff)
	}
	again := g.follow("/v1/runs/"+run.ID+"/events", "Last-Event-ID: "+before[len(before)-1].ID)
	if diff := firstDifference(durable(rest), durable(again.until("stream.end"))); diff != "" {
		t.Error(diff)
	}
	if resp := g.ask("GET", "/v1/runs/"+run.ID+"/events", "Last-Event-ID: "+end.ID); resp.StatusCode != http.StatusNoContent {
		t.Errorf("behind the end: %s", resp.Status)
	}
	g.refused(404, "run_not_found", "GET", "/v1/runs/no-such-run/events")
	g.refused(400, "bad_cursor", "GET", "/v1/runs/"+run.ID+"/events?after=x")
}
