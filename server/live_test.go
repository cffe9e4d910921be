package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/engine"
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
	g := newWork(t)
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
				t.Errorf("%s: %+v", name, f)
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
	g := newWork(t)
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
		t.Errorf("%+v", rest)
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

// A follower that is far behind does not get what is said only once more: the newest
// durable events come, and none of them is missing or doubled.
func TestSlowFollowersMissDeltasFirst(t *testing.T) {
	f := newFeed(func() {})
	f.begin(behind(0), "")
	event := func(seq int) engine.Event {
		return engine.Event{ID: fmt.Sprintf("1.%d-0", seq), Type: "message.added", Seq: uint64(seq), Data: json.RawMessage(`{}`)}
	}
	delta := engine.Event{Type: "message.delta", Data: json.RawMessage(`{"text":"x"}`)}
	for seq := 1; seq <= 500; seq++ {
		f.say(liveItem(delta), liveItem(delta))
		f.say(itemsOf([]engine.Event{event(seq)})...)
	}
	at, next, live, durable := behind(0), uint64(0), 0, 0
	for {
		g := f.look(at, next, nil)
		for _, one := range g.events {
			if one.live {
				live++
				continue
			}
			if durable++; one.at != (place{seq: uint64(durable)}) {
				t.Fatalf("event %d stands at %+v", durable, one.at)
			}
			at = one.at
		}
		if next = g.next; !g.more && len(g.events) == 0 {
			break
		}
	}
	if durable != 500 || live == 0 || live > glanceMax {
		t.Errorf("%d durable ones, %d live ones", durable, live)
	}
	// Of large ones only the newest are kept; who is further back reads the log.
	big := event(501)
	big.Data = json.RawMessage(`"` + strings.Repeat("x", feedBytes) + `"`)
	f.say(itemsOf([]engine.Event{big})...)
	if g := f.look(place{seq: 400}, 10, nil); !g.behind {
		t.Error("it has what it let go of")
	}
	if g := f.look(place{seq: 500}, 0, nil); g.behind || len(g.events) != 1 {
		t.Errorf("%d events behind the newest", len(g.events))
	}
}

// Cursors of the stream of all tasks are read as they are printed, and no other text is one.
func TestStandsOfAllTasks(t *testing.T) {
	s := stand{}
	s.line.Feed, s.line.Segment, s.line.Offset, s.line.Sum, s.seq, s.index = "ab12", 3, 4096, 0xdeadbeef, 7, 2
	got, ok := readStand(s.String())
	if !ok || got != s {
		t.Errorf("%s: %+v", s, got)
	}
	if !s.place().before(stand{line: s.line}.place()) || !(place{}).before(s.place()) {
		t.Error("an event stands behind its line")
	}
	if diff := cmp.Diff("0", stand{}.String()); diff != "" {
		t.Error(diff)
	}
}

func FuzzStand(f *testing.F) {
	for _, text := range []string{"0", "a.1.2.3.4-5", "a.1.0.ffffffff.0-0", "..", "a.01.2.3.4-5", "a.1.2.3.4-99999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, ok := readStand(text)
		if ok && s.String() != text {
			t.Errorf("%q is read as %s", text, s)
		}
	})
}
