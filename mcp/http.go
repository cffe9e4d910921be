package mcp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"
)

// goodbye is how long a server may take to hear that a session is over.
const goodbye = time.Second

// client asks one server over HTTP with the headers of its definition.
type client struct {
	next    *http.Transport
	at      *url.URL
	headers map[string]string
}

func newClient(endpoint string, headers map[string]string) (*http.Client, *http.Transport, error) {
	at, err := url.Parse(endpoint)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, nil, errors.New("its url is no http or https address") // it is not shown: it may hold a key
	}
	next := http.DefaultTransport.(*http.Transport).Clone() //nolint:errorlint,forcetypeassert // it is what the library says it is
	next.ResponseHeaderTimeout = 0
	return &http.Client{Transport: &client{next, at, headers}}, next, nil
}

// RoundTrip adds the headers for the server itself: a redirect to somebody else does
// not take them along.
func (c *client) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.URL.Host == c.at.Host && r.URL.Scheme == c.at.Scheme {
		for name, value := range c.headers {
			r.Header.Set(name, value)
		}
	}
	if r.Method != http.MethodDelete {
		return c.next.RoundTrip(r)
	}
	ctx, cancel := context.WithTimeout(r.Context(), goodbye)
	res, err := c.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	res.Body = bounded{res.Body, cancel}
	return res, nil
}

// bounded frees what bounds a body when that is closed.
type bounded struct {
	io.ReadCloser
	free context.CancelFunc
}

func (b bounded) Close() error {
	defer b.free()
	return b.ReadCloser.Close()
}
