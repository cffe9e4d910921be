package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/roost-dev/roost/internal/lazyregexp"
)

var googleName = lazyregexp.New(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`)

func googleKey(h http.Header) string { return h.Get("X-Goog-Api-Key") }

func writeGoogleError(w http.ResponseWriter, status int, _, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	word := map[int]string{400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}[status]
	if word == "" {
		word = "INTERNAL"
	}
	_, _ = fmt.Fprintf(w, `{"error":{"code":%d,"message":%s,"status":%q}}`, status, encode(message), word)
}

func googleFailed(_, message string) []byte {
	return fmt.Appendf(nil, "data: {\"error\":{\"code\":500,\"message\":%s,\"status\":\"INTERNAL\"}}\n\n", encode(message))
}

type googlePart struct {
	Text      *string `json:"text"`
	Signature string  `json:"thoughtSignature"`
	Call      *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	Response *struct {
		ID       string          `json:"id"`
		Name     string          `json:"name"`
		Response json.RawMessage `json:"response"`
	} `json:"functionResponse"`
	Data *struct {
		Mime string `json:"mimeType"`
		Data string `json:"data"`
	} `json:"inlineData"`
}

// CheckGoogle returns the first rule of the Gemini API that a request breaks, ""
// when it keeps them all. It is as strict as the newest models, which want each
// reply's first call signed.
func CheckGoogle(h http.Header, body []byte) string {
	if !strings.HasPrefix(h.Get("Content-Type"), "application/json") {
		return "content-type: must be application/json"
	}
	var r struct {
		Contents []struct {
			Role  string       `json:"role"`
			Parts []googlePart `json:"parts"`
		} `json:"contents"`
		Tools []struct {
			Functions []struct {
				Name   string          `json:"name"`
				Schema json.RawMessage `json:"parametersJsonSchema"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
		Config struct {
			Thinking struct {
				Level string `json:"thinkingLevel"`
			} `json:"thinkingConfig"`
		} `json:"generationConfig"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return "Invalid JSON payload received: " + err.Error()
	}
	if len(r.Contents) == 0 {
		return "* GenerateContentRequest.contents: contents is not specified"
	}
	if l := r.Config.Thinking.Level; l != "" && l != "MINIMAL" && l != "LOW" && l != "MEDIUM" && l != "HIGH" {
		return fmt.Sprintf("Invalid value at 'generation_config.thinking_config.thinking_level' (type.googleapis.com/google.ai.generativelanguage.v1beta.ThinkingConfig.ThinkingLevel), %q", l)
	}
	seen := map[string]bool{}
	for _, t := range r.Tools {
		for i, f := range t.Functions {
			if !googleName().MatchString(f.Name) {
				return fmt.Sprintf("* GenerateContentRequest.tools[0].function_declarations[%d].name: Invalid function name", i)
			}
			if seen[f.Name] {
				return "Duplicate function declaration found: " + f.Name
			}
			seen[f.Name] = true
		}
	}
	var open []googlePart
	pictures := gallery{count: 900, one: 10 << 20, total: 20 << 20, refuses: "image/gif"}
	for i, c := range r.Contents {
		where := fmt.Sprintf("contents[%d]", i)
		if c.Role != "user" && c.Role != "model" {
			return "Please use a valid role: user, model."
		}
		if len(c.Parts) == 0 {
			return "* GenerateContentRequest." + where + ".parts: contents.parts must not be empty."
		}
		var calls []googlePart
		answers := 0
		for j, p := range c.Parts {
			switch {
			case p.Call != nil && c.Role == "model":
				if !googleName().MatchString(p.Call.Name) || len(p.Call.Args) == 0 || p.Call.Args[0] != '{' {
					return fmt.Sprintf("%s.parts[%d].function_call: invalid", where, j)
				}
				if len(calls) == 0 && p.Signature == "" {
					return "Function call is missing a thought_signature in functionCall parts: " + p.Call.Name
				}
				calls = append(calls, p)
			case p.Response != nil && c.Role == "user" && answers != j:
				return fmt.Sprintf("%s.parts[%d].function_response: it must come before all other parts", where, j)
			case p.Response != nil && c.Role == "user":
				if answers >= len(open) || open[answers].Call.Name != p.Response.Name || open[answers].Call.ID != p.Response.ID {
					return fmt.Sprintf("%s.parts[%d].function_response: it answers no call of the turn before", where, j)
				}
				if len(p.Response.Response) == 0 || p.Response.Response[0] != '{' {
					return fmt.Sprintf("%s.parts[%d].function_response.response: must be an object", where, j)
				}
				answers++
			case p.Text != nil:
			case p.Data != nil && c.Role == "user":
				if !dataURL().MatchString("data:" + p.Data.Mime + ";base64," + p.Data.Data) {
					return fmt.Sprintf("%s.parts[%d].inline_data: invalid", where, j)
				}
				if problem := pictures.add(fmt.Sprintf("%s.parts[%d].inline_data", where, j), p.Data.Mime, p.Data.Data); problem != "" {
					return problem
				}
			default:
				return fmt.Sprintf("* GenerateContentRequest.%s.parts[%d].data: required oneof field 'data' must have one initialized field", where, j)
			}
		}
		if len(open) > 0 && answers != len(open) {
			return "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
		}
		open = calls
	}
	if len(open) > 0 {
		return "Please ensure that function call turn comes immediately after a user turn or after a function response turn, and is answered."
	}
	return pictures.end()
}

// googleEvents are a reply's stream in chunks of generateContent.
func (r Reply) googleEvents(req Request) [][]byte {
	id, model := r.named(req, "resp")
	in, output := r.counts(req)
	var out [][]byte
	chunk := func(part any, reason string) {
		candidate := map[string]any{"index": 0, "content": map[string]any{"role": "model", "parts": []any{part}}}
		if reason != "" {
			candidate["finishReason"] = reason
		}
		out = append(out, fmt.Appendf(nil, "data: %s\r\n\r\n", encode(map[string]any{
			"candidates": []any{candidate}, "modelVersion": model, "responseId": id,
			"usageMetadata": map[string]any{"promptTokenCount": in, "candidatesTokenCount": output, "cachedContentTokenCount": r.CacheRead, "totalTokenCount": in + output},
		})))
	}
	signed := false
	for _, b := range r.stored() {
		switch b.Type {
		case "text":
			for _, p := range r.pieces(b.Text) {
				chunk(map[string]any{"text": p}, "")
			}
		case "thinking", "reasoning":
			for _, p := range r.pieces(b.Thinking + b.Text) {
				chunk(map[string]any{"text": p, "thought": true}, "")
			}
		case "tool_use":
			part := map[string]any{"functionCall": map[string]any{"id": b.ID, "name": b.Name, "args": b.Input}}
			if !signed {
				part["thoughtSignature"], signed = "signed:"+b.ID, true
			}
			chunk(part, "")
		}
	}
	stop := "STOP"
	switch r.StopReason {
	case "":
	case "max_tokens":
		stop = "MAX_TOKENS"
	case "refusal":
		stop = "SAFETY"
	default:
		stop = r.StopReason
	}
	chunk(map[string]any{"text": ""}, stop)
	return out
}
