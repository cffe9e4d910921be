package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/testing/llmtest"
)

// thoughts are what the thinking model says to itself in each of its replies.
var thoughts = []string{"Look \"first\".\nThen write.", "", "I should ask.", "It said blue.", "Done."}

// thinker answers as DeepSeek does: it refuses a history whose replies do not bring back
// the reasoning that it sent, word for word, and an empty one where it sent none.
func thinker(r llmtest.Request) llmtest.Reply {
	var body struct {
		Messages []struct {
			Role      string
			Calls     json.RawMessage `json:"tool_calls"`
			Reasoning *string         `json:"reasoning_content"`
		}
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return llmtest.Fail(400, err.Error())
	}
	n := 0
	for _, m := range body.Messages {
		if m.Role != "assistant" {
			continue
		}
		if m.Reasoning == nil || r.Model() == "deep" && *m.Reasoning != thoughts[n] {
			return llmtest.Fail(400, "The `reasoning_content` in the thinking mode must be passed back to the API.")
		}
		n++
	}
	var reply llmtest.Reply
	if thoughts[n] != "" {
		reply = reply.AndThinking(thoughts[n], "")
	}
	switch n {
	case 2:
		return reply.AndCall("ask", "ask_followup_question", `{"question":"Which colour?","follow_up":[{"text":"blue","mode":null}]}`)
	case 4:
		return reply.AndCall("done", "attempt_completion", `{"result":"fine"}`)
	}
	return reply.AndText("I look.").AndCall(fmt.Sprint("c", n), "list_files", `{"path":"."}`)
}

// simple answers as the servers do that refuse members which they do not know.
func simple(r llmtest.Request) llmtest.Reply {
	if strings.Contains(string(r.Body), `"reasoning_content"`) {
		return llmtest.Fail(400, "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning_content' is unsupported)]")
	}
	return llmtest.Call(fmt.Sprint("s", r.Replies()), "attempt_completion", `{"result":"fine"}`)
}

// restarted is the next process, which knows a key.
func (b *bench) restarted() {
	b.restart(engine.Options{})
	b.engine = engine.New(b.store, engine.Options{Config: setup.Config{Keys: map[string]string{"openai-compatible": "k"}}})
}

// A server that thinks aloud gets its reasoning back in every request, also after a
// restart; another one that the task goes to afterwards is not sent it.
func TestReasoningGoesBackToTheServerThatSentIt(t *testing.T) {
	deep, plain := llmtest.New(t), llmtest.New(t)
	deep.Answer(thinker)
	plain.Answer(simple)
	b := newBench(t)
	b.restarted()
	r := engine.Request{Text: "go", Choice: setup.Choice{Workspace: b.workspace, Provider: "openai-compatible", Model: "deep", BaseURL: deep.URL + "/v1", Approve: "all"}}
	run, out, _ := b.run(r)
	if out.State != "waiting" || len(deep.Requests()) != 3 {
		t.Fatalf("%+v after %d requests", out, len(deep.Requests()))
	}
	b.restarted()
	_, out, _ = b.run(engine.Request{Task: run.TaskID, Text: "blue"})
	if out.State != "completed" || len(deep.Requests()) != 5 {
		t.Fatalf("%+v after %d requests", out, len(deep.Requests()))
	}
	b.restarted()
	if _, out, _ = b.run(engine.Request{Task: run.TaskID, Text: "more", Choice: setup.Choice{Model: "other", BaseURL: plain.URL + "/v1"}}); out.State != "completed" || len(plain.Requests()) != 1 {
		t.Errorf("elsewhere: %+v after %d requests", out, len(plain.Requests()))
	}
}

// A server that was sent no reasoning yet says that it wants some: it is asked again with
// what there is, and a restart does not ask without it again.
func TestReasoningThatARefusalAsksFor(t *testing.T) {
	deep, plain := llmtest.New(t), llmtest.New(t)
	plain.Answer(simple)
	deep.Answer(func(r llmtest.Request) llmtest.Reply {
		if reply := thinker(r); reply.Status != 0 {
			return reply
		}
		return llmtest.Call(fmt.Sprint("d", r.Number), "attempt_completion", `{"result":"fine"}`)
	})
	b := newBench(t)
	b.restarted()
	r := engine.Request{Text: "go", Choice: setup.Choice{Workspace: b.workspace, Provider: "openai-compatible", Model: "other", BaseURL: plain.URL + "/v1", Approve: "all"}}
	run, out, _ := b.run(r)
	if out.State != "completed" {
		t.Fatalf("got %+v, want out.State = \"completed\"", out)
	}
	for i, requests := range []int{2, 3} {
		b.restarted()
		_, out, _ = b.run(engine.Request{Task: run.TaskID, Text: "more", Choice: setup.Choice{Model: "silent", BaseURL: deep.URL + "/v1"}})
		if out.State != "completed" || len(deep.Requests()) != requests {
			t.Fatalf("run %d: %+v after %d requests", i, out, len(deep.Requests()))
		}
	}
}
