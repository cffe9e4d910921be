package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

// served is a client of a handler over a real network. It waits for nothing.
func served(t testing.TB, h http.HandlerFunc) *Client {
	t.Helper()
	web := httptest.NewServer(h)
	c := newClient(t, web.URL)
	t.Cleanup(func() {
		c.Close()
		web.CloseClientConnections()
		web.Close()
	})
	return c
}

func newClient(t testing.TB, base string) *Client {
	t.Helper()
	c, err := New(base, Options{Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	c.sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return c
}

func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func say(w http.ResponseWriter, status int, doc any) {
	w.Header().Set("Content-Type", "application/json")
	if p, ok := doc.(Problem); ok {
		w.Header().Set("Content-Type", "application/problem+json")
		p.Status = status
		doc = p
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(doc)
}

// counter counts requests.
type counter struct{ n atomic.Int64 }

func (c *counter) next() int { return int(c.n.Add(1)) }

// cut breaks a connection off without an answer.
func cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}
