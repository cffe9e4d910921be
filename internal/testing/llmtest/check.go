package llmtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/roost-dev/roost/internal/lazyregexp"
)

var (
	idShape   = lazyregexp.New(`^[a-zA-Z0-9_-]+$`)
	nameShape = lazyregexp.New(`^[a-zA-Z0-9_-]{1,128}$`)
)

type wireRequest struct {
	Model     string          `json:"model"`
	MaxTokens int             `json:"max_tokens"`
	Stream    bool            `json:"stream"`
	System    json.RawMessage `json:"system"`
	Tools     []struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"input_schema"`
		Type   string          `json:"type"`
	} `json:"tools"`
	Thinking *struct {
		Type   string `json:"type"`
		Budget int    `json:"budget_tokens"`
	} `json:"thinking"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

type wireBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Signature *string         `json:"signature"`
	Cache     json.RawMessage `json:"cache_control"`
	Content   json.RawMessage `json:"content"`
	Source    struct {
		Media string `json:"media_type"`
		Data  string `json:"data"`
	} `json:"source"`
}

// images adds a block's images, those in a tool's result too.
func (g *gallery) images(where string, blocks []wireBlock) string {
	for j, b := range blocks {
		at := fmt.Sprintf("%s.%d", where, j)
		problem := ""
		switch b.Type {
		case "image":
			problem = g.add(at+".image.source.base64", b.Source.Media, b.Source.Data)
		case "tool_result":
			var inner []wireBlock
			if json.Unmarshal(b.Content, &inner) == nil {
				problem = g.images(at+".tool_result.content", inner)
			}
		}
		if problem != "" {
			return problem
		}
	}
	return ""
}

// Check returns the first documented rule of the Messages API that a request
// breaks, "" when it keeps them all. It is as strict as the API, so that a test
// fails here and not at a customer's.
func Check(h http.Header, body []byte) string {
	if h.Get("Anthropic-Version") == "" {
		return "anthropic-version: header is required"
	}
	if !strings.HasPrefix(h.Get("Content-Type"), "application/json") {
		return "content-type: must be application/json"
	}
	var r wireRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return "The request body is not valid JSON: " + err.Error()
	}
	switch {
	case r.Model == "":
		return "model: Field required"
	case r.MaxTokens < 1:
		return "max_tokens: must be at least 1"
	case len(r.Messages) == 0:
		return "messages: at least one message is required"
	case r.Thinking != nil && r.Thinking.Type == "enabled" && (r.Thinking.Budget < 1024 || r.Thinking.Budget >= r.MaxTokens):
		return "thinking.budget_tokens: must be at least 1024 and less than max_tokens"
	}
	if n := bytes.Count(body, []byte(`"cache_control":{`)); n > 4 {
		return fmt.Sprintf("A maximum of 4 blocks with cache_control may be provided. Found %d.", n)
	}
	if problem := checkSystem(r.System); problem != "" {
		return problem
	}
	seen := map[string]bool{}
	for i, t := range r.Tools {
		if !nameShape().MatchString(t.Name) {
			return fmt.Sprintf("tools.%d.name: String should match pattern", i)
		}
		if seen[t.Name] {
			return "tools: Tool names must be unique."
		}
		seen[t.Name] = true
		if t.Type == "" && (len(t.Schema) == 0 || t.Schema[0] != '{') {
			return fmt.Sprintf("tools.%d.input_schema: Field required", i)
		}
	}
	if r.Thinking != nil && r.Thinking.Type == "enabled" {
		if problem := checkThinkingTurn(r); problem != "" {
			return problem
		}
	}
	return checkMessages(r)
}

// checkThinkingTurn: with a budget, the model's last turn, a tool loop as a whole, begins
// with thinking. Models that decide by themselves are not held to it.
func checkThinkingTurn(r wireRequest) string {
	first := -1
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if r.Messages[i].Role == "assistant" {
			first = i
		} else if !bytes.Contains(r.Messages[i].Content, []byte(`"tool_result"`)) {
			break
		}
	}
	if first < 0 {
		return ""
	}
	if blocks, _ := blocksOf(first, r.Messages[first].Content); len(blocks) > 0 && !strings.HasSuffix(blocks[0].Type, "thinking") {
		return fmt.Sprintf("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceding the lastmost set of `tool_use` and `tool_result` blocks).", first, blocks[0].Type)
	}
	return ""
}

// checkSystem allows a string, or text blocks with something in them.
func checkSystem(system json.RawMessage) string {
	if len(system) == 0 || system[0] == '"' {
		return ""
	}
	var blocks []wireBlock
	if err := json.Unmarshal(system, &blocks); err != nil {
		return "system: Input should be a valid list"
	}
	for i, b := range blocks {
		if b.Type != "text" {
			return fmt.Sprintf("system.%d: Input tag '%s' found using 'type' does not match any of the expected tags", i, b.Type)
		}
		if b.Text == "" {
			return "system: text content blocks must be non-empty"
		}
	}
	return ""
}

func checkMessages(r wireRequest) string {
	var open []string // calls of the message before, waiting for results
	ids := map[string]bool{}
	pictures := gallery{count: 100, one: 5 << 20, total: 32 << 20, side: 8000, many: 20, manySide: 2000}
	for i, m := range r.Messages {
		if m.Role != "user" && m.Role != "assistant" {
			return fmt.Sprintf("messages.%d.role: Input should be 'user' or 'assistant'", i)
		}
		if i == 0 && m.Role != "user" {
			return "messages: first message must use the \"user\" role"
		}
		last := i == len(r.Messages)-1
		blocks, problem := blocksOf(i, m.Content)
		if problem != "" {
			return problem
		}
		if problem := pictures.images(fmt.Sprintf("messages.%d.content", i), blocks); problem != "" {
			return problem
		}
		if len(blocks) == 0 && !(last && m.Role == "assistant") {
			return fmt.Sprintf("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
		}
		if m.Role == "user" {
			if problem := checkResults(i, blocks, open); problem != "" {
				return problem
			}
			open = nil
			continue
		}
		if len(open) > 0 {
			return unanswered(i-1, open)
		}
		var calls []string
		for j, b := range blocks {
			if b.Type == "tool_use" {
				if ids[b.ID] {
					return "messages: `tool_use` ids must be unique"
				}
				ids[b.ID] = true
				calls = append(calls, b.ID)
			}
			if b.Type == "thinking" && b.Signature == nil {
				return fmt.Sprintf("messages.%d.content.%d.thinking.signature: Field required", i, j)
			}
			if b.Type == "tool_result" {
				return fmt.Sprintf("messages.%d.content.%d: `tool_result` blocks can only be in `user` messages", i, j)
			}
		}
		open = calls
	}
	if len(open) > 0 {
		return unanswered(len(r.Messages)-1, open)
	}
	if r.Messages[len(r.Messages)-1].Role != "user" {
		// The API allows a prefill on older models; an agent never wants one.
		return "messages: the final message must be from the user"
	}
	return pictures.end()
}

func unanswered(i int, ids []string) string {
	return fmt.Sprintf("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", i, strings.Join(ids, ", "))
}

func checkResults(i int, blocks []wireBlock, open []string) string {
	waiting := map[string]bool{}
	for _, id := range open {
		waiting[id] = true
	}
	other := false
	for j, b := range blocks {
		switch b.Type {
		case "tool_result":
			if !waiting[b.ToolUseID] {
				return fmt.Sprintf("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", i, j, b.ToolUseID)
			}
			if other {
				return fmt.Sprintf("messages.%d: `tool_result` blocks must come first", i)
			}
			delete(waiting, b.ToolUseID)
		case "tool_use", "thinking", "redacted_thinking":
			return fmt.Sprintf("messages.%d.content.%d: `%s` blocks can only be in `assistant` messages", i, j, b.Type)
		default:
			other = true
		}
	}
	var left []string
	for _, id := range open {
		if waiting[id] {
			left = append(left, id)
		}
	}
	if len(left) > 0 {
		return unanswered(i-1, left)
	}
	return ""
}

func blocksOf(i int, content json.RawMessage) ([]wireBlock, string) {
	if len(content) == 0 {
		return nil, fmt.Sprintf("messages.%d.content: Field required", i)
	}
	if content[0] == '"' {
		var s string
		_ = json.Unmarshal(content, &s)
		if s == "" {
			return nil, ""
		}
		if strings.TrimSpace(s) == "" {
			return nil, "messages: text content blocks must contain non-whitespace text"
		}
		return []wireBlock{{Type: "text", Text: s}}, ""
	}
	var blocks []wireBlock
	if err := json.Unmarshal(content, &blocks); err != nil {
		return nil, fmt.Sprintf("messages.%d.content: Input should be a valid list", i)
	}
	for j, b := range blocks {
		switch b.Type {
		case "text":
			if b.Text == "" {
				return nil, "messages: text content blocks must be non-empty"
			}
			if strings.TrimSpace(b.Text) == "" {
				return nil, "messages: text content blocks must contain non-whitespace text"
			}
		case "tool_use":
			if !idShape().MatchString(b.ID) || !nameShape().MatchString(b.Name) {
				return nil, fmt.Sprintf("messages.%d.content.%d.tool_use: String should match pattern", i, j)
			}
			if len(b.Input) == 0 || b.Input[0] != '{' {
				return nil, fmt.Sprintf("messages.%d.content.%d.tool_use.input: Input should be a valid dictionary", i, j)
			}
		case "thinking", "redacted_thinking":
			if len(b.Cache) > 0 {
				return nil, fmt.Sprintf("messages.%d.content.%d: thinking blocks cannot have cache_control", i, j)
			}
		case "image", "document", "tool_result", "search_result", "server_tool_use", "web_search_tool_result", "container_upload":
		default:
			return nil, fmt.Sprintf("messages.%d.content.%d: Input tag '%s' found using 'type' does not match any of the expected tags", i, j, b.Type)
		}
	}
	return blocks, ""
}
