package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// CheckResponses returns the first rule of the Responses API that a request breaks,
// "" when it keeps them all. A request must leave nothing at the provider.
func CheckResponses(h http.Header, body []byte) string {
	if !strings.HasPrefix(h.Get("Content-Type"), "application/json") {
		return "content-type: must be application/json"
	}
	var r struct {
		Model   string   `json:"model"`
		Store   *bool    `json:"store"`
		Include []string `json:"include"`
		Input   []struct {
			Type      string          `json:"type"`
			Role      string          `json:"role"`
			Content   json.RawMessage `json:"content"`
			CallID    string          `json:"call_id"`
			Name      string          `json:"name"`
			Arguments string          `json:"arguments"`
			Output    json.RawMessage `json:"output"`
			Encrypted string          `json:"encrypted_content"`
			Summary   json.RawMessage `json:"summary"`
		} `json:"input"`
		Tools []openAITool `json:"tools"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return "We could not parse the JSON body of your request: " + err.Error()
	}
	if r.Model == "" || len(r.Input) == 0 {
		return "Missing required parameter: 'model' or 'input'."
	}
	if r.Store == nil || *r.Store {
		return "store: must be false here"
	}
	thinks := strings.HasPrefix(r.Model, "gpt-5") || strings.HasPrefix(r.Model, "o")
	if len(r.Include) > 0 && !thinks {
		return "Encrypted content is not supported with this model."
	}
	if problem := checkOpenAITools(r.Tools); problem != "" {
		return problem
	}
	p := pairing{pictures: openAIImages}
	for i, item := range r.Input {
		where := fmt.Sprintf("input[%d]", i)
		last := i == len(r.Input)-1
		switch item.Type {
		case "message":
			types := []string{"input_text", "input_image"}
			if item.Role == "assistant" {
				types = []string{"output_text", "refusal"}
			}
			if problem := p.parts(where, item.Content, types...); problem != "" {
				return problem
			}
		case "reasoning":
			if item.Encrypted == "" || len(item.Summary) == 0 {
				return fmt.Sprintf("Missing required parameter: '%s.encrypted_content' or summary.", where)
			}
			if !thinks {
				return "reasoning items cannot be sent to this model"
			}
			if last || r.Input[i+1].Type == "function_call_output" || r.Input[i+1].Role == "user" {
				return fmt.Sprintf("Item '%s' of type 'reasoning' was provided without its required following item.", where)
			}
		case "function_call":
			if problem := p.call(where, item.CallID, item.Name, item.Arguments); problem != "" {
				return problem
			}
		case "function_call_output":
			if !p.result(item.CallID) {
				return fmt.Sprintf("No tool call found for function call output with call_id %s.", item.CallID)
			}
			if len(item.Output) == 0 || item.Output[0] != '"' {
				return fmt.Sprintf("Invalid type for '%s.output': expected a string", where)
			}
		default:
			return fmt.Sprintf("Invalid value: '%s' for '%s.type'", item.Type, where)
		}
	}
	if problem := p.pictures.end(); problem != "" {
		return problem
	}
	if len(p.open) > 0 {
		return "No tool output found for function call " + p.open[0] + "."
	}
	return ""
}

func responsesFailed(typ, message string) []byte {
	return fmt.Appendf(nil, "event: error\ndata: {\"type\":\"error\",\"code\":%s,\"message\":%s,\"param\":null}\n\n", encode(typ), encode(message))
}

// responsesEvents are a reply's stream in events of the Responses API.
func (r Reply) responsesEvents(req Request) [][]byte {
	id, model := r.named(req, "resp")
	var out [][]byte
	seq := 0
	send := func(typ string, members map[string]any) {
		members["type"], members["sequence_number"] = typ, seq
		seq++
		out = append(out, fmt.Appendf(nil, "event: %s\ndata: %s\n\n", typ, encode(members)))
	}
	response := func(status string) map[string]any {
		return map[string]any{"id": id, "object": "response", "model": model, "status": status}
	}
	send("response.created", map[string]any{"response": response("in_progress")})
	send("response.in_progress", map[string]any{"response": response("in_progress")})
	known := slices.DeleteFunc(r.stored(), func(b stored) bool { // the API has no item for another
		return !slices.Contains([]string{"text", "thinking", "reasoning", "tool_use"}, b.Type)
	})
	for i, b := range known {
		item := map[string]any{"id": fmt.Sprintf("item_%d_%d", req.Number, i)}
		added := func() {
			send("response.output_item.added", map[string]any{"output_index": i, "item": item})
		}
		switch b.Type {
		case "text":
			item["type"], item["role"] = "message", "assistant"
			added()
			for _, p := range r.pieces(b.Text) {
				send("response.output_text.delta", map[string]any{"output_index": i, "content_index": 0, "item_id": item["id"], "delta": p})
			}
			item["content"] = []any{map[string]any{"type": "output_text", "text": b.Text, "annotations": []any{}}}
		case "thinking", "reasoning":
			item["type"], item["summary"] = "reasoning", []any{}
			added()
			send("response.reasoning_summary_part.added", map[string]any{"output_index": i, "summary_index": 0})
			for _, p := range r.pieces(b.Thinking + b.Text) {
				send("response.reasoning_summary_text.delta", map[string]any{"output_index": i, "summary_index": 0, "delta": p})
			}
			item["encrypted_content"] = "enc:" + b.Thinking + b.Text
			item["summary"] = []any{map[string]any{"type": "summary_text", "text": b.Thinking + b.Text}}
		case "tool_use":
			item["type"], item["call_id"], item["name"], item["arguments"] = "function_call", b.ID, b.Name, ""
			added()
			pieces := r.InputPieces
			if pieces == nil {
				pieces = r.pieces(string(b.Input))
			}
			for _, p := range pieces {
				send("response.function_call_arguments.delta", map[string]any{"output_index": i, "item_id": item["id"], "delta": p})
			}
			item["arguments"] = strings.Join(pieces, "")
		}
		send("response.output_item.done", map[string]any{"output_index": i, "item": item})
	}
	in, output := r.counts(req)
	end, kind := response("completed"), "response.completed"
	if r.StopReason == "max_tokens" || r.StopReason == "refusal" {
		reason := map[string]string{"max_tokens": "max_output_tokens", "refusal": "content_filter"}[r.StopReason]
		end, kind = response("incomplete"), "response.incomplete"
		end["incomplete_details"] = map[string]any{"reason": reason}
	}
	end["usage"] = map[string]any{
		"input_tokens": in, "input_tokens_details": map[string]any{"cached_tokens": r.CacheRead, "cache_write_tokens": r.CacheWrite},
		"output_tokens": output, "output_tokens_details": map[string]any{"reasoning_tokens": 0}, "total_tokens": in + output,
	}
	send(kind, map[string]any{"response": end})
	return out
}
