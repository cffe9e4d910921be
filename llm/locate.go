package llm

// Locator is a Provider that can tell which part of a request a refusal is about.
type Locator interface {
	// Locate reads the provider's words about the request that it was sent last: the
	// message, and the block in its content, both from 0; block is -1 when it is about
	// the message as a whole. ok is false when the words do not say.
	Locate(refusal string) (message, block int, ok bool)
}
