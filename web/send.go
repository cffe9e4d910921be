package web

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/roost-dev/roost/api"
)

// policy restricts pages: they load only from their own server, and run only its scripts.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
	"font-src 'self'; manifest-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types roost"

// protect sets the headers of every answer, even if another server than Roost's serves the pages.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
}

// page is what the layout shows.
type page struct {
	Kind   string // data-page
	Title  string
	Status int    // of HTTP; 0 = 200
	Cursor string // in the stream of all tasks, from before the page was read: a follower from there misses nothing
	Body   templ.Component
}

// send writes a page.
func (w *Web) send(out http.ResponseWriter, r *http.Request, p *page) {
	protect(out.Header())
	var body bytes.Buffer
	if err := w.layout(p).Render(r.Context(), &body); err != nil {
		http.Error(out, "the page could not be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	write(out, r, cmp.Or(p.Status, http.StatusOK), "text/html; charset=utf-8", body.Bytes())
}

// smallest is the size in bytes from which an answer is compressed.
const smallest = 1 << 10

// write sends an answer, compressed if the browser accepts that.
func write(out http.ResponseWriter, r *http.Request, status int, media string, body []byte) {
	h := out.Header()
	h.Set("Content-Type", media)
	h.Add("Vary", "Accept-Encoding")
	if len(body) >= smallest && takesGzip(r) {
		h.Set("Content-Encoding", "gzip")
		body = pack(body)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	out.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = out.Write(body) // it fails if the browser has disconnected
	}
}

func takesGzip(r *http.Request) bool {
	for one := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, q, _ := strings.Cut(strings.TrimSpace(one), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") && strings.ReplaceAll(q, " ", "") != "q=0" {
			return true
		}
	}
	return false
}

func pack(body []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(body) // into memory
	_ = z.Close()
	return out.Bytes()
}

// Refuse answers with a page that shows the problem and what to do.
func (w *Web) Refuse(out http.ResponseWriter, r *http.Request, p *api.Problem) {
	shown := &page{Kind: "problem", Title: p.Title, Status: p.Status, Body: problemPage(p)}
	if p.Status == http.StatusUnauthorized {
		shown.Kind, shown.Title, shown.Body = "login", "Log in", w.loginPage(p)
	}
	if p.Allow != "" {
		out.Header().Set("Allow", p.Allow)
	}
	w.send(out, r, shown)
}
