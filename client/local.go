package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// IsLocal reports whether the server is in this process.
func (c *Client) IsLocal() bool { return c.local != nil }

// LocalPeer is the address that a handler sees of a client of its own process.
const LocalPeer = "local"

func (l *local) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	in := r.Clone(ctx)
	in.RemoteAddr, in.RequestURI = LocalPeer, r.URL.RequestURI()
	if in.Host == "" {
		in.Host = r.URL.Host
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	out, w := io.Pipe()
	a := &answer{head: http.Header{}, begun: make(chan struct{}), w: w}
	gone, trailer := make(chan struct{}), http.Header{} // the trailer is complete when the body ends
	go func() {
		defer close(gone)
		defer func() {
			err := error(nil)
			if p := recover(); p != nil { // as in net/http, the request fails and not the process
				err = errBroken
				if why, ok := p.(error); ok && !errors.Is(why, http.ErrAbortHandler) {
					err = fmt.Errorf("%w: %w", errBroken, why)
				}
			}
			a.begin(http.StatusOK)
			for _, name := range strings.Split(a.sent.Get("Trailer"), ",") {
				if name = http.CanonicalHeaderKey(strings.TrimSpace(name)); a.head[name] != nil {
					trailer[name] = a.head[name]
				}
			}
			_ = w.CloseWithError(err) // never fails
		}()
		l.handler.ServeHTTP(a, in)
	}()
	// a handler that writes must not wait after its reader has gone
	stop := context.AfterFunc(ctx, func() { _ = w.CloseWithError(context.Cause(ctx)) })
	end := sync.OnceFunc(func() {
		cancel()
		_ = out.Close() // never fails
		<-gone
		stop()
		if r.Body != nil {
			_ = r.Body.Close() // was read from memory
		}
	})
	select {
	case <-a.begun:
	case <-ctx.Done():
		end()
		return nil, context.Cause(ctx)
	}
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.sent, Body: &body{out, end}, ContentLength: -1, Request: r, Trailer: trailer,
	}, nil
}

var errBroken = errors.New("the answer was broken off")

type body struct {
	io.Reader
	end func()
}

func (b *body) Close() error {
	b.end()
	return nil
}

// answer is the ResponseWriter of the handler.
type answer struct {
	head, sent http.Header
	status     int
	once       sync.Once
	begun      chan struct{}
	w          *io.PipeWriter
}

func (a *answer) Header() http.Header { return a.head }

func (a *answer) begin(status int) {
	a.once.Do(func() {
		a.status, a.sent = status, a.head.Clone()
		close(a.begun)
	})
}

func (a *answer) WriteHeader(status int) {
	if status >= 200 { // lower ones are hints
		a.begin(status)
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.begin(http.StatusOK)
	return a.w.Write(p)
}

// Flush sends the header; the reader gets the rest as the handler writes it.
func (a *answer) Flush() { a.begin(http.StatusOK) }
