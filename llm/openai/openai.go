// Package openai speaks OpenAI's two APIs: Responses, and chat completions, which
// half of all servers imitate (OpenRouter, Ollama, llama.cpp, LM Studio, vLLM).
//
// The body is built from Roo's stored blocks, so that the same history gives the same bytes and a longer one the same
// bytes in front. The provider stores nothing: with Responses, each request sends the encrypted reasoning again.
// Content for which an API has no place moves: an image in a tool's result goes into the user message after it.
//
// Replies are put into Roo's stored order (reasoning, one text, tool calls). Plain reasoning is sent only to servers
// that sent it as reasoning_content: DeepSeek and others refuse calls without it, other servers refuse calls with it.
// reasoning_details are stored with the message and sent only to servers that sent them. The SDK was rejected: it
// adds 19 MB to the program, and its types lose members that they do not know.
package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// New makes a Provider.
func New(o Options) *Provider {
	p := &Provider{}
	d := wire.Dialect{
		Name:      Name,
		BaseURL:   "https://api.openai.com/v1",
		NoKey:     "no API key; try: set OPENAI_API_KEY",
		Idle:      10 * time.Minute, // reasoning models send nothing for minutes, and a local one first loads itself
		Address:   func(string) string { return wire.Join(p.BaseURL, "v1", "responses") },
		KeyHeader: "Authorization",
		KeyPrefix: "Bearer ",
		Body:      p.responsesBody,
		Reply:     p.reply,
		Kind:      kindOf,
	}
	if o.Compatible {
		d.Address = func(string) string { return wire.Join(p.BaseURL, "v1", "chat/completions") }
		d.Body = p.chatBody
	}
	if o.Compatible && o.Door == nil {
		d.Name = Compatible
		d.NoURL = "no address is named; try: --base-url http://127.0.0.1:11434/v1, or set OPENAI_COMPATIBLE_BASE_URL"
	}
	p.Provider = wire.NewProvider(o, d)
	return p
}

func (p *Provider) reply(call wire.Call, req llm.Request) wire.Attempt {
	if !p.Compatible {
		r := &responsesReply{Reply: wire.Reply{Call: call}}
		return wire.Attempt{Call: call, Add: r.add, Done: r.done}
	}
	r := &chatReply{Reply: wire.Reply{Call: call}, server: p.Server(req.Model)}
	// Some servers send a finish reason and never [DONE].
	call.Ended = func() bool { return r.Stop != "" }
	return wire.Attempt{Call: call, Add: r.add, Done: r.done}
}

// kindOf classifies an error by its code, and by the status if the code does not decide.
func kindOf(status int, code, message string) llm.Kind {
	switch {
	case code == "context_length_exceeded", status == 0 && wire.IsOverflow(message):
		return llm.ContextOverflow
	case code == "insufficient_quota", code == "invalid_api_key":
		// No wait helps: the account has to be looked at.
		return llm.Auth
	case code == "rate_limit_exceeded":
		return llm.RateLimited
	case code == "server_is_overloaded", code == "slow_down":
		return llm.Overloaded
	case status == 0 && (strings.HasPrefix(code, "invalid_") || strings.Contains(code, "image")):
		return llm.Invalid // of the prompt or of an image in it: the same request fails again
	case status == 0:
		return llm.Server
	}
	return wire.KindOfStatus(status, message)
}

// The providers' names.
const (
	Name       = "openai"            // OpenAI itself
	Compatible = "openai-compatible" // a server that imitates chat completions
)

// Options configure a Provider. OpenAI itself needs a key; many other servers need none.
type Options = wire.Options

// Provider implements llm.Provider.
type Provider struct {
	*wire.Provider
	history wire.History

	thoughtless wire.History                 // the form for models that do not reason
	last        atomic.Pointer[wire.History] // the history of the last request of Responses
	before      atomic.Int32                 // number of messages of chat completions before the history
}

var _ llm.Provider = (*Provider)(nil)

// Server implements llm.Addressee. It leaves out the query of the address, which may hold a key.
func (p *Provider) Server(model string) string {
	at := p.BaseURL
	if u, err := url.Parse(at); err == nil {
		at = u.Scheme + "://" + u.Host + u.Path
	}
	return cmp.Or(model, p.Model) + " at " + at
}

// Locate implements llm.Locator.
func (p *Provider) Locate(refusal string) (message, block int, ok bool) {
	if p.Compatible {
		return p.history.Locate(refusal, "messages", int(p.before.Load()))
	}
	if h := p.last.Load(); h != nil {
		return h.Locate(refusal, "input", 0)
	}
	return 0, 0, false
}

// function describes a tool to a model.
func function(t llm.ToolSpec) (members []any) {
	schema := t.Schema
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return []any{"name", t.Name, "description", esjson.Given(t.Description), "parameters", schema}
}

// userForm is the form in which one of the two APIs writes a user's message.
type userForm struct {
	text, image func(value []byte) []byte
	result      func(id, text []byte) []byte
	words       func(parts []byte) []byte // texts and images
}

// user writes results first, each by itself, then texts and images, including the images of results.
func (f userForm) user(blocks []wire.Block) []byte {
	var out, parts [][]byte
	for _, b := range blocks {
		switch b.Type {
		case "tool_result":
			text, images := b.Result()
			out = append(out, f.result(b.ID, text))
			for _, image := range images {
				parts = append(parts, f.image(image.DataURL()))
			}
		case "text":
			parts = append(parts, f.text(b.Text))
		case "image":
			parts = append(parts, f.image(b.DataURL()))
		}
	}
	if len(parts) > 0 {
		out = append(out, f.words(esjson.List(parts)))
	}
	return bytes.Join(out, []byte{','})
}

// callArguments returns a call's input in OpenAI's form: a string that holds JSON.
func callArguments(b wire.Block) []byte { return esjson.Quote(nil, string(b.Object())) }

// joinStrings is two JSON strings as one.
func joinStrings(a, b []byte) []byte {
	if len(a) < 2 {
		return b
	}
	return append(a[:len(a)-1:len(a)-1], b[1:]...)
}

// usageOf reads the token counts of a reply, of both APIs, whose names for the same counts differ. Both count tokens
// read from and written to a cache as part of the input; usageOf subtracts them. Both count reasoning as part of the
// output; some servers that imitate the API (xAI's) count it separately, which their total shows.
//
// OpenAI reports tokens written to a cache for the models that charge for it. LiteLLM has
// another name for that count, and DeepSeek and Moonshot other ones for tokens read from a cache.
//
// A server's mistake must not make a cost negative: no part is larger than the whole.
func usageOf(usage []byte) llm.Usage {
	in, out := firstCount(usage, "prompt_tokens", "input_tokens"), firstCount(usage, "completion_tokens", "output_tokens")
	ins := firstObject(usage, "prompt_tokens_details", "input_tokens_details")
	outs := firstObject(usage, "completion_tokens_details", "output_tokens_details")
	read := cmp.Or(firstCount(ins, "cached_tokens"), firstCount(usage, "prompt_cache_hit_tokens", "cached_tokens"))
	write := firstCount(ins, "cache_write_tokens", "cache_creation_tokens")
	if thought := firstCount(outs, "reasoning_tokens"); thought > 0 && firstCount(usage, "total_tokens") == in+out+thought {
		out += thought
	}
	read = min(read, in)
	write = min(write, in-read)
	return llm.Usage{Input: in - read - write, CacheRead: read, CacheWrite: write, Output: out}
}

// firstCount returns the first of these counts that exists and makes sense; otherwise 0.
func firstCount(object []byte, names ...string) int64 {
	for _, name := range names {
		// The bound keeps sums of a hostile server's counts from overflowing.
		if n, ok := esjson.GetInt(object, name); ok && n > 0 {
			return min(n, 1e15)
		}
	}
	return 0
}

func firstObject(usage []byte, names ...string) []byte {
	for _, name := range names {
		if val, ok := esjson.Get(usage, name); ok && esjson.TypeOf(val) == esjson.TypeObject {
			return val
		}
	}
	return nil
}

// details joins reasoning_details. They arrive in pieces: pieces with the same type and index form one element. Its
// text grows, and its other members are those of the newest piece. The server requires the elements unchanged, so
// members that this package does not know are kept, too.
type details struct {
	list []*detail
	at   map[string]*detail
}

type detail struct {
	keys   []string // in the order in which they came
	values map[string][]byte
	words  map[string][]byte // text, summary and data, unquoted
}

// add adds a delta's array and returns the readable text in it.
func (d *details) add(array []byte) (text string) {
	for piece := range esjson.Array(array) {
		if esjson.TypeOf(piece) != esjson.TypeObject {
			continue
		}
		typ, _ := esjson.GetString(piece, "type")
		index, indexed := esjson.GetInt(piece, "index")
		if !indexed {
			index = -1
			// Without an index, only text continues the element before it.
			if typ == "reasoning.encrypted" {
				index = -2 - int64(len(d.list))
			}
		}
		one := d.element(typ + "-" + strconv.FormatInt(index, 10))
		for key, val := range esjson.Members(piece) {
			if added := one.set(key, val); key != "data" {
				text += added
			}
		}
	}
	return text
}

func (d *details) element(name string) *detail {
	if one := d.at[name]; one != nil {
		return one
	}
	if d.at == nil {
		d.at = map[string]*detail{}
	}
	one := &detail{values: map[string][]byte{}, words: map[string][]byte{}}
	d.at[name], d.list = one, append(d.list, one)
	return one
}

// set sets a member and returns the text that it added. Pieces of a text continue it; a new piece replaces other members.
func (e *detail) set(key string, val []byte) string {
	has, known := e.values[key]
	if !known {
		e.keys = append(e.keys, key)
	}
	switch {
	case (key == "text" || key == "summary" || key == "data") && esjson.TypeOf(val) == esjson.TypeString:
		s, err := esjson.Unquote(val)
		if err != nil {
			return ""
		}
		e.values[key], e.words[key] = []byte(`""`), append(e.words[key], s...)
		return s
	case known && esjson.TypeOf(val) == esjson.TypeNull && esjson.TypeOf(has) != esjson.TypeNull:
		// A later piece has null for members that an earlier one filled.
	default:
		e.values[key] = append([]byte(nil), val...)
	}
	return ""
}

// array returns the JSON array to store with the message, nil when nothing arrived.
func (d *details) array() json.RawMessage {
	if len(d.list) == 0 {
		return nil
	}
	out := make([][]byte, len(d.list))
	for i, e := range d.list {
		var o esjson.Object
		for _, key := range e.keys {
			if words, is := e.words[key]; is {
				o.String(key, string(words))
			} else {
				o.Raw(key, e.values[key])
			}
		}
		out[i] = o.Bytes()
	}
	return esjson.List(out)
}

// responsesBody builds a request of the Responses API that leaves nothing at the
// provider.
func (p *Provider) responsesBody(req llm.Request) *wire.Body {
	// Models that do not think refuse the thoughts of another one.
	history, thinks := &p.thoughtless, canReason(req.Model)
	var include, reasoning []byte
	if thinks {
		history, include = &p.history, esjson.Strings([]string{"reasoning.encrypted_content"})
		reasoning = esjson.ObjectOf("effort", esjson.Given(p.Effort), "summary", "auto")
	}
	head := esjson.ObjectOf("model", req.Model, "stream", true, "store", false, "include", include,
		"reasoning", reasoning, "max_output_tokens", esjson.Given(max(req.MaxTokens, 0)),
		"instructions", esjson.Given(req.System),
		"tools", wire.Tools(req.Tools, func(_ int, t llm.ToolSpec) []byte {
			// Strict schemas demand that every member is required; ours have optional ones.
			return esjson.ObjectOf(append([]any{"type", "function", "strict", false}, function(t)...)...)
		}))
	body := wire.NewBody(head, "input", 2*len(req.Messages)+2)
	p.last.Store(history)
	history.Add(body, req.Messages, func(m llm.Message) []byte { return responsesItems(m, thinks) })
	body.Add([]byte(`]}`))
	return body
}

// canReason reports whether a model thinks before it answers. Other models refuse requests
// for their reasoning.
func canReason(model string) bool {
	for _, family := range []string{"o1", "o3", "o4", "gpt-5", "gpt-6", "codex"} {
		if rest, ok := strings.CutPrefix(model, family); ok {
			return !strings.HasPrefix(rest, "-chat")
		}
	}
	return false
}

var responsesForm = userForm{
	text: func(text []byte) []byte { return esjson.ObjectOf("type", "input_text", "text", text) },
	image: func(url []byte) []byte {
		return esjson.ObjectOf("type", "input_image", "detail", "auto", "image_url", url)
	},
	result: func(id, text []byte) []byte {
		return esjson.ObjectOf("type", "function_call_output", "call_id", id, "output", text)
	},
	words: func(parts []byte) []byte {
		return esjson.ObjectOf("type", "message", "role", "user", "content", parts)
	},
}

// responsesItems returns one stored message as input items.
func responsesItems(m llm.Message, thoughts bool) []byte {
	if m.Role != "assistant" {
		return responsesForm.user(wire.Blocks(m.Content))
	}
	var items [][]byte
	var text []byte
	flushText := func() {
		if text != nil {
			said := esjson.List([][]byte{esjson.ObjectOf("type", "output_text", "text", text)})
			items = append(items, esjson.ObjectOf("type", "message", "role", "assistant", "content", said))
			text = nil
		}
	}
	for _, b := range wire.Blocks(m.Content) {
		switch b.Type {
		case "text":
			text = joinStrings(text, b.Text)
		case "reasoning":
			if thoughts && esjson.TypeOf(b.Encrypted) == esjson.TypeString {
				flushText()
				// Its summary was for the user and is not sent back.
				id := esjson.Member(b.Raw, "id")
				if esjson.TypeOf(id) != esjson.TypeString {
					id = nil
				}
				items = append(items, esjson.ObjectOf("type", "reasoning", "id", id,
					"summary", []byte("[]"), "encrypted_content", b.Encrypted))
			}
		case "tool_use":
			flushText()
			items = append(items, esjson.ObjectOf("type", "function_call", "call_id", b.ID, "name", b.Name,
				"arguments", callArguments(b)))
		}
	}
	flushText()
	return bytes.Join(items, []byte{','})
}

// responsesReply builds a reply of the Responses API.
type responsesReply struct {
	wire.Reply
	thoughts []json.RawMessage // reasoning items, encrypted
}

func (r *responsesReply) add(data []byte) ([]llm.Chunk, bool, error) {
	if !esjson.Valid(data) {
		return nil, false, wire.UnreadableEvent(r.Call.Name(), data)
	}
	typ, _ := esjson.GetString(data, "type")
	index, _ := esjson.GetInt(data, "output_index")
	delta, _ := esjson.GetString(data, "delta")
	item, _ := esjson.Get(data, "item")
	switch typ {
	case "response.created", "response.in_progress":
		r.Note(esjson.Member(data, "response"), "id", "model")
	case "response.output_text.delta", "response.refusal.delta":
		if typ == "response.refusal.delta" {
			r.Stop = "refusal"
		}
		return r.Say(delta), false, nil
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return r.Think(delta), false, nil
	case "response.reasoning_summary_part.added":
		if len(r.Thought) > 0 {
			return r.Think("\n\n"), false, nil
		}
	case "response.output_item.added":
		if esjson.TextOf(item, "type") == "function_call" {
			name, _ := esjson.GetString(item, "name")
			return []llm.Chunk{r.Calls.Add(index, esjson.TextOf(item, "call_id"), name, "")}, false, nil
		}
	case "response.function_call_arguments.delta":
		if r.Calls.Has(index) && delta != "" {
			return []llm.Chunk{r.Calls.Add(index, "", "", delta)}, false, nil
		}
	case "response.output_item.done":
		r.item(index, item)
	case "response.completed", "response.incomplete":
		response := esjson.Member(data, "response")
		r.Note(response, "id", "model")
		r.Stop = cmp.Or(esjson.TextOf(esjson.Member(response, "incomplete_details"), "reason"), r.Stop)
		r.Usage = usageOf(esjson.Member(response, "usage"))
		return []llm.Chunk{llm.UsageReport{Usage: r.Usage}}, true, nil
	case "response.failed":
		return nil, false, r.Call.ErrorOf(0, esjson.Member(data, "response"))
	case "error":
		return nil, false, r.Call.ErrorOf(0, data)
	}
	return nil, false, nil // other progress events, and events of newer versions
}

// item adds a complete item, which counts where deltas were missed.
func (r *responsesReply) item(index int64, item []byte) {
	switch esjson.TextOf(item, "type") {
	case "function_call":
		arguments, is := esjson.GetString(item, "arguments")
		switch {
		case r.Calls.Has(index) && is:
			r.Calls.Replace(index, arguments)
		case !r.Calls.Has(index):
			r.Calls.Add(index, esjson.TextOf(item, "call_id"), esjson.TextOf(item, "name"), arguments)
		}
	case "reasoning":
		encrypted, is := esjson.Get(item, "encrypted_content")
		if !is || esjson.TypeOf(encrypted) != esjson.TypeString {
			return
		}
		r.thoughts = append(r.thoughts, esjson.ObjectOf("type", "reasoning", "summary", []byte("[]"),
			"encrypted_content", encrypted, "id", esjson.Given(esjson.TextOf(item, "id"))))
	}
}

func (r *responsesReply) done() llm.Done {
	if len(r.thoughts) == 0 {
		r.thoughts = r.Thoughts()
	}
	return r.Done(stopReason(r.Stop, r.Calls.Len() > 0), r.thoughts)
}

// chatBody builds a request of chat completions.
func (p *Provider) chatBody(req llm.Request) *wire.Body {
	limit := "max_tokens"
	if p.Door != nil {
		limit = "max_completion_tokens" // OpenAI's reasoning models take no other; imitations do not know it
	}
	head := esjson.ObjectOf("model", req.Model, "stream", true,
		"stream_options", esjson.ObjectOf("include_usage", true), limit, esjson.Given(max(req.MaxTokens, 0)),
		"reasoning_effort", esjson.Given(p.Effort),
		"tools", wire.Tools(req.Tools, func(_ int, t llm.ToolSpec) []byte {
			return esjson.ObjectOf("type", "function", "function", esjson.ObjectOf(function(t)...))
		}))
	body := wire.NewBody(head, "messages", 2*len(req.Messages)+3)
	if req.System != "" {
		body.Add(append(esjson.ObjectOf("role", "system", "content", req.System), ','))
	}
	p.before.Store(int32(min(len(req.System), 1)))
	p.history.Add(body, req.Messages, chatMessages)
	body.Add([]byte(`]}`))
	return body
}

// chatMessages turns a stored message into messages of chat completions, where each tool result is a message of its own.
func chatMessages(m llm.Message) []byte {
	if m.Role == "assistant" {
		return chatAssistant(wire.Blocks(m.Content), m.ReasoningDetails, m.ReasoningContent)
	}
	if esjson.TypeOf(m.Content) == esjson.TypeString {
		return esjson.ObjectOf("role", "user", "content", m.Content)
	}
	return chatForm.user(wire.Blocks(m.Content))
}

var chatForm = userForm{
	text: func(text []byte) []byte { return esjson.ObjectOf("type", "text", "text", text) },
	image: func(url []byte) []byte {
		return esjson.ObjectOf("type", "image_url", "image_url", esjson.ObjectOf("url", url))
	},
	result: func(id, text []byte) []byte {
		return esjson.ObjectOf("role", "tool", "tool_call_id", id, "content", text)
	},
	words: func(parts []byte) []byte { return esjson.ObjectOf("role", "user", "content", parts) },
}

func chatAssistant(blocks []wire.Block, details, reasoning []byte) []byte {
	text := []byte("null")
	var said []byte
	var calls [][]byte
	for _, b := range blocks {
		switch b.Type {
		case "text":
			said = joinStrings(said, b.Text)
			text = said
		case "tool_use":
			calls = append(calls, esjson.ObjectOf("id", b.ID, "type", "function",
				"function", esjson.ObjectOf("name", b.Name, "arguments", callArguments(b))))
		}
	}
	if said == nil && calls == nil {
		return nil // nothing but reasoning: the message is left out
	}
	var list []byte
	if calls != nil {
		list = esjson.List(calls)
	}
	return esjson.ObjectOf("role", "assistant", "content", text, "tool_calls", list,
		"reasoning_details", details, "reasoning_content", reasoning)
}

// chatReply builds a reply of chat completions. Servers differ in what they send; it ignores unknown events and
// members.
type chatReply struct {
	wire.Reply
	server   string // the server and the model, as in Done.ReasoningFrom
	contents bool   // reasoning came as reasoning_content
	details  details
}

func (r *chatReply) add(data []byte) ([]llm.Chunk, bool, error) {
	if bytes.Equal(bytes.TrimSpace(data), []byte("[DONE]")) {
		if r.Stop == "" && len(r.Text) == 0 && r.Calls.Len() == 0 {
			return nil, false, &llm.Error{Provider: r.Call.Name(), Kind: llm.Cut, Message: "the stream ended before the reply did"}
		}
		return nil, true, nil
	}
	if !esjson.Valid(data) {
		return nil, false, wire.UnreadableEvent(r.Call.Name(), data)
	}
	if err := r.Failed(data); err != nil {
		return nil, false, err
	}
	r.Note(data, "id", "model")
	var chunks []llm.Chunk
	usage := firstObject(data, "usage")
	for choice := range esjson.Array(esjson.Member(data, "choices")) {
		chunks = append(chunks, r.choice(choice)...)
		if usage == nil {
			usage = firstObject(choice, "usage") // Moonshot's place
		}
		break // one was asked for
	}
	if usage != nil {
		chunks = append(chunks, r.Count(usageOf(usage))...)
	}
	if r.Stop == "error" || r.Stop == "insufficient_system_resource" {
		return chunks, false, &llm.Error{Provider: r.Call.Name(), Kind: llm.Server, Message: "the server broke the reply off: " + r.Stop}
	}
	return chunks, false, nil
}

func (r *chatReply) choice(choice []byte) []llm.Chunk {
	delta, _ := esjson.Get(choice, "delta")
	thought := r.details.add(esjson.Member(delta, "reasoning_details"))
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if s, _ := esjson.GetString(delta, name); s != "" {
			thought = s
			r.contents = r.contents || name == "reasoning_content"
			break // some servers write it twice, under both names
		}
	}
	chunks := r.Think(thought)
	refusal, _ := esjson.GetString(delta, "refusal")
	chunks = append(append(chunks, r.Say(esjson.TextOf(delta, "content"))...), r.Say(refusal)...)
	if refusal != "" {
		r.Stop = "refusal"
	}
	for call := range esjson.Array(esjson.Member(delta, "tool_calls")) {
		index, indexed := esjson.GetInt(call, "index")
		id, _ := esjson.GetString(call, "id")
		f, _ := esjson.Get(call, "function")
		name, _ := esjson.GetString(f, "name")
		arguments, _ := esjson.GetString(f, "arguments")
		if object, is := esjson.Get(f, "arguments"); is && esjson.TypeOf(object) == esjson.TypeObject {
			arguments = string(object) // servers that forget the quotes
		}
		if !indexed {
			index = r.Calls.Guess(id, name, arguments)
		}
		chunks = append(chunks, r.Calls.Add(index, id, name, arguments))
	}
	if reason, _ := esjson.GetString(choice, "finish_reason"); reason != "" && r.Stop != "refusal" {
		r.Stop = reason
	}
	return chunks
}

func (r *chatReply) done() llm.Done {
	details, thoughts := r.details.array(), r.Thoughts()
	if details != nil {
		thoughts = nil
	}
	d := r.Done(stopReason(r.Stop, r.Calls.Len() > 0), thoughts)
	if d.ReasoningDetails = details; thoughts != nil && r.contents {
		d.ReasoningFrom = r.server
	}
	return d
}

// stopReason translates OpenAI's stop reasons to llm's.
func stopReason(word string, calls bool) string {
	switch word {
	case "tool_calls", "function_call":
		return "tool_use"
	case "stop", "", "completed":
		if calls {
			return "tool_use" // some servers always send "stop"
		}
		return "end_turn"
	case "length", "max_output_tokens", "model_length":
		return "max_tokens"
	case "content_filter", "refusal":
		return "refusal"
	}
	return word
}
