package agent_test

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"testing"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/llm"
)

// detailing is a server of chat completions that wants its reasoning_details back.
type detailing struct {
	asked   []llm.Request
	refuses bool // and will not have them, once it sees them
}

func (*detailing) Name() string { return "openai-compatible" }

func (d *detailing) Stream(_ context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		d.asked = append(d.asked, req)
		for _, m := range req.Messages {
			if d.refuses && m.ReasoningDetails != nil {
				yield(nil, &llm.Error{Provider: "test", Kind: llm.Invalid, Status: 400, Message: "messages.1: unknown field reasoning_details"})
				return
			}
		}
		done := llm.Done{ID: "gen-1", StopReason: "end_turn", Blocks: []json.RawMessage{json.RawMessage(`{"type":"text","text":"hm"}`)}, ReasoningDetails: json.RawMessage(details)}
		if len(d.asked) > 1 {
			done.Blocks = []json.RawMessage{json.RawMessage(`{"type":"tool_use","id":"done","name":"attempt_completion","input":{"result":"so"}}`)}
		}
		yield(done, nil)
	}
}

const details = `[{"type":"reasoning.text","text":"I see","signature":"s","index":0}]`

// What a server sends as reasoning_details is kept at the message, where Roo has it,
// and goes back with it on the next turn.
func TestReasoningDetailsAreKeptAndSentBack(t *testing.T) {
	b := newBench(t)
	server := &detailing{}
	b.agent.Model.Provider = server
	b.agent.Task.Settings.MaxTokens = 4321
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	stored := string(b.disk.state.API()[1].Raw())
	head, tail, _ := strings.Cut(stored, `,"ts":`)
	if head != `{"role":"assistant","content":[{"type":"text","text":"hm"}],"id":"gen-1"` || !strings.HasSuffix(tail, `,"reasoning_details":`+details+`}`) {
		t.Errorf("stored as %s", stored)
	}
	if len(server.asked) != 2 || string(server.asked[1].Messages[1].ReasoningDetails) != details || server.asked[1].MaxTokens != 4321 {
		t.Errorf("asked with %+v", server.asked)
	}
}

// A server that refuses them is asked again without, and the task goes on.
func TestRefusedReasoningDetailsAreLeftOut(t *testing.T) {
	b := newBench(t)
	server := &detailing{refuses: true}
	b.agent.Model.Provider = server
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	if len(server.asked) != 3 || server.asked[2].Messages[1].ReasoningDetails != nil || !strings.Contains(string(b.disk.state.API()[1].Raw()), "reasoning_details") {
		t.Errorf("%d requests; stored: %s", len(server.asked), b.disk.state.API()[1].Raw())
	}
}
