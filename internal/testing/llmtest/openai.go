package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/roost-dev/roost/internal/lazyregexp"
)

// openAIName is what OpenAI takes as a tool's name: half of Anthropic's length.
var openAIName = lazyregexp.New(`^[a-zA-Z0-9_-]{1,64}$`)

func bearer(h http.Header) string {
	key, _ := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	return key
}

func writeOpenAIError(w http.ResponseWriter, status int, typ, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	code := "null"
	switch {
	case strings.Contains(message, "context length"):
		code = `"context_length_exceeded"`
	case status == http.StatusTooManyRequests:
		code = `"rate_limit_exceeded"`
	}
	_, _ = fmt.Fprintf(w, `{"error":{"message":%s,"type":%s,"param":null,"code":%s}}`, encode(message), encode(typ), code)
}

// stored is a reply's block as the dialects read it.
type stored struct {
	Type, ID, Name, Text, Thinking string
	Input                          json.RawMessage
}

func (r Reply) stored() []stored {
	var out []stored
	for _, raw := range r.Blocks {
		var b stored
		_ = json.Unmarshal(raw, &b)
		out = append(out, b)
	}
	return out
}

// counts are the tokens of a reply as OpenAI counts them: tokens read from a cache are
// part of the input.
func (r Reply) counts(req Request) (in, out int64) {
	in, out = r.Input, r.Output
	if in == 0 {
		in = int64(len(req.Body)/4) + 1
	}
	if out == 0 {
		for _, b := range r.Blocks {
			out += int64(len(b))
		}
		out = out/4 + 1
	}
	return in + r.CacheRead + r.CacheWrite, out
}

func (r Reply) named(req Request, prefix string) (id, model string) {
	id, model = r.ID, r.Model
	if id == "" {
		id = fmt.Sprintf("%s_test_%d", prefix, req.Number)
	}
	if model == "" {
		model = req.Model()
	}
	return id, model
}

// pairing follows calls and their results through a request.
type pairing struct {
	pictures gallery
	open     []string
	known    map[string]bool
}

func (p *pairing) call(where, id, name, arguments string) string {
	switch {
	case len(id) > 64:
		return fmt.Sprintf("Invalid '%s.call_id': string too long. Expected a string with maximum length 64, but got a string with length %d instead.", where, len(id))
	case id == "" || p.known[id]:
		return fmt.Sprintf("%s: missing or duplicate call id %q", where, id)
	case !openAIName().MatchString(name):
		return fmt.Sprintf("Invalid '%s.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", where)
	case !json.Valid([]byte(arguments)) || !strings.HasPrefix(strings.TrimSpace(arguments), "{"):
		return fmt.Sprintf("Invalid '%s.arguments': not a JSON object", where)
	}
	if p.known == nil {
		p.known = map[string]bool{}
	}
	p.known[id] = true
	p.open = append(p.open, id)
	return ""
}

func (p *pairing) result(id string) bool {
	for i, o := range p.open {
		if o == id {
			p.open = append(p.open[:i], p.open[i+1:]...)
			return true
		}
	}
	return false
}

type openAITool struct {
	Type       string          `json:"type"`
	Name       string          `json:"name"`
	Parameters json.RawMessage `json:"parameters"`
}

func checkOpenAITools(tools []openAITool) string {
	seen := map[string]bool{}
	for i, t := range tools {
		switch {
		case t.Type != "function":
			return fmt.Sprintf("Invalid value for 'tools[%d].type'", i)
		case !openAIName().MatchString(t.Name) || seen[t.Name]:
			return fmt.Sprintf("Invalid 'tools[%d].function.name': %q", i, t.Name)
		case len(t.Parameters) == 0 || t.Parameters[0] != '{':
			return fmt.Sprintf("Invalid schema for function '%s': schema must be an object", t.Name)
		}
		seen[t.Name] = true
	}
	return ""
}

// dataURL is how an image is named.
var dataURL = lazyregexp.New(`^data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*$`)
