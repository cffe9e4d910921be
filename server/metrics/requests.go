package metrics

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Requests counts requests by route, method and status.
type Requests struct {
	all  *tally
	took *spread
}

// NewRequests makes one that has counted nothing.
func NewRequests() Requests {
	return Requests{
		all:  newTally("roost_http_requests_total", "Requests by route, method and status.", "route", "method", "status"),
		took: newSpread("roost_http_request_seconds", "How long answers took, streams aside.", "route", quick),
	}
}

// Count counts an answered request. The route is the pattern, never the path, which names tasks.
func (c Requests) Count(r *http.Request, h http.Header, status int, took time.Duration) {
	route := r.Pattern[strings.Index(r.Pattern, " ")+1:]
	if route == "" {
		route = "refused"
	}
	method := "other"
	if slices.Contains([]string{"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"}, r.Method) {
		method = r.Method
	}
	c.all.add(1, route, method, strconv.Itoa(status))
	if !strings.HasPrefix(h.Get("Content-Type"), "text/event-stream") {
		c.took.add(took, route)
	}
}

// Write prints the counts.
func (c Requests) Write(b *Text) {
	c.all.write(b)
	c.took.write(b)
}
