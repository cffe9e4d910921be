package crashtest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/roost-dev/roost/llm/llmtest"
)

// Turn is one reply of the model.
type Turn struct {
	Text   string        `json:"text,omitempty"`
	Calls  []Call        `json:"tools,omitempty"`
	Delay  string        `json:"delay,omitempty"` // before each chunk
	Expect []string      `json:"expect,omitempty"`
	Pause  time.Duration `json:"-"` // between the server's events
}

// Call is one tool call.
type Call struct {
	Name  string         `json:"name"`
	Input map[string]any `json:"input"`
}

// Complete is the turn that ends a task.
func Complete(result string) Turn {
	return Turn{Calls: []Call{{"attempt_completion", map[string]any{"result": result}}}}
}

// Script gives the turns as the script provider's file. JSON is YAML.
func Script(turns []Turn) ([]byte, error) {
	b, err := json.MarshalIndent(turns, "", " ")
	if err != nil {
		return nil, fmt.Errorf("write a script: %w", err)
	}
	return b, nil
}

// Answer plays the turns as a provider would: how many replies a request holds
// decides the turn, so that a restarted client goes on where it was.
func Answer(turns []Turn) func(llmtest.Request) llmtest.Reply {
	return func(r llmtest.Request) llmtest.Reply {
		if !json.Valid(r.Body) {
			return llmtest.Fail(400, "the body is not JSON")
		}
		n := r.Replies()
		turn := Complete("The end.")
		if n < len(turns) {
			turn = turns[n]
		}
		var reply llmtest.Reply
		if turn.Text != "" {
			reply = llmtest.Text(turn.Text)
		}
		for i, c := range turn.Calls {
			input, err := json.Marshal(c.Input)
			if err != nil {
				return llmtest.Fail(500, err.Error())
			}
			reply = reply.AndCall(fmt.Sprintf("toolu_%d_%d", n+1, i+1), c.Name, string(input))
		}
		reply.Pause = turn.Pause
		return reply
	}
}
