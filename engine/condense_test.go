package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/llmtest"
)

// looking are replies that list the folder so many times.
func looking(n int) (replies []llmtest.Reply) {
	for i := range n {
		replies = append(replies, llmtest.Text(fmt.Sprint("look ", i)).AndCall(fmt.Sprint("c", i), "list_files", `{"path":".","recursive":false}`))
	}
	return replies
}

// A request that the provider finds too long goes out again with a summary, which the
// provider wrote; it is in Roo's files, and what it cost is in the sums.
func TestOverflowCondensesATaskOnDisk(t *testing.T) {
	b, s, r := asking(t, append(looking(4), llmtest.Fail(400, "prompt is too long: 210000 tokens > 200000 maximum"),
		llmtest.Text("The user wants much."), llmtest.Call("done", "attempt_completion", `{"result":"fine"}`))...)
	run, out, events := b.run(r)
	if out.State != "completed" || len(s.Requests()) != 7 {
		t.Fatalf("%+v after %d requests", out, len(s.Requests()))
	}
	seen := map[string]int{}
	for _, e := range events {
		seen[e.Type]++
	}
	if seen["history.condensed"] != 1 || seen["history.truncated"] != 0 {
		t.Errorf("events %v", seen)
	}
	asked, last := string(s.Requests()[5].Body), string(s.Requests()[6].Body)
	if !strings.Contains(asked, "[Tool Use: list_files]") || strings.Contains(asked, `"tools"`) {
		t.Errorf("asked for a summary: %.300s", asked)
	}
	if !strings.Contains(last, "The user wants much.") || strings.Contains(last, "look 1") {
		t.Errorf("sent: %.600s", last)
	}
	covered, summaries := 0, 0
	for _, m := range b.state(run.TaskID).API() {
		switch text := string(m.Raw()); {
		case strings.Contains(text, `"isSummary":true`):
			summaries++
		case strings.Contains(text, `"condenseParent"`):
			covered++
		}
	}
	if covered < 5 || summaries != 1 {
		t.Errorf("%d messages are covered by %d summaries", covered, summaries)
	}
}

// A person condenses a task, says what the summary is to keep, and may name another
// model for it; the task keeps its own.
func TestCondenseATask(t *testing.T) {
	b, s, r := asking(t, append(looking(5), llmtest.Call("done", "attempt_completion", `{"result":"fine"}`), llmtest.Text("All of it."))...)
	run, out, _ := b.run(r)
	if out.State != "completed" {
		t.Fatalf("got %+v, want out.State = \"completed\"", out)
	}
	plan, err := b.engine.CondensePlan(t.Context(), engine.Request{Task: run.TaskID})
	if err != nil || plan.Task != run.TaskID || !plan.DryRun || plan.Messages == 0 || plan.Before == 0 || len(s.Requests()) != 6 {
		t.Fatalf("got %+v, %v, want no error and id = run.TaskID and plan.Messages != 0 and plan.Before != 0 and len(s.Requests()) = 6",
			plan, err)
	}
	was := b.state(run.TaskID)
	var notices []string
	got, err := b.engine.Condense(t.Context(), engine.Request{Task: run.TaskID, Choice: setup.Choice{Model: "claude-haiku-4-5"}}, "mind the gap", func(s string) { notices = append(notices, s) })
	if err != nil || got.Task != run.TaskID || got.DryRun || got.Summary != "All of it." || got.Messages != plan.Messages || len(notices) == 0 {
		t.Fatalf("got %+v, %v, %q, want no error and id = run.TaskID and got.Text = \"All of it.\" and got.Messages = plan.Messages and len(notices) != 0",
			got, err, notices)
	}
	var body struct{ Model string }
	request := s.Requests()[6].Body
	if err := json.Unmarshal(request, &body); err != nil || body.Model != "claude-haiku-4-5" || !strings.Contains(string(request), "mind the gap") {
		t.Errorf("%s asked: %.200s, %v", body.Model, request, err)
	}
	now := b.state(run.TaskID)
	if now.Settings.Model != was.Settings.Model || now.Run.ID != was.Run.ID {
		t.Errorf("the task's model is %s, its run %s", now.Settings.Model, now.Run.ID)
	}
	if _, err := b.engine.Condense(t.Context(), engine.Request{Task: "nothing"}, "", func(string) {}); err == nil {
		t.Error("a task that does not exist was condensed")
	}
}

// Of a task that was only begun nothing is asked; while a provider is in trouble it is
// asked a few times, not a few times a few.
func TestCondenseThatFails(t *testing.T) {
	if testing.Short() {
		t.Skip("waits between tries")
	}
	fail := llmtest.Fail(500, "in trouble")
	b, s, r := asking(t, append(append(looking(1), llmtest.Call("done", "attempt_completion", `{"result":"fine"}`)), fail, fail, fail, fail, fail, fail, fail, fail)...)
	run, _, _ := b.run(r)
	if _, err := b.engine.Condense(t.Context(), engine.Request{Task: run.TaskID}, "", func(string) {}); err == nil {
		t.Error("no error")
	}
	if n := len(s.Requests()) - 2; n < 3 || n > 6 {
		t.Errorf("the provider in trouble was asked %d times", n)
	}
	b, s, r = asking(t, llmtest.Call("done", "attempt_completion", `{"result":"fine"}`))
	run, _, _ = b.run(r)
	if _, err := b.engine.Condense(t.Context(), engine.Request{Task: run.TaskID}, "", func(string) {}); !errors.Is(err, engine.ErrTooShort) || len(s.Requests()) != 1 {
		t.Errorf("of two messages: %v after %d requests", err, len(s.Requests()))
	}
}

// The parts of a request add up, before and after.
func TestContext(t *testing.T) {
	b, _, r := asking(t, append(looking(3), llmtest.Call("done", "attempt_completion", `{"result":"fine"}`), llmtest.Text("sum"))...)
	run, _, _ := b.run(r)
	check := func(summary bool) {
		t.Helper()
		u, err := b.engine.Context(t.Context(), engine.Request{Task: run.TaskID})
		if err != nil {
			t.Fatal(err)
		}
		total, parts := int64(0), map[string]int64{}
		for _, p := range u.Parts {
			total += p.Tokens
			parts[p.Name] = p.Tokens
		}
		if total != u.Used || u.Used == 0 || parts["system"] == 0 || parts["tools"] == 0 || !summary && parts["results"] == 0 || parts["files"] != 0 || (parts["summary"] > 0) != summary {
			t.Errorf("%+v", u)
		}
		if u.Counted == summary || u.Window != nil && *u.Free != *u.Window-*u.Reply-u.Used {
			t.Errorf("got %+v, want u.Counted != summary and (u.Window <= 0 or u.Free = u.Window-u.Reply-u.Used)", u)
		}
	}
	check(false)
	if _, err := b.engine.Condense(t.Context(), engine.Request{Task: run.TaskID}, "", func(string) {}); err != nil {
		t.Fatal(err)
	}
	check(true)
}
