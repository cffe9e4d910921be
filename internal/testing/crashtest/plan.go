package crashtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/testing/llmtest"
)

// Turn is one reply of the model. One with Task is none: it says that what follows are
// the turns of the task whose first message holds these words.
type Turn struct {
	Task   string        `json:"task,omitempty"`
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
		n, turns := r.Replies(), part(turns, r)
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

// part is the turns of the task that a request belongs to.
func part(turns []Turn, r llmtest.Request) []Turn {
	first := ""
	if h := r.History(); len(h) > 0 {
		first = h[0].Text
	}
	begin, chosen := 0, false
	for i, t := range turns {
		switch {
		case t.Task == "":
		case chosen:
			return turns[begin:i]
		case strings.Contains(first, t.Task):
			begin, chosen = i+1, true
		}
	}
	if chosen {
		return turns[begin:]
	}
	if i := slices.IndexFunc(turns, func(t Turn) bool { return t.Task != "" }); i >= 0 {
		return turns[:i]
	}
	return turns
}
