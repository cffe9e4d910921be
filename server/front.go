package server

import (
	_ "embed"
	"io"
	"net/http"
	"strings"
)

// frontPage is what a browser sees first. Its two parts are for those who are logged in, and for others; a line of dashes
// separates them from each other and from what both see.
//
//go:embed front.html
var frontPage string

// front answers GET /. It needs no token and holds nothing of any task: it names the program, and where to go from here.
func (s *Server) front(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(frontPage, "----\n")
	page := parts[0] + parts[2]
	if in, _ := s.door.knows(r); in {
		page = parts[0] + parts[1]
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	_, _ = io.WriteString(w, page) // the client may be gone
}
