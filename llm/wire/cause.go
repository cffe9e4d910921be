package wire

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/roost-dev/roost/llm"
)

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
