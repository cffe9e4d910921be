package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/lazyregexp"
	"github.com/roost-dev/roost/llm"
)

// KindOfStatus classifies an HTTP status with the provider's message. Providers
// report "the prompt is too long" as an ordinary 400, so the wording decides there.
func KindOfStatus(status int, message string) llm.Kind {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return llm.Auth
	case status == http.StatusRequestEntityTooLarge:
		return llm.ContextOverflow
	case status <= http.StatusBadRequest && IsOverflow(message): // some servers refuse with the status 200
		return llm.ContextOverflow
	case status == http.StatusTooManyRequests:
		return llm.RateLimited
	case status == 529, status == http.StatusServiceUnavailable:
		return llm.Overloaded
	case status >= 500, status == http.StatusRequestTimeout:
		return llm.Server
	}
	return llm.Invalid
}

// overflow lists providers' wordings for "too long", in lower case.
var overflow = []string{
	"prompt is too long", "prompt too long",
	"input is too long",
	"input length and `max_tokens` exceed context",
	"exceed context limit",
	"exceeds the context", "exceed the context",
	"exceeds the available context", // llama.cpp
	"maximum model length",          // vLLM
	"maximum prompt length",         // xAI
	"exceeded model token limit",    // Moonshot
	"context length", "maximum context",
	"context_length_exceeded",
	"context window",
	"too many tokens", "too many total text bytes",
	"exceeds the maximum number of tokens",
	"tokens exceed",
	"request_too_large",
	"reduce the length",
}

// IsOverflow reports whether a provider's message means that the request is too
// long for the model.
func IsOverflow(message string) bool {
	m := strings.ToLower(message)
	return slices.ContainsFunc(overflow, func(s string) bool { return strings.Contains(m, s) })
}

// RetryAfter reads retry-after-ms (milliseconds) or retry-after (seconds, or a date). It returns 0 when the header is
// missing, invalid or in the past.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if d, ok := parseScaled(h.Get("Retry-After-Ms"), time.Millisecond); ok && d > 0 {
		return d
	}
	v := h.Get("Retry-After")
	if d, ok := parseScaled(v, time.Second); ok {
		return d
	}
	t, _ := http.ParseTime(v) // without a date, a time long ago
	return max(0, t.Sub(now))
}

func parseScaled(v string, unit time.Duration) (time.Duration, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
	if err != nil || f != f {
		return 0, false
	}
	// A day is more than any caller waits and far from overflowing a Duration.
	return time.Duration(min(max(f, 0), float64(24*time.Hour/unit)) * float64(unit)), true
}

// UnreadableEvent returns the error for an event of a stream that is not the JSON that the API documents.
func UnreadableEvent(provider string, data []byte) *llm.Error {
	return &llm.Error{
		Provider: provider,
		Kind:     llm.Server,
		Message:  "an event of the stream cannot be read: " + Shorten(string(data), 200),
	}
}

// TransportError classifies a failure to reach the provider or to read from it. started: the answer had begun, so a
// broken connection means a cut reply. It returns the context's cause unchanged, so that callers can test for
// context.Canceled.
func TransportError(ctx context.Context, provider string, err error, started bool) error {
	cause := context.Cause(ctx)
	redirect, redirects := errors.AsType[*redirectError](err)
	switch {
	case errors.Is(cause, ErrIdle):
		kind := llm.Network
		if started {
			kind = llm.Cut
		}
		return &llm.Error{Provider: provider, Kind: kind, Message: ErrIdle.Error(), Err: ErrIdle}
	case cause != nil:
		return cause
	case redirects:
		return &llm.Error{Provider: provider, Kind: llm.Invalid, Message: redirect.Error()}
	case errors.Is(err, ErrTooLarge), errors.Is(err, ErrDamaged):
		return &llm.Error{Provider: provider, Kind: llm.Server, Message: err.Error(), Err: err}
	case started:
		return &llm.Error{Provider: provider, Kind: llm.Cut, Message: "the stream ended before the reply did", Err: err}
	}
	message, cause := causeOf(err)
	return &llm.Error{Provider: provider, Kind: llm.Network, Message: message, Err: cause}
}

// keyShape matches texts that look like API keys of the known providers.
var keyShape = lazyregexp.New(`\b(?:sk|pk|rk)-[A-Za-z0-9_\-]{12,}|\bAIza[A-Za-z0-9_\-]{20,}`)

// Redact removes the key, and anything that looks like a key, from a text that may be shown or stored: proxies echo
// headers and keys in their error pages. In a text that Shorten cut, it also removes the beginning of a key at the
// cut.
func Redact(text, key string) string {
	if len(key) >= 4 {
		text = strings.ReplaceAll(text, key, "[key]")
		if body, cut := strings.CutSuffix(text, ellipsis); cut {
			for n := min(len(key)-1, len(body)); n >= 4; n-- {
				if strings.HasSuffix(body, key[:n]) {
					text = body[:len(body)-n] + "[key]" + ellipsis
					break
				}
			}
		}
	}
	return keyShape().ReplaceAllString(text, "[key]")
}

// ellipsis marks where api.Shorten cut.
const ellipsis = "…"

// Shorten cuts a provider's error page to a length that fits a terminal.
func Shorten(text string, max int) string {
	return api.Shorten(strings.Join(strings.Fields(text), " "), max)
}

// proxyError is a proxy's refusal to connect to the provider.
type proxyError struct{ proxy, status string }

func (e *proxyError) Error() string { return "the proxy " + e.proxy + " answered " + e.status }

// causeOf finds the reason why a request got no answer: a message that names the likely reason, and the error, which
// wraps a cause of package llm if it is known. The message does not repeat the address of the request, which may hold
// a key.
func causeOf(err error) (message string, cause error) {
	if outer, is := errors.AsType[*url.Error](err); is {
		err = outer.Err
	}
	known := func(cause error, format string, args ...any) (string, error) {
		return fmt.Sprintf(format, args...), fmt.Errorf("%w: %w", cause, err)
	}
	op, _ := errors.AsType[*net.OpError](err)
	name, unknownName := errors.AsType[*net.DNSError](err)
	refusal, byProxy := errors.AsType[*proxyError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case byProxy:
		return known(llm.ErrProxy, "%s: HTTPS_PROXY and NO_PROXY name the proxies", refusal)
	case op != nil && op.Op == "proxyconnect":
		return known(llm.ErrProxy, "the proxy cannot be reached (%v): HTTPS_PROXY, HTTP_PROXY and NO_PROXY name the proxies", op.Err)
	case unknownName && name.IsNotFound:
		return known(llm.ErrUnknownHost, "the host %s is not known: its name is misspelt, or this machine is offline", name.Name)
	case unknownName:
		return known(llm.ErrOffline, "the name %s could not be looked up (%s): this machine may be offline", name.Name, name.Err)
	case errors.Is(err, syscall.ECONNREFUSED) && op != nil && isLoopback(op.Addr):
		return known(llm.ErrNotRunning, "connection refused: is Ollama, or your model server, running at %s?", op.Addr)
	case errors.Is(err, syscall.ECONNREFUSED) && op != nil:
		return known(llm.ErrRefused, "connection refused by %s: is the model server running there, and is the port right?", op.Addr)
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETDOWN):
		return known(llm.ErrOffline, "the network cannot be reached (%v): this machine may be offline", err)
	case untrusted:
		return known(llm.ErrCertificate, "the server's certificate is not trusted (%v): the address may be wrong, or a proxy of your "+
			"network answers with a certificate of its own", err)
	case noTLS, errors.Is(err, http.ErrSchemeMismatch):
		return known(llm.ErrNotHTTP, "the server speaks no TLS at this address: use http:// if it is on your own machine or network")
	case strings.Contains(err.Error(), "malformed HTTP"):
		return known(llm.ErrNotHTTP, "what listens at this address does not speak HTTP: the port belongs to another service, or the "+
			"server wants https://")
	}
	return err.Error(), err
}

func isLoopback(a net.Addr) bool {
	tcp, is := a.(*net.TCPAddr)
	return is && tcp.IP.IsLoopback()
}

// wantsTLS reports whether a refusal means that an http:// request reached a server that speaks https://. It
// recognises the messages of Go's server and of nginx. The server did not read the request, so no change of the
// request helps.
func wantsTLS(status int, message string) bool {
	return status == http.StatusBadRequest &&
		(strings.Contains(message, "HTTP request to an HTTPS server") || strings.Contains(message, "plain HTTP request was sent to HTTPS port"))
}

// lacksCredit reports whether a refusal is about money: no wait and no change of the request helps.
func lacksCredit(status int, code, message string) bool {
	message = strings.ToLower(message)
	return status == http.StatusPaymentRequired || code == "insufficient_quota" || code == "billing_error" ||
		strings.Contains(message, "credit balance is too low") || strings.Contains(message, "insufficient credit") ||
		strings.Contains(message, "insufficient balance")
}
