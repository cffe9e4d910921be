package llm

// Locator is a Provider that can find which part of a request a refusal is about.
type Locator interface {
	// Locate reads the provider's error message about the last request and returns the
	// message, and the block in its content, both from 0; block is -1 when it is about
	// the message as a whole. ok is false when the error message names no part.
	Locate(refusal string) (message, block int, ok bool)
}
