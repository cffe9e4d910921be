package anthropic_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/anthropic"
)

// A gateway that sends calls on to another host gets an error, and the other host nothing.
func TestTheKeyStaysWithItsHost(t *testing.T) {
	var asked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer other.Close()
	elsewhere := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	gateway := httptest.NewServer(http.RedirectHandler(elsewhere, http.StatusPermanentRedirect))
	defer gateway.Close()
	p := anthropic.New(anthropic.Options{APIKey: "a-secret-key", BaseURL: gateway.URL})
	req := llm.Request{Model: "m", MaxTokens: 10, Messages: []llm.Message{{Role: "user", Content: []byte(`"hi"`)}}}
	var last error
	for _, err := range p.Stream(t.Context(), req) {
		last = err
	}
	var failed *llm.Error
	if !errors.As(last, &failed) || failed.Kind != llm.Invalid || !strings.Contains(failed.Message, elsewhere) || asked.Load() != 0 {
		t.Errorf("%v; the other host was asked %d times", last, asked.Load())
	}
}
