package wire

import (
	"errors"
	"net/http"
)

// maxRedirects is how many redirects a call follows.
const maxRedirects = 3

// redirectError is a refused redirect.
type redirectError struct{ to string }

func (e *redirectError) Error() string {
	return "the address redirects to " + Shorten(e.to, 300) + ", and no key is sent there: if that is right, use it as the base URL"
}

// SameServer is a CheckRedirect for http.Client: a call follows a redirect only to the same
// server and with the same method. Another server would receive the whole conversation and
// the key: the standard client removes only the few headers that it knows.
func SameServer(req *http.Request, via []*http.Request) error {
	from := via[len(via)-1]
	if len(via) > maxRedirects || req.Method != from.Method || req.URL.Host != from.URL.Host || req.URL.Scheme != from.URL.Scheme {
		return &redirectError{req.URL.String()}
	}
	return nil
}

// refusedRedirect returns the redirect that err refused, nil when err is something else.
func refusedRedirect(err error) *redirectError {
	var e *redirectError
	if !errors.As(err, &e) {
		return nil
	}
	return e
}
