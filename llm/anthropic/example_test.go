package anthropic_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/roost-dev/roost/internal/testing/llmtest"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/anthropic"
)

// A provider takes messages as they are stored, and yields chunks; the last chunk of a
// whole reply is its Done.
func ExampleProvider_Stream() {
	server := llmtest.New(nil, llmtest.Text("Two.").AndCall("toolu_1", "read_file", `{"path":"a.go"}`))
	defer server.Close()
	p := anthropic.New(anthropic.Options{APIKey: "a-key", BaseURL: server.URL, Model: "claude-sonnet-5-5"})
	defer p.CloseIdle()
	question := llm.Message{Role: "user", Content: json.RawMessage(`"What is one and one?"`)}
	for chunk, err := range p.Stream(context.Background(), llm.Request{Messages: []llm.Message{question}}) {
		switch c := chunk.(type) {
		case nil:
			fmt.Println(err)
		case llm.TextDelta:
			fmt.Println("text:", c.Text)
		case llm.Done:
			fmt.Println("stopped for", c.StopReason)
			for _, b := range c.Blocks {
				fmt.Println(string(b))
			}
		}
	}
	// Output:
	// text: Two.
	// stopped for tool_use
	// {"type":"text","text":"Two."}
	// {"type":"tool_use","id":"toolu_1","name":"read_file","input":{"path":"a.go"}}
}
