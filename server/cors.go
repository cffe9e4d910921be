package server

import (
	"net/http"
	"slices"
	"strings"
)

// Pages of other origins may send requests only if the server was given their origins. They need the token, as programs
// do. The cookie does not count for them, so that naming an origin does not let its pages act for every logged-in
// user.

const (
	corsMethods = "GET, HEAD, POST, PATCH, DELETE"
	corsHeaders = "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Prefer, X-Request-Id"
	corsExposed = "ETag, Location, Retry-After, Roost-Task-Id, Roost-Run-Id, Idempotent-Replayed, X-Request-Id"
)

// page reports whether a request comes from a page of a named origin.
func (s *Server) page(r *http.Request) bool {
	return slices.Contains(s.opt.Origins, r.Header.Get("Origin")) // "" is never in the list
}

// cors sends the headers that allow a page of a named origin, and answers a preflight request.
func (s *Server) cors(w http.ResponseWriter, r *http.Request) (answered bool) {
	if !s.page(r) || !s.known(r.Host) {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		h.Set("Access-Control-Expose-Headers", corsExposed)
		return false
	}
	h.Set("Access-Control-Allow-Methods", corsMethods)
	h.Set("Access-Control-Allow-Headers", corsHeaders)
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// ValidOrigin reports whether a text is an origin as browsers send it: a scheme, a host and a port that is not the default
// one. A pattern is not an origin.
func ValidOrigin(text string) bool {
	scheme, host, ok := strings.Cut(text, "://")
	if !ok || scheme != "http" && scheme != "https" || host == "" || strings.ToLower(text) != text {
		return false
	}
	return !strings.ContainsAny(host, "/*?#@ \t,") && !(scheme == "http" && strings.HasSuffix(host, ":80")) &&
		!(scheme == "https" && strings.HasSuffix(host, ":443"))
}
