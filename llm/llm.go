// Package llm asks models. It offers one small streaming interface for every provider and keeps, as raw JSON,
// everything that a provider requires in the next request: thinking signatures, encrypted reasoning, tool call ids.
//
// A Request holds messages in Roo's stored shape (Anthropic-like content
// blocks), already made valid for sending; a Provider translates them onto its
// wire without changing their content. The same Request gives the same bytes, so that
// provider caches keep hitting.
package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// Message is one message in the form in which it is sent.
type Message struct {
	Role    string          // "user" or "assistant"
	Content json.RawMessage // a JSON string or an array of content blocks

	// ReasoningDetails is the array of that name that a server of chat completions sent with the message and requires
	// in later requests; nil when there is none.
	ReasoningDetails json.RawMessage

	// ReasoningContent is the reasoning of an assistant's message as a JSON string, for a server of chat completions
	// that requires it; nil for all others.
	ReasoningContent json.RawMessage
}

// ToolSpec describes a tool to a model.
type ToolSpec struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of the input object
}

// Request is one question to a model.
type Request struct {
	Model     string
	System    string
	Tools     []ToolSpec
	Messages  []Message
	MaxTokens int // 0 = the catalogue's limit for the model

	// The position of this request in the task. The scripted provider chooses its turn by it; others ignore it.
	Replies  int // complete assistant messages in the visible history (no cut replies, no summaries)
	Failures int // failed attempts recorded since the last of them
	Summary  int // 0 = a turn; else the number of the summary that the request asks for, from 1
}

// Provider is one way to reach models.
type Provider interface {
	// Name returns the provider's name in flags, records and messages.
	Name() string
	// Stream sends the request and yields the chunks of the reply as they arrive. The last chunk of a complete reply
	// is a Done. A stream never ends without a Done or an error: a cut stream yields an *Error with Kind Cut. Before
	// the first chunk the provider retries; after it, only the caller can.
	//
	// The call itself sends nothing: sending begins when the caller ranges over the sequence. A provider may build
	// the request's body in the call, so that this happens while the caller's intent becomes durable.
	Stream(ctx context.Context, req Request) iter.Seq2[Chunk, error]
}

// Chunk is one of TextDelta, ReasoningDelta, ToolDelta, UsageReport, Retrying, Done.
type Chunk interface{ chunk() }

// TextDelta is more visible text.
type TextDelta struct{ Text string }

// ReasoningDelta is more of the model's reasoning.
type ReasoningDelta struct{ Text string }

// ToolDelta is more of a tool call's input. The first one of a call has its name.
type ToolDelta struct {
	Index int // which call of this reply, from 0
	ID    string
	Name  string
	Input string // a piece of the input's JSON text
}

// UsageReport is what the reply has used so far. Each report replaces the one
// before it.
type UsageReport struct{ Usage Usage }

// Retrying reports that an attempt failed and another one follows after WaitMS.
type Retrying struct {
	Attempt int // the attempt that failed, from 1
	Err     *Error
	WaitMS  int64
}

// Done is a complete reply.
type Done struct {
	ID         string // the provider's response id, "" when it has none
	Model      string // the model that answered, as the provider names it
	StopReason string // "end_turn", "tool_use", "max_tokens", "refusal", or the provider's own name
	// Blocks are assistant content blocks in Roo's order: thinking or reasoning, one text block (all text joined),
	// tool_use blocks in stream order.
	Blocks []json.RawMessage
	Usage  Usage

	// Malformed maps the ids of calls in Blocks whose input is malformed or incomplete to the text that the model
	// sent. Such a call is in Blocks with the input {} and must not run: its result is an error that shows the model
	// its own text. nil when there is none.
	Malformed map[string]string

	// ReasoningDetails is the JSON array that a server of chat completions requires with this message in later
	// requests; nil when it sent none. Blocks then holds no reasoning.
	ReasoningDetails json.RawMessage

	// ReasoningFrom names the server and the model when the reasoning came as reasoning_content: such a server
	// requires it in every later request. "" = it did not.
	ReasoningFrom string
}

// Addressee is a provider that can name the server that gets a request for a model, in the form of
// Done.ReasoningFrom.
type Addressee interface {
	Server(model string) string
}

func (TextDelta) chunk()      {}
func (ReasoningDelta) chunk() {}
func (ToolDelta) chunk()      {}
func (UsageReport) chunk()    {}
func (Retrying) chunk()       {}
func (Done) chunk()           {}

// Usage counts tokens. Input excludes what was read from or written to a cache.
type Usage struct {
	Input      int64 `json:"input" yaml:"input"`
	Output     int64 `json:"output" yaml:"output"`
	CacheRead  int64 `json:"cache_read,omitempty" yaml:"cache_read"`
	CacheWrite int64 `json:"cache_write,omitempty" yaml:"cache_write"`
}

// Kind classifies a provider's error by what a caller can do about it.
type Kind string

// The kinds of provider errors.
const (
	Auth            Kind = "auth"             // the key is missing or refused: ask the user
	Invalid         Kind = "invalid"          // the request was refused as malformed: correct it
	ContextOverflow Kind = "context_overflow" // the request is too long: shorten it
	RateLimited     Kind = "rate_limited"     // too many requests or tokens: wait
	Overloaded      Kind = "overloaded"       // the provider is busy: wait
	Server          Kind = "server"           // the provider failed: try again
	Cut             Kind = "cut"              // the stream ended before the reply did
	Network         Kind = "network"          // no connection, or it broke
	Script          Kind = "script"           // the scripted model cannot play this
)

// Error is a provider's refusal or failure.
type Error struct {
	Provider     string
	Kind         Kind
	Status       int    // HTTP status, 0 when there was no answer
	Message      string // the provider's own message, secrets removed
	Try          string // what a person can do about it, in Roost's words; "" when the message already says so
	RetryAfterMS int64  // the wait that the provider asked for, 0 for none
	Err          error  // the cause, if any; see ErrNotRunning and the errors beside it
}

// TryMark separates an error's message from the advice after it.
const TryMark = "; try: "

func (e *Error) Error() string {
	at, try := "", ""
	if e.Status != 0 {
		at = fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.Try != "" {
		try = TryMark + e.Try
	}
	return fmt.Sprintf("%s: %s%s: %s%s", e.Provider, e.Kind, at, e.Message, try)
}

func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same request may succeed later.
func (e *Error) Retryable() bool {
	switch e.Kind {
	case RateLimited, Overloaded, Server, Cut, Network:
		return e.Tries(2) > 1
	}
	return false
}

// Locator is a Provider that can find the part of a request that a refusal is about.
type Locator interface {
	// Locate reads the provider's error message about the last request and returns the message, and the block in its
	// content, both from 0; block is -1 when the refusal is about the message as a whole. ok is false when the error
	// message names no part.
	Locate(refusal string) (message, block int, ok bool)
}

// The known causes of an Error, which its Err wraps: the things for a person to check.
var (
	ErrNotRunning  = errors.New("nothing listens on this machine at that port")
	ErrRefused     = errors.New("the other machine refuses the connection")
	ErrUnknownHost = errors.New("the host is not known")
	ErrCertificate = errors.New("the server's certificate is not trusted")
	ErrNotHTTP     = errors.New("the server speaks another protocol")
	ErrProxy       = errors.New("the proxy does not let the request through")
	ErrOffline     = errors.New("the network cannot be reached")
	ErrCredit      = errors.New("the account has no credit left")
)

// once are causes for which another attempt is useless; twice those for which it helps now and then.
var (
	once  = []error{ErrCertificate, ErrNotHTTP, ErrProxy, ErrCredit}
	twice = []error{ErrNotRunning, ErrUnknownHost}
)

// Tries returns the number of attempts, the first included, that a request is worth which fails with e: at most most.
func (e *Error) Tries(most int) int {
	is := func(cause error) bool { return errors.Is(e.Err, cause) }
	switch {
	case slices.ContainsFunc(once, is):
		return min(1, most)
	case slices.ContainsFunc(twice, is):
		return min(2, most)
	}
	return most
}
