package server

import (
	"cmp"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
)

// exportMedia are the forms of an export.
var exportMedia = map[string]string{
	"md": "text/markdown; charset=utf-8", "html": "text/html; charset=utf-8", "json": jsonMedia, "roo": "application/x-tar",
	"archive": "application/zip",
}

// packed are the endings of forms that are not called as they end.
var packed = map[string]string{"roo": "tar", "archive": "zip"}

func exportRoutes() []route {
	return []route{{
		path: "/v1/tasks/{id}/export", summary: "The task as a file: md, html and json mask secrets, roo (a tar of Roo's " +
			"files) and archive (a zip) are exact. The trailer Roost-Export names, percent-encoded, what was masked and what " +
			"could not be read",
		media: "application/octet-stream", forms: []string{"text/markdown", "text/html", jsonMedia, "application/x-tar",
			"application/zip"}, serve: (*Server).export, params: []param{
			{name: "format", kind: "word", words: []string{"md", "html", "json", "roo", "archive"}, doc: "the form; md when none is named"},
			{name: "redact", kind: "word", words: []string{"true", "false"}, doc: "false leaves secrets as they are"},
			{name: "also", kind: "text", doc: "ids of more tasks for an archive, joined by commas"},
		},
	}}
}

// export writes a task in another form, as it is made: memory does not grow with it.
func (s *Server) export(w http.ResponseWriter, a *asked) *api.Problem {
	select { // see answer
	case s.readings <- struct{}{}:
		defer func() { <-s.readings }()
	case <-a.Context().Done():
		return s.problemFor(a, a.Context().Err())
	}
	format := a.text["format"]
	if format == "" {
		format = "md"
	}
	ids := []string{a.id}
	if also := a.text["also"]; also != "" {
		if format != "archive" {
			return problem(http.StatusUnprocessableEntity, "validation_failed", "A parameter is wrong",
				"also: only an archive holds several tasks")
		}
		ids = append(ids, strings.Split(also, ",")...)
	}
	x, err := s.service.Export(a.Context(), ids, format, a.text["redact"] != "false")
	if err != nil {
		return s.problemFor(a, err)
	}
	defer func() { _ = x.Close() }() // it was only read
	h := w.Header()
	h.Set("Content-Type", exportMedia[format])
	h.Set("Content-Disposition", mime.FormatMediaType("attachment",
		map[string]string{"filename": x.Name + "." + cmp.Or(packed[format], format)}))
	h.Set("Roost-Task-Id", x.Task)
	h.Set("Trailer", "Roost-Export")
	outcome, err := x.Write(a.Context(), &slowReader{w, http.NewResponseController(w), s.opt.WriteTimeout})
	if err != nil {
		s.opt.Log.Warn("export failed", "path", a.URL.Path, "request_id", h.Get(requestID), "error", err.Error())
		if a.RemoteAddr == client.LocalPeer {
			panic(err) // the user of this process reads why
		}
		panic(http.ErrAbortHandler) // half a file must not look like a whole one
	}
	if doc, err := json.Marshal(outcome); err == nil {
		h.Set("Roost-Export", url.QueryEscape(string(doc)))
	}
	return nil
}

// slowReader gives a client time for each write: a whole file may take long.
type slowReader struct {
	w   http.ResponseWriter
	ctl *http.ResponseController
	d   time.Duration
}

func (p *slowReader) Write(b []byte) (int, error) {
	_ = p.ctl.SetWriteDeadline(time.Now().Add(p.d)) // a client of this process has none
	return p.w.Write(b)
}
