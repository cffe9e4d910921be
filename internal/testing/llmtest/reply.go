package llmtest

import (
	"encoding/json"
	"net/http"
	"time"
)

// Reply is what the server answers to one request: a message, a refusal, or a
// message that goes wrong. Replies are values; the methods return changed copies.
type Reply struct {
	Blocks     []json.RawMessage // content blocks, complete, as the API would have built them
	StopReason string            // "" = tool_use when there is a call, else end_turn
	ID, Model  string            // "" = made up from the request
	Input      int64             // input_tokens; 0 = bytes of the request / 4
	CacheRead  int64
	CacheWrite int64
	Output     int64 // 0 = bytes of the blocks / 4

	Status  int         // not 0: refuse with this HTTP status
	Type    string      // error.type of a refusal or of an error event
	Message string      // its message
	Header  http.Header // extra response headers

	Before     time.Duration // wait before the first byte
	Piece      int           // bytes per write; 0 = one event per write
	Pause      time.Duration // wait between writes
	DeltaRunes int           // characters per delta; 0 = 12

	CutAtByte   int // > 0: stop after that many bytes of the stream
	CutAtEvent  int // > 0: stop after that many events
	StallAt     int // > 0: after that many events send nothing more until the client goes
	ErrorAt     int // > 0: after that many events send an error event and end
	Abort       bool
	InputPieces []string // sent instead of a call's own input, for malformed JSON

	Details []json.RawMessage // elements of reasoning_details, one a delta; chat completions only
}

// Text answers with text.
func Text(s string) Reply { return Blocks(map[string]any{"type": "text", "text": s}) }

// Call answers with one tool call.
func Call(id, name, input string) Reply { return Reply{}.AndCall(id, name, input) }

// Blocks answers with these content blocks, each a value that encodes as one.
func Blocks(blocks ...any) Reply {
	var r Reply
	for _, b := range blocks {
		r.Blocks = append(r.Blocks, encode(b))
	}
	return r
}

// Fail refuses with an HTTP status and the error type that goes with it.
func Fail(status int, message string) Reply {
	return Reply{Status: status, Type: errorType(status), Message: message}
}

// AndText adds a text block.
func (r Reply) AndText(s string) Reply {
	return r.and(encode(map[string]any{"type": "text", "text": s}))
}

// AndThinking adds a thinking block.
func (r Reply) AndThinking(text, signature string) Reply {
	return r.and(encode(map[string]any{"type": "thinking", "thinking": text, "signature": signature}))
}

// AndCall adds a tool call; input is its JSON, sent as it is.
func (r Reply) AndCall(id, name, input string) Reply {
	b := append([]byte(`{"type":"tool_use","id":`), encode(id)...)
	b = append(append(b, `,"name":`...), encode(name)...)
	b = append(append(append(b, `,"input":`...), input...), '}')
	return r.and(b)
}

func (r Reply) and(block json.RawMessage) Reply {
	r.Blocks = append(append([]json.RawMessage(nil), r.Blocks...), block)
	return r
}

// After adds response headers, e.g. After("retry-after", "2").
func (r Reply) After(key, value string) Reply {
	h := r.Header.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Set(key, value)
	r.Header = h
	return r
}

// CutByte ends the stream after n bytes, as if it were complete.
func (r Reply) CutByte(n int) Reply { r.CutAtByte = n; return r }

// CutEvent ends the stream after n events, as if it were complete.
func (r Reply) CutEvent(n int) Reply { r.CutAtEvent = n; return r }

// Broken turns a cut into a broken connection.
func (r Reply) Broken() Reply { r.Abort = true; return r }

// Stall goes silent after n events.
func (r Reply) Stall(n int) Reply { r.StallAt = n; return r }

// ErrorEvent sends an error event after n events.
func (r Reply) ErrorEvent(n int, typ, message string) Reply {
	r.ErrorAt, r.Type, r.Message = n, typ, message
	return r
}

// Trickle writes n bytes at a time, also within characters, with a pause between.
func (r Reply) Trickle(n int, pause time.Duration) Reply {
	r.Piece, r.Pause = n, pause
	return r
}

func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a test's own mistake
	}
	return b
}

func errorType(status int) string {
	switch status {
	case 400, 422:
		return "invalid_request_error"
	case 401:
		return "authentication_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	case 529:
		return "overloaded_error"
	}
	return "api_error"
}
