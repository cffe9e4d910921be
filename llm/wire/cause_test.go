package wire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/wire"
)

// refusing is an address of this machine at which nothing listens.
func refusing(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// speaking is the address of a server that greets in a protocol of its own, once it has read a text of the request: who
// is greeted while the request is still being sent fails to send it, and tries once more.
func speaking(t *testing.T, until, greeting string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			var all []byte
			for part := make([]byte, 4096); !bytes.Contains(all, []byte(until)); {
				n, err := c.Read(part)
				if all = append(all, part[:n]...); err != nil {
					break
				}
			}
			_, _ = c.Write([]byte(greeting))
			_, _ = io.Copy(io.Discard, c) // a close with unread bytes would reset the connection, greeting included
			_ = c.Close()
		}
	})
	t.Cleanup(func() { _ = l.Close(); served.Wait() })
	return l.Addr().String()
}

// What keeps a request from its answer is named, and tried again only where that can help.
func TestCauses(t *testing.T) {
	answers := func(status int, header, page string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", header)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(page))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	nobody := refusing(t)
	lookup := func(err *net.DNSError) func(*http.Transport) {
		return func(tr *http.Transport) {
			tr.DialContext = func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
			}
		}
	}
	dialled := func(addr net.IP, errno syscall.Errno) func(*http.Transport) {
		return func(tr *http.Transport) {
			tr.DialContext = func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: addr, Port: 443}, Err: errno}
			}
		}
	}
	through := func(proxy string) func(*http.Transport) {
		return func(tr *http.Transport) {
			tr.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(proxy) }
		}
	}
	for name, c := range map[string]struct {
		url     string
		network func(*http.Transport)
		cause   error
		tries   int
		message string
	}{
		"no server here":      {"http://" + nobody, nil, llm.ErrNotRunning, 2, "is Ollama, or your model server, running at " + nobody + "?"},
		"no server there":     {"https://x.test", dialled(net.IPv4(192, 0, 2, 1), syscall.ECONNREFUSED), llm.ErrRefused, 5, "refused by 192.0.2.1:443"},
		"no such host":        {"https://x.test", lookup(&net.DNSError{Err: "no such host", Name: "x.test", IsNotFound: true}), llm.ErrUnknownHost, 2, "the host x.test is not known"},
		"no answer of DNS":    {"https://x.test", lookup(&net.DNSError{Err: "i/o timeout", Name: "x.test", IsTimeout: true}), llm.ErrOffline, 5, "may be offline"},
		"no network":          {"https://x.test", dialled(net.IPv4(192, 0, 2, 1), syscall.ENETUNREACH), llm.ErrOffline, 5, "may be offline"},
		"certificate":         {secure.URL, nil, llm.ErrCertificate, 1, "certificate is not trusted"},
		"https to http":       {strings.Replace(answers(200, "text/plain", ""), "http:", "https:", 1), nil, llm.ErrNotHTTP, 1, "use http://"},
		"http to https":       {strings.Replace(secure.URL, "https:", "http:", 1), nil, llm.ErrNotHTTP, 1, "wants https://"},
		"another protocol":    {"http://" + speaking(t, "{}", "SSH-2.0-OpenSSH_9.9\r\n"), nil, llm.ErrNotHTTP, 1, "does not speak HTTP"},
		"not TLS either":      {"https://" + speaking(t, "", "220 mail.test ESMTP\r\n"), nil, llm.ErrNotHTTP, 1, "speaks no TLS"},
		"proxy that refuses":  {"https://x.test", through(answers(407, "text/plain", "")), llm.ErrProxy, 1, "answered 407 Proxy Authentication Required"},
		"proxy that is gone":  {"https://x.test", through("http://" + nobody), llm.ErrProxy, 1, "the proxy cannot be reached"},
		"no credit":           {answers(402, "application/json", `{"error":{"message":"Payment required"}}`), nil, llm.ErrCredit, 1, "Payment required"},
		"no credit (400)":     {answers(400, "application/json", `{"error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`), nil, llm.ErrCredit, 1, "credit balance"},
		"no credit (429)":     {answers(429, "application/json", `{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}`), nil, llm.ErrCredit, 1, "quota"},
		"a server that fails": {answers(500, "text/plain", "oops"), nil, nil, 5, "oops"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr, ok := wire.NewTransport().(*http.Transport)
			if !ok {
				t.Fatal("got another transport than the usual one")
			}
			if c.network != nil {
				c.network(tr)
			}
			defer tr.CloseIdleConnections()
			body := new(wire.Body)
			body.Add([]byte("{}"))
			p := wire.NewProvider(wire.Options{HTTPClient: &http.Client{Transport: tr}}, wire.Dialect{Name: "p"})
			call := wire.Call{Provider: *p, URL: c.url + "/v1?key=sk-secret-0123456789ab", Body: body}
			tries := 0
			var failed *llm.Error
			wire.Attempts(t.Context(), wire.Backoff{Sleep: func(context.Context, time.Duration) error { return nil }}, func(_ llm.Chunk, err error) bool {
				return err == nil || errors.As(err, &failed)
			}, func() (bool, error) {
				tries++
				return false, call.Stream(t.Context(), nil)
			})
			if failed == nil {
				t.Fatal("got no error")
			}
			if c.cause != nil && !errors.Is(failed, c.cause) {
				t.Errorf("got the cause %v of %v, want %v", failed.Err, failed, c.cause)
			}
			if tries != c.tries || !strings.Contains(failed.Message, c.message) || strings.Contains(fmt.Sprint(failed, failed.Err), "secret") {
				t.Errorf("got %d attempts and %q, want %d, %q, and no address with a key", tries, failed.Message, c.tries, c.message)
			}
			if failed.Retryable() != (c.tries > 1) {
				t.Errorf("got retryable %v, want %v", failed.Retryable(), c.tries > 1)
			}
		})
	}
}
