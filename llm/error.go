package llm

import "fmt"

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
	RetryAfterMS int64  // the wait that the provider asked for, 0 for none
	Err          error  // the cause, if any
}

func (e *Error) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("%s: %s (HTTP %d): %s", e.Provider, e.Kind, e.Status, e.Message)
	}
	return fmt.Sprintf("%s: %s: %s", e.Provider, e.Kind, e.Message)
}

func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same request may succeed later.
func (e *Error) Retryable() bool {
	switch e.Kind {
	case RateLimited, Overloaded, Server, Cut, Network:
		return true
	}
	return false
}
