package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/llmtest"
)

// asking is a bench whose anthropic is a server on loopback.
func asking(t *testing.T, replies ...llmtest.Reply) (*bench, *llmtest.Server, engine.Request) {
	t.Helper()
	s := llmtest.New(t, replies...)
	b := newBench(t)
	b.engine = engine.New(b.store, engine.Options{Config: setup.Config{Keys: map[string]string{"anthropic": "k"}}})
	t.Cleanup(func() {
		if err := b.engine.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return b, s, engine.Request{Text: "go", Choice: setup.Choice{Workspace: b.workspace, Provider: "anthropic", Model: "claude-sonnet-5-5", BaseURL: s.URL, Approve: "all"}}
}

func (b *bench) summary(id string) api.Summary {
	b.t.Helper()
	ref, err := b.store.Find(context.Background(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	v, err := b.store.Read(context.Background(), ref)
	if err != nil {
		b.t.Fatal(err)
	}
	defer v.Close()
	return v.Summary
}

// A used-up quota: the task says until when it waits, stopping it takes a moment,
// and resuming it asks at once.
func TestAUsedUpQuota(t *testing.T) {
	b, s, r := asking(t, llmtest.Fail(429, "the quota is used up").After("retry-after", "7200"),
		llmtest.Call("done", "attempt_completion", `{"result":"fine"}`))
	run, err := b.engine.Start(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	begin, told := time.Now(), ""
	for e := range run.Events(ctx) {
		if e.Type == "notice" && strings.Contains(string(e.Data), "waiting until") {
			told = string(e.Data)
			until := b.summary(run.TaskID).WaitingUntil
			if until == nil {
				t.Error("the waiting task does not say so")
			} else if at, err := time.Parse(time.RFC3339, *until); err != nil || at.Sub(begin) < 119*time.Minute || at.Sub(begin) > 121*time.Minute {
				t.Errorf("it waits until %s", *until)
			}
			run.Cancel()
		}
	}
	out, err := run.Wait(ctx)
	if err != nil || out.State != "cancelled" || !strings.Contains(told, "2h0m0s") {
		t.Fatalf("%+v %v, told %s", out, err, told)
	}
	if b.summary(run.TaskID).WaitingUntil == nil {
		t.Error("the stopped task has forgotten until when the quota is used up")
	}
	r = engine.Request{Task: run.TaskID, Yes: true}
	if _, out, _ := b.run(r); out.State != "completed" || len(s.Requests()) != 2 {
		t.Errorf("resumed: %+v after %d requests", out, len(s.Requests()))
	}
	if until := b.summary(run.TaskID).WaitingUntil; until != nil {
		t.Errorf("done, and waiting until %s", *until)
	}
}

// An overflow in a task on disk: the files that Roo reads have its marks in their
// place, and a run that begins anew goes on from there.
func TestOverflowInATaskOnDisk(t *testing.T) {
	var replies []llmtest.Reply
	for range 4 {
		replies = append(replies, llmtest.Text("on").AndCall("", "list_files", `{"path":".","recursive":null}`))
	}
	for i := range replies {
		replies[i].Blocks[1] = []byte(`{"type":"tool_use","id":"c` + string(rune('0'+i)) + `","name":"list_files","input":{"path":".","recursive":false}}`)
	}
	done := llmtest.Call("done", "attempt_completion", `{"result":"fine"}`)
	b, s, r := asking(t, append(replies, llmtest.Fail(400, "prompt is too long: 210000 tokens > 200000 maximum"), done, llmtest.Call("done2", "attempt_completion", `{"result":"again"}`))...)
	r.Condense = -1
	run, out, events := b.run(r)
	if out.State != "completed" || len(s.Requests()) != 6 {
		t.Fatalf("%+v after %d requests", out, len(s.Requests()))
	}
	seen := 0
	for _, e := range events {
		if e.Type == "history.truncated" {
			seen++
		}
	}
	var order []string
	for _, m := range b.state(run.TaskID).API() {
		switch text := string(m.Raw()); {
		case strings.Contains(text, `"isTruncationMarker":true`):
			order = append(order, "marker")
		case strings.Contains(text, `"truncationParent"`):
			order = append(order, "hidden")
		default:
			order = append(order, m.Kind())
		}
	}
	if got := strings.Join(order, " "); seen != 1 || got != "user hidden hidden hidden hidden marker assistant user assistant user assistant user assistant" &&
		got != "user hidden hidden hidden hidden marker assistant user assistant user assistant" {
		t.Errorf("%d events, history %s", seen, got)
	}
	if _, out, _ := b.run(engine.Request{Task: run.TaskID, Text: "more"}); out.State != "completed" {
		t.Errorf("again: %+v", out)
	}
	if body := string(s.Requests()[6].Body); strings.Count(body, "Sliding window truncation") != 1 {
		t.Errorf("sent %s", body)
	}
}
