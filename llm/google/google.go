// Package google speaks the Gemini API: streamGenerateContent with server-sent
// events.
//
// The body is built from Roo's stored blocks: the same history gives the same bytes and a longer one the same bytes
// in front. The API requires a thought's signature in later requests. It is stored as Roo stores it (one block at the
// end of the reply) and sent with the first call of that reply, where the API expects it. A reply that another model
// wrote has none; the API's documented placeholder is sent instead.
//
// Replies are put into Roo's stored order. Thoughts are kept for the user and not
// sent back. The SDK was rejected: its types lose fields that they do not know, and
// turn a call's arguments into Go values.
package google

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// Name is the provider's name.
const Name = "google"

// Options configure a Provider.
type Options = wire.Options

// Provider implements llm.Provider.
type Provider struct {
	*wire.Provider
	history wire.History
}

var _ llm.Provider = (*Provider)(nil)

// New makes a Provider.
func New(o Options) *Provider {
	p := &Provider{}
	p.Provider = wire.NewProvider(o, wire.Dialect{
		Name:    Name,
		BaseURL: "https://generativelanguage.googleapis.com",
		NoKey:   "no API key; try: set GEMINI_API_KEY",
		Idle:    10 * time.Minute,
		Address: func(model string) string {
			model = strings.TrimPrefix(model, "models/")
			return wire.Join(p.BaseURL, "v1beta", "models/"+url.PathEscape(model)+":streamGenerateContent?alt=sse")
		},
		KeyHeader: "X-Goog-Api-Key",
		Body:      p.body,
		Reply: func(call wire.Call, _ llm.Request) wire.Attempt {
			r := &reply{Reply: wire.Reply{Call: call}}
			// The API has no end event: it sends a finish reason, and the stream ends.
			call.Ended = func() bool { return r.Stop != "" }
			return wire.Attempt{Call: call, Add: r.add, Done: r.done}
		},
		Kind: kindOf,
	})
	return p
}

// Locate implements llm.Locator.
func (p *Provider) Locate(refusal string) (message, block int, ok bool) {
	return p.history.Locate(refusal, "contents", 0)
}

// kindOf classifies an error by message and code: Google sends many errors as a plain 400.
func kindOf(status int, code, message string) llm.Kind {
	switch {
	case strings.Contains(message, "API key not valid"), strings.Contains(message, "API key expired"):
		return llm.Auth
	case wire.IsOverflow(message):
		return llm.ContextOverflow
	case code == "RESOURCE_EXHAUSTED":
		return llm.RateLimited
	case code == "UNAVAILABLE":
		return llm.Overloaded
	case status == 0:
		return llm.Server
	}
	return wire.KindOfStatus(status, message)
}

// unsigned is the signature that the API documents for calls that another model made.
const unsigned = `"skip_thought_signature_validator"`

// body builds the request.
func (p *Provider) body(req llm.Request) *wire.Body {
	var system, thinking []byte
	if req.System != "" {
		system = esjson.ObjectOf("parts", esjson.List([][]byte{esjson.ObjectOf("text", req.System)}))
	}
	tools := wire.Tools(req.Tools, func(_ int, t llm.ToolSpec) []byte {
		return esjson.ObjectOf("name", t.Name, "description", t.Description, "parametersJsonSchema", t.Schema)
	})
	if tools != nil {
		tools = esjson.List([][]byte{esjson.ObjectOf("functionDeclarations", tools)})
	}
	generation := generationOf(req.Model)
	if generation >= 3 || strings.Contains(req.Model, "gemini-2.5") { // older models refuse requests for thoughts
		thinking = esjson.ObjectOf(append([]any{"includeThoughts", true}, effort(p.Effort, req.Model)...)...)
	}
	config := esjson.ObjectOf("maxOutputTokens", esjson.Given(max(req.MaxTokens, 0)), "thinkingConfig", thinking)
	head := esjson.ObjectOf("systemInstruction", system, "tools", tools, "generationConfig", config)
	body := wire.NewBody(head, "contents", 2*len(req.Messages)+2)
	names := map[string]string{} // of all calls, by id: a result names its tool
	for _, m := range req.Messages {
		if m.Role == "assistant" {
			for _, b := range wire.Blocks(m.Content) {
				if b.Type == "tool_use" {
					names[string(b.ID)] = string(b.Name)
				}
			}
		}
	}
	form := form{names: names, signed: generation >= 3, nameless: p.Door != nil}
	p.history.Add(body, req.Messages, form.translate)
	body.Add([]byte(`]}`))
	return body
}

// generationOf returns the number in a model's name, 0 when there is none: gemini-2.5-pro gives 2.
func generationOf(model string) int {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(model, "models/"), "gemini-")
	if !ok {
		return 0
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	n, _ := strconv.Atoi(rest[:end])
	return n
}

// budgets are the tokens that models of generation 2.5 may use for thinking, as Google documents them for the effort
// levels of other APIs.
var budgets = map[string]int{"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 24576, "max": 24576}

// effort returns the members that select how much to think: a level from generation 3 on, a budget before.
func effort(word, model string) (members []any) {
	budget, known := budgets[word]
	if !known {
		return nil
	}
	if generationOf(model) < 3 {
		if strings.Contains(model, "pro") {
			budget = max(budget, 128) // it cannot be kept from thinking
		}
		return []any{"thinkingBudget", budget}
	}
	switch word {
	case "none", "minimal":
		word = "low" // thinking cannot be switched off, and the least level is not everywhere
	case "xhigh", "max":
		word = "high"
	}
	return []any{"thinkingLevel", strings.ToUpper(word)}
}

// form decides how messages are written for one model.
type form struct {
	names    map[string]string // of the tools, by the ids of all calls
	signed   bool              // a reply's first call needs a signature
	nameless bool              // calls have no ids: Vertex AI refuses ids, and relies on the order of calls
}

// translate returns one stored message in Google's form.
func (f form) translate(m llm.Message) []byte {
	signed := f.signed
	role := "user"
	if m.Role == "assistant" {
		role = "model"
	}
	var parts [][]byte
	blocks := wire.Blocks(m.Content)
	var signature []byte
	last := -1 // the text that carries the signature of a reply without calls
	for i, b := range blocks {
		switch b.Type {
		case "thoughtSignature":
			signature = b.Signature
		case "text":
			last = i
		case "tool_use":
			last = len(blocks)
		}
	}
	var pictures []wire.Block // of results: they go after all results
	behind := func() {
		parts = append(parts, api.Each(pictures, inlineData)...)
		pictures = nil
	}
	for i, b := range blocks {
		if b.Type != "tool_result" {
			behind()
		}
		id := b.ID
		if f.nameless {
			id = nil
		}
		switch b.Type {
		case "text":
			var signs []byte
			if i == last {
				signs = signature
			}
			parts = append(parts, esjson.ObjectOf("text", b.Text, "thoughtSignature", signs))
		case "image":
			parts = append(parts, inlineData(b))
		case "tool_use":
			if signature == nil && signed {
				signature = []byte(unsigned)
			}
			parts = append(parts, esjson.ObjectOf("functionCall",
				esjson.ObjectOf("id", id, "name", b.Name, "args", b.Object()), "thoughtSignature", signature))
			signature, signed = nil, false // the first call of a reply carries it
		case "tool_result":
			text, images := b.Result()
			key := "output"
			if b.IsError {
				key = "error"
			}
			parts = append(parts, esjson.ObjectOf("functionResponse", esjson.ObjectOf("id", id,
				"name", []byte(cmp.Or(f.names[string(b.ID)], `"unknown_tool"`)), "response", esjson.ObjectOf(key, text))))
			pictures = append(pictures, images...)
		}
	}
	behind()
	if len(parts) == 0 {
		return nil
	}
	return esjson.ObjectOf("role", role, "parts", esjson.List(parts))
}

func inlineData(b wire.Block) []byte {
	return esjson.ObjectOf("inlineData", esjson.ObjectOf("mimeType", b.Media, "data", b.Data))
}

// reply builds a reply from its events.
type reply struct {
	wire.Reply
	signature string
}

func (r *reply) add(data []byte) ([]llm.Chunk, bool, error) {
	if !esjson.Valid(data) || esjson.TypeOf(data) != esjson.TypeObject {
		return nil, false, wire.UnreadableEvent(r.Call.Name(), data)
	}
	if err := r.Failed(data); err != nil {
		return nil, false, err
	}
	r.Note(data, "responseId", "modelVersion")
	var chunks []llm.Chunk
	for candidate := range esjson.Array(esjson.Member(data, "candidates")) {
		for part := range esjson.Array(esjson.Member(esjson.Member(candidate, "content"), "parts")) {
			chunks = append(chunks, r.part(part)...)
		}
		r.Stop = cmp.Or(esjson.TextOf(candidate, "finishReason"), r.Stop)
		break // one was asked for
	}
	r.Stop = cmp.Or(r.Stop, esjson.TextOf(esjson.Member(data, "promptFeedback"), "blockReason"))
	if usage, is := esjson.Get(data, "usageMetadata"); is {
		chunks = append(chunks, r.Count(usageOf(usage))...)
	}
	return chunks, false, nil
}

func (r *reply) part(part []byte) []llm.Chunk {
	r.signature = cmp.Or(r.signature, esjson.TextOf(part, "thoughtSignature"))
	if call, is := esjson.Get(part, "functionCall"); is && esjson.TypeOf(call) == esjson.TypeObject {
		return []llm.Chunk{r.addCall(call)}
	}
	text, _ := esjson.GetString(part, "text")
	if esjson.IsTrue(part, "thought") {
		return r.Think(text)
	}
	return r.Say(text)
}

// addCall adds a call, which arrives as a whole. Ids are often missing.
func (r *reply) addCall(call []byte) llm.Chunk {
	id, _ := esjson.GetString(call, "id")
	name, _ := esjson.GetString(call, "name")
	args, _ := esjson.Get(call, "args")
	if esjson.TypeOf(args) != esjson.TypeObject {
		args = []byte("{}")
	} else if compact, err := esjson.Compact(nil, args); err == nil {
		args = compact
	}
	delta := r.Calls.Begin(int64(r.Calls.Len()), id, name, args)
	delta.Input = string(args)
	return delta
}

// usageOf reads the counts. Google bills thoughts as output; the prompt's count includes tokens that came from a
// cache.
func usageOf(usage []byte) llm.Usage {
	count := func(name string) int64 { return max(esjson.IntOf(usage, name), 0) }
	in := count("promptTokenCount") + count("toolUsePromptTokenCount")
	out := count("candidatesTokenCount") + count("thoughtsTokenCount")
	cached := min(count("cachedContentTokenCount"), in)
	return llm.Usage{Input: in - cached, CacheRead: cached, Output: out}
}

func (r *reply) done() llm.Done {
	d := r.Done(r.stopReason(), r.Thoughts())
	if r.signature != "" && len(d.Blocks) > 0 {
		d.Blocks = append(d.Blocks, esjson.ObjectOf("type", "thoughtSignature",
			"thoughtSignature", r.signature))
	}
	return d
}

// stopReason translates Google's finish reasons to llm's.
func (r *reply) stopReason() string {
	switch r.Stop {
	case "STOP":
		if r.Calls.Len() > 0 {
			return "tool_use"
		}
		return "end_turn"
	case "MAX_TOKENS":
		return "max_tokens"
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "OTHER", "IMAGE_SAFETY", "MODEL_ARMOR", "JAILBREAK":
		return "refusal"
	}
	return r.Stop
}
