package server

import (
	"errors"
	"io/fs"
	"mime"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/server/legacy"
)

// lament writes a problem, and logs those that are the server's own.
func (s *Server) lament(w http.ResponseWriter, r *http.Request, p *api.Problem) {
	if p.Cause != nil && r.Context().Err() == nil {
		s.opt.Log.Warn("failed", "path", r.URL.Path, "request_id", w.Header().Get(requestID), "error", p.Cause.Error())
	}
	if legacy.IsPath(r.URL.Path) {
		legacy.Fail(w, r, p, s.opt.Now())
		return
	}
	fail(w, r, p)
}

// answer answers a request of a route.
func (s *Server) answer(rt *route, w http.ResponseWriter, r *http.Request) *api.Problem {
	media := rt.media
	if media == "" {
		media = jsonMedia
	}
	if accept := r.Header.Values("Accept"); !accepts(accept, media) && !(rt.stream && accepts(accept, streamMedia)) &&
		!slices.ContainsFunc(rt.forms, func(form string) bool { return accepts(accept, form) }) {
		return problem(http.StatusNotAcceptable, "not_acceptable", "There is no such form of it", "this route gives "+media,
			"Accept: "+media)
	}
	if p := badName(rt, r); p != nil {
		return p
	}
	a := &asked{Request: r, route: rt, id: r.PathValue("id")}
	var err error
	if a.values, err = decode(r.URL.RawQuery, paramsFor(r, rt.params), s.opt.Now()); err != nil {
		return s.problemFor(a, err)
	}
	if !safe(r.Method) {
		if err = s.take(w, a); err != nil {
			return s.problemFor(a, err)
		}
	}
	switch {
	case rt.waits && s.elsewhere(w, a): // the process that works on it knows first
		return nil
	case rt.serve != nil:
		return rt.serve(s, w, a)
	case rt.act != nil:
		return s.change(w, a)
	case !rt.open:
		select { // each reading costs memory, so their number is bounded
		case s.readings <- struct{}{}:
			defer func() { <-s.readings }()
		case <-r.Context().Done():
			return s.problemFor(a, r.Context().Err())
		}
	}
	doc, err := rt.document(s, a)
	if err == nil {
		err = respond(w, r, http.StatusOK, doc)
	}
	if err != nil {
		return s.problemFor(a, err)
	}
	return nil
}

// paramsFor are the parameters that a request may give. A client of this process may take a whole list.
func paramsFor(r *http.Request, params []param) []param {
	if r.RemoteAddr != client.LocalPeer {
		return params
	}
	params = slices.Clone(params)
	for i := range params {
		if params[i].name == limitParam.name {
			params[i].most = 0
		}
	}
	return params
}

// problemFor is the problem of an error for the client.
func (s *Server) problemFor(a *asked, err error) *api.Problem {
	p := s.problemOf(a.Context(), err, a.id)
	if p.Cause != nil {
		err = p.Cause
	}
	if p.Code == "internal" && a.RemoteAddr == client.LocalPeer { // the user of this process may read what else goes to the log
		p.Detail = err.Error()
		if at := (*fs.PathError)(nil); errors.As(err, &at) && filepath.IsAbs(at.Path) {
			p.Title, p.Suggestions = "open "+at.Path, []string{"ls -ld " + at.Path + "  # what it is, and who may read it"}
		}
	}
	if a.id != "" && p.Task == "" {
		p.Task = a.id
	}
	return p
}

// respond writes a document, or 304 when the client has it.
func respond(w http.ResponseWriter, r *http.Request, status int, doc any) error {
	body, err := bytesOf(doc)
	if err != nil {
		return err
	}
	h := w.Header()
	tag := tagOf(doc, body)
	h.Set("ETag", tag)
	if status == http.StatusOK && matches(r.Header.Values("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Type", jsonMedia)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // it fails when the client has disconnected
	}
	return nil
}

// accepts reports whether an Accept header allows a media type; no header allows all.
func accepts(headers []string, media string) bool {
	all := strings.Join(headers, ",")
	if strings.TrimSpace(all) == "" {
		return true
	}
	family, _, _ := strings.Cut(media, "/")
	best, taken := -1, false
	for _, one := range strings.Split(all, ",") {
		name, params, err := mime.ParseMediaType(one)
		if err != nil {
			continue
		}
		how := slices.Index([]string{"*/*", family + "/*", media}, name) // the most specific one counts
		if how < 0 || how < best {
			continue
		}
		q, err := strconv.ParseFloat(params["q"], 64)
		best, taken = how, err != nil || q > 0
	}
	return taken
}

// wantsStream reports whether an Accept header prefers events to a document.
func wantsStream(headers []string) bool {
	all := strings.Join(headers, ",")
	return strings.Contains(all, streamMedia) && accepts(headers, streamMedia) && !strings.Contains(all, jsonMedia)
}
