package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/testing/apirules"
	"github.com/roost-dev/roost/llm"
)

// call is one tool call of the model.
type call struct{ id, name, input string }

// act, look and edit are calls of the bench's tools.
func use(id, name, what string) call { return call{id, name, fmt.Sprintf(`{"what":%q}`, what)} }

// turn is one reply of the model.
type turn struct {
	fails     []failure // what comes before the reply, one an attempt
	think     string
	text      string
	calls     []call
	malformed map[string]string
	stop      string
	usage     llm.Usage
	empty     bool // no block at all
}

// failure is an attempt that brings no reply.
type failure struct {
	err     error
	text    string    // streamed before
	usage   llm.Usage // reported before
	retries int       // tried again by the provider itself before
}

// finish is the turn that completes the task.
func finish(result string) turn {
	return turn{calls: []call{{"done", "attempt_completion", fmt.Sprintf(`{"result":%q}`, result)}}}
}

// model plays turns. Like the scripted provider it keeps no place of its own: the
// number of replies in the request says which turn it is, and that of failures
// which attempt. Every request is held against the rules of the API.
type model struct {
	b         *bench
	turns     []turn
	summaries []turn // the n-th is the n-th summary of the task, or, with nth, of the requests
	nth       bool
	requests  []llm.Request
	during    func(ctx context.Context, req llm.Request) // after the request, before the first chunk
}

func (m *model) Name() string { return "anthropic" }

func (m *model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		m.requests = append(m.requests, req)
		m.b.note("request %d", req.Replies+1)
		if err := apirules.Validate(req.Messages); err != nil {
			m.b.t.Errorf("request %d: %v", len(m.requests), err)
		}
		if m.during != nil {
			m.during(ctx, req)
		}
		if n := req.Summary; n > 0 {
			if m.nth {
				n = len(m.asks())
			}
			m.summaries[min(n, len(m.summaries))-1].play(ctx, yield)
			return
		}
		t := finish("the end")
		if req.Replies < len(m.turns) {
			t = m.turns[req.Replies]
		}
		if req.Failures < len(t.fails) {
			t.fails[req.Failures].play(yield)
			return
		}
		t.play(ctx, yield)
	}
}

func (f failure) play(yield func(llm.Chunk, error) bool) {
	for i := range f.retries {
		if !yield(llm.Retrying{Attempt: i + 1, Err: &llm.Error{Provider: "test", Kind: llm.Overloaded, Status: 529, Message: "busy"}, WaitMS: 1}, nil) {
			return
		}
	}
	if f.usage != (llm.Usage{}) && !yield(llm.UsageReport{Usage: f.usage}, nil) {
		return
	}
	if f.text != "" && !yield(llm.TextDelta{Text: f.text}, nil) {
		return
	}
	yield(nil, f.err)
}

func (t turn) play(ctx context.Context, yield func(llm.Chunk, error) bool) {
	var blocks []json.RawMessage
	block := func(members ...string) {
		var o esjson.Object
		for i := 0; i < len(members); i += 2 {
			o.String(members[i], members[i+1])
		}
		blocks = append(blocks, o.Bytes())
	}
	if t.think != "" {
		block("type", "thinking", "thinking", t.think, "signature", "signed")
	}
	if t.text != "" {
		block("type", "text", "text", t.text)
	}
	for _, word := range strings.SplitAfter(t.think, " ") {
		if word != "" && !yield(llm.ReasoningDelta{Text: word}, nil) {
			return
		}
	}
	for _, word := range strings.SplitAfter(t.text, " ") {
		if ctx.Err() != nil {
			yield(nil, context.Cause(ctx))
			return
		}
		if word != "" && !yield(llm.TextDelta{Text: word}, nil) {
			return
		}
	}
	for i, c := range t.calls {
		blocks = append(blocks, json.RawMessage(fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":%s}`, c.id, c.name, c.input)))
		if !yield(llm.ToolDelta{Index: i, ID: c.id, Name: c.name, Input: c.input}, nil) {
			return
		}
	}
	stop := t.stop
	if stop == "" {
		stop = "end_turn"
		if len(t.calls) > 0 {
			stop = "tool_use"
		}
	}
	if t.empty {
		blocks = nil
	}
	yield(llm.Done{ID: "msg", StopReason: stop, Blocks: blocks, Usage: t.usage, Malformed: t.malformed}, nil)
}

// sent is the whole text of a request, for looking into it.
func sent(r llm.Request) string {
	var b strings.Builder
	for _, m := range r.Messages {
		b.WriteString(m.Role + ": ")
		b.Write(m.Content)
		b.WriteByte('\n')
	}
	return b.String()
}

// last is the newest request's text.
func (m *model) last() string {
	m.b.t.Helper()
	if len(m.requests) == 0 {
		m.b.t.Fatal("nothing was asked of the model")
	}
	return sent(m.requests[len(m.requests)-1])
}
