package wire

import (
	"errors"
	"net/http"
)

// mostMoves is how often a call follows its server to another path.
const mostMoves = 3

// movedError says where a server sends a call on to.
type movedError struct{ to string }

func (e *movedError) Error() string {
	return "the address sends calls on to " + Shorten(e.to, 300) + ", and no key is sent after them: if that is right, use it as the base URL"
}

// Stay is a client's CheckRedirect: a call follows its server within itself only, and
// only where it is sent again as it was. Elsewhere would go a key, of whose headers the
// standard client knows the fewest, and the whole conversation.
func Stay(req *http.Request, via []*http.Request) error {
	from := via[len(via)-1]
	if len(via) > mostMoves || req.Method != from.Method || req.URL.Host != from.URL.Host || req.URL.Scheme != from.URL.Scheme {
		return &movedError{req.URL.String()}
	}
	return nil
}

// moved is what a refused move is for the caller, nil when err is something else.
func moved(err error) *movedError {
	var e *movedError
	if !errors.As(err, &e) {
		return nil
	}
	return e
}
