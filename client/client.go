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

// Options are what a client needs beside the address.
type Options struct {
	Token string
	HTTP  *http.Client // nil: one of its own

	// Lost is told that an event stream broke, why, and in what time it is tried
	// again. nil: nobody is told.
	Lost func(err error, again time.Duration)
}

// Client asks one server. It is safe for concurrent use.
type Client struct {
	base  string // as errors name it
	url   url.URL
	opt   Options
	http  *http.Client
	local *local
	sleep func(context.Context, time.Duration) error // tests wait less
}

// New makes a client for http://HOST, https://HOST, either with a path below which the
// API lies, or unix:/PATH. Nothing is asked yet.
func New(base string, o Options) (*Client, error) {
	c := &Client{base: base, opt: o, http: o.HTTP, sleep: sleep}
	if path, ok := strings.CutPrefix(base, "unix:"); ok {
		path = strings.TrimPrefix(path, "//") // unix:///run/x is meant as unix:/run/x
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
		return nil, fmt.Errorf("server %q: a name and password in it are of no use; the server wants its token", u.Redacted())
	}
	c.url = url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimSuffix(u.Path, "/")}
	if c.http == nil {
		c.http = plain(nil)
	}
	return c, nil
}

// Local makes a client for a server of this process: the handler is called without a
// network.
func Local(h http.Handler, token string) *Client {
	l := &local{handler: h}
	return &Client{
		base: "of this process", url: url.URL{Scheme: "http", Host: "localhost"}, opt: Options{Token: token}, local: l, sleep: sleep,
		http: &http.Client{Transport: l, CheckRedirect: stay},
	}
}

// Base is the address that New was given.
func (c *Client) Base() string { return c.base }

// Close lets go of connections that nobody uses. Open streams stay open.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// plain is an HTTP client that follows nobody elsewhere: its token is for one server.
func plain(dial func(context.Context, string, string) (net.Conn, error)) *http.Client {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dial, ForceAttemptHTTP2: dial == nil,
		MaxIdleConnsPerHost: 8, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
		ResponseHeaderTimeout: 0, // a run's end is waited for as long as it takes
	}
	if dial == nil {
		t.DialContext = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	} else {
		t.Proxy = nil
	}
	return &http.Client{Transport: t, CheckRedirect: stay}
}

func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// sleep waits, or ends with ctx.
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
