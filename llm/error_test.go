package llm_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/roost-dev/roost/llm"
)

// Which kinds may be tried again, and the text of an error; add each new kind here.
func TestErrors(t *testing.T) {
	for kind, again := range map[llm.Kind]bool{
		llm.Auth: false, llm.Invalid: false, llm.ContextOverflow: false, llm.Script: false,
		llm.RateLimited: true, llm.Overloaded: true, llm.Server: true, llm.Cut: true, llm.Network: true,
		"of tomorrow": false,
	} {
		e := &llm.Error{Provider: "p", Kind: kind, Message: "words", Err: io.EOF}
		if e.Retryable() != again || !errors.Is(fmt.Errorf("ask: %w", e), io.EOF) || e.Error() != "p: "+string(kind)+": words" {
			t.Errorf("%s: %v, again %t", kind, e, e.Retryable())
		}
	}
	e := &llm.Error{Provider: "p", Kind: llm.Server, Status: 502, Message: "words"}
	if got := e.Error(); got != "p: server (HTTP 502): words" || e.Unwrap() != nil {
		t.Error(got)
	}
}
