package wire_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// A server that sends a call elsewhere does not get the key sent there: Go's client takes
// away only the headers that it knows for secret, and those of most providers are not.
func TestAKeyIsNotSentToAnotherHost(t *testing.T) {
	var asked atomic.Int32
	var seen atomic.Value
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		seen.Store(r.Header.Get("X-Api-Key"))
	}))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		c, ask := asks(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, strings.Replace(other.URL, "127.0.0.1", "localhost", 1)+"/v1", status)
		})
		c.Header = http.Header{"X-Api-Key": {"secret-key"}}
		c.APIKey = "secret-key"
		_, err := ask(context.Background(), c)
		failed, is := err.(*llm.Error) //nolint:errorlint // ours, not wrapped
		if !is || failed.Kind != llm.Invalid || failed.Retryable() || !strings.Contains(failed.Message, "localhost") {
			t.Errorf("%d: got %v, want is and failed.Kind = llm.Invalid and not failed.Retryable() and strings.Contains(failed.Message, \"localhost\")",
				status, err)
		}
	}
	if asked.Load() > 0 {
		t.Errorf("the other host was asked %d times, with the key %q", asked.Load(), seen.Load())
	}
}

// Within one host a server may send calls to another path, as with a slash at the end.
func TestACallFollowsItsOwnHost(t *testing.T) {
	c, ask := asks(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/moved" {
			http.Redirect(w, r, "/moved", http.StatusPermanentRedirect)
			return
		}
		said("data: end\n\n")(w, r)
	})
	if got, err := ask(context.Background(), c); err != nil || len(got) != 1 || got[0] != "end" {
		t.Errorf("got %q, %v, want no error and len(got) = 1 and got[0] = \"end\"", got, err)
	}
}

// A key that is cut by the end of an error page does not get out in part.
func TestAKeyAtTheCutOfAnErrorPage(t *testing.T) {
	const key = "0123456789abcdef-my-very-own-gateway-key"
	for at := 440; at < 520; at += 3 {
		c := wire.Call{Provider: *wire.NewProvider(wire.Options{APIKey: key}, wire.Dialect{Name: "p"})}
		err := c.ErrorOf(502, []byte(strings.Repeat("x", at)+" "+key+" and more"))
		if strings.Contains(err.Message, key[:4]) {
			t.Errorf("with %d bytes before it: %q", at, err.Message[at:])
		}
	}
}
