package llm

import (
	"errors"
	"slices"
)

// The known causes of an Error, which its Err wraps: the things for a person to check.
var (
	ErrNotRunning  = errors.New("nothing listens on this machine at that port")
	ErrRefused     = errors.New("the other machine refuses the connection")
	ErrUnknownHost = errors.New("the host is not known")
	ErrCertificate = errors.New("the server's certificate is not trusted")
	ErrNotHTTP     = errors.New("the server speaks another protocol")
	ErrProxy       = errors.New("the proxy does not let the request through")
	ErrOffline     = errors.New("the network cannot be reached")
	ErrCredit      = errors.New("the account has no credit left")
)

// once are causes for which another attempt is useless; twice those for which it helps now and then.
var (
	once  = []error{ErrCertificate, ErrNotHTTP, ErrProxy, ErrCredit}
	twice = []error{ErrNotRunning, ErrUnknownHost}
)

// Tries returns the number of attempts, the first included, that a request is worth which fails with e: at most most.
func (e *Error) Tries(most int) int {
	is := func(cause error) bool { return errors.Is(e.Err, cause) }
	switch {
	case slices.ContainsFunc(once, is):
		return min(1, most)
	case slices.ContainsFunc(twice, is):
		return min(2, most)
	}
	return most
}
