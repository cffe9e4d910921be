package server

import (
	"archive/tar"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/export"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/store"
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
	var refs []store.Ref
	for _, id := range ids {
		ref, err := s.opt.Store.Find(a.Context(), id)
		if err != nil {
			return s.problemFor(a, err)
		}
		if !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	var v *store.View
	outcome := api.Exported{Damaged: []api.Damage{}}
	if format != "archive" { // which records for each task whether it could be read
		var err error
		if v, err = s.opt.Store.Read(a.Context(), refs[0]); err != nil {
			return s.problemFor(a, err)
		}
		defer v.Close()
		outcome.Damaged = append(outcome.Damaged, v.Summary.Damaged...)
	} else if p := s.noneReadable(a, refs); p != nil {
		return p
	}
	o := export.Options{}
	if a.text["redact"] != "false" {
		o.Mask = redact.New(s.opt.Secrets...)
	}
	h := w.Header()
	h.Set("Content-Type", exportMedia[format])
	h.Set("Content-Disposition", mime.FormatMediaType("attachment",
		map[string]string{"filename": export.FileName(refs[0].ID) + "." + cmp.Or(packed[format], format)}))
	h.Set("Roost-Task-Id", refs[0].ID)
	h.Set("Trailer", "Roost-Export")
	out := &slowReader{w, http.NewResponseController(w), s.opt.WriteTimeout}
	got, err := s.write(a.Context(), out, v, refs, format, o, &outcome)
	if err != nil {
		s.opt.Log.Warn("export failed", "path", a.URL.Path, "request_id", h.Get(requestID), "error", err.Error())
		if a.RemoteAddr == client.LocalPeer {
			panic(err) // the user of this process reads why
		}
		panic(http.ErrAbortHandler) // half a file must not look like a whole one
	}
	outcome.Masked, outcome.Unread, outcome.Skipped = got.Masked, []api.Unread{}, append([]string{}, got.Skipped...)
	for _, g := range got.Unread {
		outcome.Unread = append(outcome.Unread, api.Unread(g))
	}
	if doc, err := json.Marshal(outcome); err == nil {
		h.Set("Roost-Export", url.QueryEscape(string(doc)))
	}
	return nil
}

// noneReadable is the problem of an archive for which no task can be read; nil when one can.
func (s *Server) noneReadable(a *asked, refs []store.Ref) *api.Problem {
	var wrong []api.Wrong
	for _, ref := range refs {
		v, err := s.opt.Store.Read(a.Context(), ref)
		if err == nil {
			v.Close()
			return nil
		}
		wrong = append(wrong, api.Wrong{Parameter: ref.Source + ":" + ref.ID, Detail: err.Error()})
		if len(refs) == 1 {
			p := s.problemFor(a, err)
			p.Errors = wrong
			return p
		}
	}
	p := problem(http.StatusUnprocessableEntity, "damaged", "None of the tasks can be read",
		wrong[0].Parameter+": "+wrong[0].Detail, "roost doctor")
	p.Errors = wrong
	return p
}

func (s *Server) write(ctx context.Context, w io.Writer, v *store.View, refs []store.Ref, format string, o export.Options,
	outcome *api.Exported) (export.Report, error) {
	switch format {
	case "html":
		return export.HTML(ctx, w, v, o)
	case "json":
		return export.JSON(ctx, w, v, o)
	case "roo":
		return tarOf(ctx, w, v)
	case "archive":
		return export.Archive(ctx, w, func(yield func(*store.View, error) bool) {
			for _, ref := range refs {
				one, err := s.opt.Store.Read(ctx, ref)
				if err != nil {
					outcome.Failed = append(outcome.Failed, api.NotExported{ID: ref.ID, Source: ref.Source, Problem: err.Error()})
					continue
				}
				outcome.Damaged = append(outcome.Damaged, one.Summary.Damaged...)
				more := yield(one, nil)
				one.Close()
				if !more {
					return
				}
			}
		})
	}
	return export.Markdown(ctx, w, v, o)
}

// tarOf writes Roo's folder of a task. It is made on disk first: it has four files, and
// each is checked when it is whole.
func tarOf(ctx context.Context, w io.Writer, v *store.View) (export.Report, error) {
	temp, err := os.MkdirTemp("", "roost-export-")
	if err != nil {
		return export.Report{}, err
	}
	defer os.RemoveAll(temp)
	dir := filepath.Join(temp, "task")
	r, err := export.Folder(ctx, dir, v)
	if err != nil {
		return r, err
	}
	t := tar.NewWriter(w)
	if err := t.AddFS(os.DirFS(dir)); err != nil {
		return r, err
	}
	return r, t.Close()
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
