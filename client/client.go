package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Options are what a client needs besides the address.
type Options struct {
	Token string
	HTTP  *http.Client // nil: the client makes one

	// Lost is called when an event stream breaks, with the reason and the time until the client connects again.
	// nil: no call.
	Lost func(err error, again time.Duration)
}

// Client sends requests to one server. It is safe for concurrent use.
type Client struct {
	base  string // the address, for errors
	url   url.URL
	opt   Options
	http  *http.Client
	local *local
	sleep func(context.Context, time.Duration) error // tests shorten it
}

// New makes a client for http://HOST, https://HOST, either with a path that the API is below, or unix:/PATH. It
// sends nothing yet.
func New(base string, o Options) (*Client, error) {
	c := &Client{base: base, opt: o, http: o.HTTP, sleep: sleep}
	if path, ok := strings.CutPrefix(base, "unix:"); ok {
		path = strings.TrimPrefix(path, "//") // unix:///run/x means unix:/run/x
		if !strings.HasPrefix(path, "/") {
			return nil, fmt.Errorf("server %q: want unix: and an absolute path", base)
		}
		c.url = url.URL{Scheme: "http", Host: "localhost"}
		c.http = plain(func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		})
		return c, nil
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("server %q: want http://HOST:PORT, https://HOST or unix:/PATH", base)
	}
	if u.User != nil {
		return nil, fmt.Errorf("server %q: remove the name and password: the server takes its token alone", u.Redacted())
	}
	c.url = url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimSuffix(u.Path, "/")}
	if c.http == nil {
		c.http = plain(nil)
	}
	return c, nil
}

// Local makes a client for a server in this process: it calls the handler without a network.
func Local(h http.Handler, token string) *Client {
	l := &local{handler: h}
	return &Client{
		base: "of this process", url: url.URL{Scheme: "http", Host: "localhost"}, opt: Options{Token: token}, local: l, sleep: sleep,
		http: &http.Client{Transport: l, CheckRedirect: stay},
	}
}

// Base is the address that was given to New.
func (c *Client) Base() string { return c.base }

// Close closes idle connections. Open streams stay open.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// plain is an HTTP client that follows no redirect: its token is for one server.
func plain(dial func(context.Context, string, string) (net.Conn, error)) *http.Client {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dial, ForceAttemptHTTP2: dial == nil,
		MaxIdleConnsPerHost: 8, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
		ResponseHeaderTimeout: 0, // a request may wait for the end of a run
	}
	if dial == nil {
		t.DialContext = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	} else {
		t.Proxy = nil
	}
	return &http.Client{Transport: t, CheckRedirect: stay}
}

func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// sleep waits for a time, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// unsent reports whether a request certainly did not reach a server.
func unsent(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial"
}

// local calls a handler as a network would. The handler runs in a goroutine that the body of the answer owns: closing
// the body ends the request and waits for the handler.
type local struct{ handler http.Handler }
