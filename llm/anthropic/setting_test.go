package anthropic_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/anthropic"
)

// What a provider keeps of the request before it never gets into another one: it sends the
// bytes that a new provider would send.
func TestBodyDoesNotHangOnTheRequestBefore(t *testing.T) {
	tool := func(name, schema string) llm.ToolSpec {
		return llm.ToolSpec{Name: name, Description: "does " + name, Schema: json.RawMessage(schema)}
	}
	requests := []llm.Request{
		{System: "one"},
		{System: "two \"quoted\""},
		{System: "one", Tools: []llm.ToolSpec{tool("a", `{"type":"object"}`)}},
		{System: "one", Tools: []llm.ToolSpec{tool("a", `{"type":"object","properties":{}}`)}},
		{System: "one", Tools: []llm.ToolSpec{tool("a", `{"type":"object"}`), tool("b", "")}},
		{Tools: []llm.ToolSpec{tool("b", "")}},
		{},
	}
	p := anthropic.New(anthropic.Options{APIKey: key})
	for range 2 {
		for i, req := range requests {
			for n := range 3 { // the same again, with a longer history
				req.Model, req.Messages = "claude-sonnet-4-5", conversation(n, 100)
				got, err := p.Body(req)
				if err != nil {
					t.Fatal(err)
				}
				want, err := anthropic.New(anthropic.Options{APIKey: key}).Body(req)
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("request %d: %.300s, want %.300s (%v)", i, got, want, err)
				}
				if !json.Valid(got) {
					t.Errorf("request %d is no JSON", i)
				}
			}
		}
	}
}
