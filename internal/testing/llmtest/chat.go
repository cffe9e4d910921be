package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// CheckChat returns the first rule of chat completions that a request breaks, ""
// when it keeps them all.
func CheckChat(h http.Header, body []byte) string {
	if !strings.HasPrefix(h.Get("Content-Type"), "application/json") {
		return "content-type: must be application/json"
	}
	var r struct {
		Model    string `json:"model"`
		Stream   bool   `json:"stream"`
		Messages []struct {
			Role      string          `json:"role"`
			Content   json.RawMessage `json:"content"`
			Details   json.RawMessage `json:"reasoning_details"`
			ToolCall  string          `json:"tool_call_id"`
			ToolCalls []struct {
				ID       string `json:"id"`
				Type     string `json:"type"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
		Tools []struct {
			Type     string     `json:"type"`
			Function openAITool `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return "We could not parse the JSON body of your request: " + err.Error()
	}
	if r.Model == "" || len(r.Messages) == 0 {
		return "you must provide a model and messages"
	}
	var tools []openAITool
	for _, t := range r.Tools {
		t.Function.Type = t.Type
		tools = append(tools, t.Function)
	}
	if problem := checkOpenAITools(tools); problem != "" {
		return problem
	}
	p := pairing{pictures: openAIImages}
	for i, m := range r.Messages {
		where := fmt.Sprintf("messages[%d]", i)
		if m.Role != "tool" && len(p.open) > 0 {
			return fmt.Sprintf("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(p.open, ", "))
		}
		switch m.Role {
		case "system", "developer":
			if i > 0 {
				return where + ": a system message comes first"
			}
		case "user":
			if problem := p.parts(where, m.Content, "text", "image_url"); problem != "" {
				return problem
			}
		case "assistant":
			if m.Details != nil && m.Details[0] != '[' {
				return where + ".reasoning_details: must be an array"
			}
			if len(m.ToolCalls) == 0 && (len(m.Content) == 0 || string(m.Content) == "null" || string(m.Content) == `""`) {
				return where + ": an assistant message has content or tool_calls"
			}
			for j, c := range m.ToolCalls {
				if problem := p.call(fmt.Sprintf("%s.tool_calls[%d].function", where, j), c.ID, c.Function.Name, c.Function.Arguments); problem != "" {
					return problem
				}
			}
		case "tool":
			if !p.result(m.ToolCall) {
				return fmt.Sprintf("Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls' (%s).", m.ToolCall)
			}
			if problem := p.parts(where, m.Content, "text"); problem != "" {
				return problem
			}
		default:
			return fmt.Sprintf("Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'tool', and 'developer'.", m.Role)
		}
	}
	if problem := p.pictures.end(); problem != "" {
		return problem
	}
	if len(p.open) > 0 {
		return "the request ends with calls that have no results: " + strings.Join(p.open, ", ")
	}
	return ""
}

// openAIImages are the limits of both APIs.
var openAIImages = gallery{count: 500, total: 50 << 20}

// parts allows a string, or parts of the types given.
func (p *pairing) parts(where string, content json.RawMessage, types ...string) string {
	var text string
	if json.Unmarshal(content, &text) == nil && len(content) > 0 && content[0] == '"' {
		return ""
	}
	var parts []struct {
		Type  string          `json:"type"`
		Text  *string         `json:"text"`
		Image json.RawMessage `json:"image_url"`
		Look  string          `json:"detail"`
	}
	if json.Unmarshal(content, &parts) != nil || len(parts) == 0 {
		return fmt.Sprintf("Invalid type for '%s.content': expected a string or parts", where)
	}
	for j, part := range parts {
		allowed := false
		for _, t := range types {
			allowed = allowed || t == part.Type
		}
		url := ""
		switch {
		case !allowed:
			return fmt.Sprintf("Invalid value for '%s.content[%d].type': %q", where, j, part.Type)
		case strings.HasSuffix(part.Type, "text") && part.Text == nil:
			return fmt.Sprintf("Missing '%s.content[%d].text'", where, j)
		case part.Type == "image_url":
			var o struct{ URL string }
			_ = json.Unmarshal(part.Image, &o)
			url = o.URL
		case part.Type == "input_image":
			_ = json.Unmarshal(part.Image, &url)
			if part.Look != "auto" && part.Look != "low" && part.Look != "high" {
				return fmt.Sprintf("Missing required parameter: '%s.content[%d].detail'.", where, j)
			}
		default:
			continue
		}
		if strings.Contains(part.Type, "image") && !dataURL().MatchString(url) {
			return fmt.Sprintf("Invalid '%s.content[%d].image_url'", where, j)
		}
		media, data, _ := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
		if problem := p.pictures.add(fmt.Sprintf("%s.content[%d]", where, j), media, data); problem != "" {
			return problem
		}
	}
	return ""
}

func chatFailed(typ, message string) []byte {
	return fmt.Appendf(nil, "data: {\"error\":{\"message\":%s,\"type\":%s,\"code\":null}}\n\n", encode(message), encode(typ))
}

// chatEvents are a reply's stream in chunks of chat completions.
func (r Reply) chatEvents(req Request) [][]byte {
	id, model := r.named(req, "chatcmpl")
	var out [][]byte
	chunk := func(delta any, reason string) {
		finish := "null"
		if reason != "" {
			finish = string(encode(reason))
		}
		out = append(out, fmt.Appendf(nil, "data: {\"id\":%s,\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":%s,\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n",
			encode(id), encode(model), encode(delta), finish))
	}
	chunk(map[string]any{"role": "assistant", "content": ""}, "")
	for _, d := range r.Details {
		chunk(map[string]any{"reasoning_details": []any{d}}, "")
	}
	stop, call := "stop", 0
	for _, b := range r.stored() {
		switch b.Type {
		case "text":
			for _, p := range r.pieces(b.Text) {
				chunk(map[string]any{"content": p}, "")
			}
		case "thinking", "reasoning":
			for _, p := range r.pieces(b.Thinking + b.Text) {
				chunk(map[string]any{"reasoning_content": p}, "")
			}
		case "tool_use":
			stop = "tool_calls"
			part := func(m map[string]any) { chunk(map[string]any{"tool_calls": []any{m}}, "") }
			part(map[string]any{"index": call, "id": b.ID, "type": "function", "function": map[string]any{"name": b.Name, "arguments": ""}})
			pieces := r.InputPieces
			if pieces == nil {
				pieces = r.pieces(string(b.Input))
			}
			for _, p := range pieces {
				part(map[string]any{"index": call, "function": map[string]any{"arguments": p}})
			}
			call++
		}
	}
	switch r.StopReason {
	case "":
	case "max_tokens":
		stop = "length"
	case "refusal":
		stop = "content_filter"
	default:
		stop = r.StopReason
	}
	chunk(map[string]any{}, stop)
	in, output := r.counts(req)
	out = append(out, fmt.Appendf(nil, "data: {\"id\":%s,\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":%s,\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"total_tokens\":%d,\"prompt_tokens_details\":{\"cached_tokens\":%d,\"cache_write_tokens\":%d}}}\n\n",
		encode(id), encode(model), in, output, in+output, r.CacheRead, r.CacheWrite))
	return append(out, []byte("data: [DONE]\n\n"))
}
