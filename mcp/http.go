package mcp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
)

// client sends requests to one server over HTTP with the headers of its definition, for as
// long as the connection to that server is open.
type client struct {
	next    *http.Transport
	at      *url.URL
	headers map[string]string
	life    context.Context //nolint:containedctx // the connection's own life, not a request's
}

func newClient(life context.Context, endpoint string, headers map[string]string) (*http.Client, *http.Transport, error) {
	at, err := url.Parse(endpoint)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, nil, errors.New("its url is no http or https address") // it is not shown: it may hold a key
	}
	next := http.DefaultTransport.(*http.Transport).Clone() //nolint:errorlint,forcetypeassert // the library documents this type
	next.ResponseHeaderTimeout = 0
	return &http.Client{Transport: &client{next, at, headers, life}}, next, nil
}

// RoundTrip adds the headers for the server itself only: a redirect to another server
// does not carry them. A request ends with the connection: the library waits for some of
// its own, such as the notice that a call is cancelled, longer than a user would.
func (c *client) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(c.life, cancel)
	free := func() { stop(); cancel() }
	r = r.Clone(ctx)
	if r.URL.Host == c.at.Host && r.URL.Scheme == c.at.Scheme {
		for name, value := range c.headers {
			r.Header.Set(name, value)
		}
	}
	res, err := c.next.RoundTrip(r)
	if err != nil {
		free()
		return nil, err
	}
	res.Body = bounded{res.Body, free}
	return res, nil
}

// bounded is a body that frees its context when it is closed.
type bounded struct {
	io.ReadCloser
	free func()
}

func (b bounded) Close() error {
	defer b.free()
	return b.ReadCloser.Close()
}
