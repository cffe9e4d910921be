package llmtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Turn is one side's part of a request's conversation.
type Turn struct {
	Model   bool   // the model's reply, else what came back to it
	Text    string // its texts, one after the other
	Calls   []ToolCall
	Results map[string]string // what calls gave, as text, by the call's id
}

// ToolCall is a call of a reply as the client sends it back.
type ToolCall struct {
	ID, Name string
	Input    json.RawMessage
}

// History is the conversation that a request carries, in any dialect, without the
// system prompt, reasoning and images. Consecutive messages of one side form one turn.
// A model that decides by it needs no memory of its own, so a client that is killed
// and sends its request again gets the same reply again.
func (r Request) History() []Turn {
	var body struct{ Messages, Input, Contents []json.RawMessage }
	_ = json.Unmarshal(r.Body, &body) // another shape holds none
	h := &history{}
	for _, m := range body.Messages {
		h.message(m)
	}
	for _, m := range body.Input {
		h.item(m)
	}
	for _, m := range body.Contents {
		h.content(m)
	}
	return h.turns
}

// Offered are the names of the tools in a request, in order.
func (r Request) Offered() []string {
	type named struct {
		Name      string
		Function  *struct{ Name string }
		Functions []struct{ Name string } `json:"functionDeclarations"`
	}
	var body struct{ Tools []named }
	_ = json.Unmarshal(r.Body, &body)
	var names []string
	for _, t := range body.Tools {
		switch {
		case t.Function != nil:
			names = append(names, t.Function.Name)
		case t.Name != "":
			names = append(names, t.Name)
		}
		for _, f := range t.Functions {
			names = append(names, f.Name)
		}
	}
	return names
}

type history struct{ turns []Turn }

// side is the turn that a message of one side belongs to.
func (h *history) side(model bool) *Turn {
	if n := len(h.turns); n == 0 || h.turns[n-1].Model != model {
		h.turns = append(h.turns, Turn{Model: model, Results: map[string]string{}})
	}
	return &h.turns[len(h.turns)-1]
}

func (t *Turn) say(text string) {
	if text != "" && t.Text != "" {
		t.Text += "\n"
	}
	t.Text += text
}

// message is one of the Messages API, or of chat completions.
func (h *history) message(raw json.RawMessage) {
	var m struct {
		Role    string
		Content json.RawMessage
		Calls   []struct {
			ID       string
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
		Answers string `json:"tool_call_id"`
	}
	_ = json.Unmarshal(raw, &m)
	if m.Role == "system" || m.Role == "developer" {
		return
	}
	t := h.side(m.Role == "assistant")
	if m.Role == "tool" {
		t.Results[m.Answers] = plainText(m.Content)
		return
	}
	for _, c := range m.Calls {
		t.Calls = append(t.Calls, ToolCall{c.ID, c.Function.Name, json.RawMessage(c.Function.Arguments)})
	}
	var blocks []struct {
		Type, ID, Name, Text string
		Input, Content       json.RawMessage
		Answers              string `json:"tool_use_id"`
	}
	if json.Unmarshal(m.Content, &blocks) != nil {
		t.say(plainText(m.Content))
		return
	}
	for _, b := range blocks {
		switch b.Type {
		case "text":
			t.say(b.Text)
		case "tool_use":
			t.Calls = append(t.Calls, ToolCall{b.ID, b.Name, b.Input})
		case "tool_result":
			t.Results[b.Answers] = plainText(b.Content)
		}
	}
}

// item is one of the Responses API.
func (h *history) item(raw json.RawMessage) {
	var m struct {
		Type, Role, Name, Arguments string
		Content, Output             json.RawMessage
		Call                        string `json:"call_id"`
	}
	_ = json.Unmarshal(raw, &m)
	switch m.Type {
	case "message":
		h.side(m.Role == "assistant").say(plainText(m.Content))
	case "function_call":
		t := h.side(true)
		t.Calls = append(t.Calls, ToolCall{m.Call, m.Name, json.RawMessage(m.Arguments)})
	case "function_call_output":
		h.side(false).Results[m.Call] = plainText(m.Output)
	}
}

// content is one of the Gemini API.
func (h *history) content(raw json.RawMessage) {
	var m struct {
		Role  string
		Parts []googlePart
	}
	_ = json.Unmarshal(raw, &m)
	t := h.side(m.Role == "model")
	for _, p := range m.Parts {
		switch {
		case p.Call != nil:
			t.Calls = append(t.Calls, ToolCall{p.Call.ID, p.Call.Name, p.Call.Args})
		case p.Response != nil:
			var values map[string]any
			_ = json.Unmarshal(p.Response.Response, &values)
			var words []string
			for _, k := range slices.Sorted(maps.Keys(values)) {
				words = append(words, fmt.Sprint(values[k]))
			}
			t.Results[p.Response.ID] = strings.Join(words, "\n")
		case p.Text != nil:
			t.say(*p.Text)
		}
	}
}

// plainText is a string, or the texts of parts.
func plainText(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	var parts []struct{ Text string }
	_ = json.Unmarshal(content, &parts)
	var words []string
	for _, p := range parts {
		if p.Text != "" {
			words = append(words, p.Text)
		}
	}
	return strings.Join(words, "\n")
}
