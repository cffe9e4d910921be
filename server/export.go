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

	"github.com/roost-dev/roost/export"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
)

// exportMedia are the forms of an export.
var exportMedia = map[string]string{
	"md": "text/markdown; charset=utf-8", "html": "text/html; charset=utf-8", "json": jsonMedia, "roo": "application/x-tar", "archive": "application/zip",
}

// packed are the endings of forms that are not called as they end.
var packed = map[string]string{"roo": "tar", "archive": "zip"}

func exportRoutes() []route {
	return []route{{
		path: "/v1/tasks/{id}/export", summary: "The task as a file: md, html and json mask secrets, roo (a tar of Roo's files) and archive (a zip) are exact. The trailer Roost-Export says, percent-encoded, what was masked and what could not be read",
		media: "application/octet-stream", forms: []string{"text/markdown", "text/html", jsonMedia, "application/x-tar", "application/zip"}, serve: (*Server).export, params: []param{
			{name: "format", kind: "word", words: []string{"md", "html", "json", "roo", "archive"}, doc: "the form; md when none is named"},
			{name: "redact", kind: "word", words: []string{"true", "false"}, doc: "false leaves secrets as they are"},
			{name: "also", kind: "text", doc: "ids of more tasks for an archive, joined by commas"},
		},
	}}
}

// export writes a task in another form, as it is made: memory does not grow with it.
func (s *Server) export(w http.ResponseWriter, a *asked) *Problem {
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
			return problem(http.StatusUnprocessableEntity, "validation_failed", "A parameter is wrong", "also: only an archive holds several tasks")
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
	v, err := s.opt.Store.Read(a.Context(), refs[0])
	if err != nil {
		return s.problemFor(a, err)
	}
	defer v.Close()
	o := export.Options{}
	if a.text["redact"] != "false" {
		o.Mask = redact.New(s.opt.Secrets...)
	}
	h := w.Header()
	h.Set("Content-Type", exportMedia[format])
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": export.FileName(v.Ref.ID) + "." + cmp.Or(packed[format], format)}))
	h.Set("Roost-Task-Id", v.Ref.ID)
	h.Set("Trailer", "Roost-Export")
	out := &slowReader{w, http.NewResponseController(w), s.opt.WriteTimeout}
	told := report.Exported{Damaged: append([]store.Damage{}, v.Summary.Damaged...)}
	got, err := s.write(a.Context(), out, v, refs, format, o, &told)
	if err != nil {
		s.opt.Log.Warn("export failed", "path", a.URL.Path, "request_id", h.Get(requestID), "error", err.Error())
		panic(http.ErrAbortHandler) // half a file must not look like a whole one
	}
	told.Masked, told.Unread, told.Skipped = got.Masked, []report.Unread{}, append([]string{}, got.Skipped...)
	for _, g := range got.Unread {
		told.Unread = append(told.Unread, report.Unread(g))
	}
	if doc, err := json.Marshal(told); err == nil {
		h.Set("Roost-Export", url.QueryEscape(string(doc)))
	}
	return nil
}

func (s *Server) write(ctx context.Context, w io.Writer, v *store.View, refs []store.Ref, format string, o export.Options, told *report.Exported) (export.Report, error) {
	switch format {
	case "html":
		return export.HTML(ctx, w, v, o)
	case "json":
		return export.JSON(ctx, w, v, o)
	case "roo":
		return tarOf(ctx, w, v)
	case "archive":
		return export.Archive(ctx, w, func(yield func(*store.View, error) bool) {
			for i, ref := range refs {
				if i == 0 {
					if !yield(v, nil) {
						return
					}
					continue
				}
				one, err := s.opt.Store.Read(ctx, ref)
				if err != nil {
					told.Failed = append(told.Failed, report.NotExported{ID: ref.ID, Source: ref.Source, Problem: err.Error()})
					continue
				}
				told.Damaged = append(told.Damaged, one.Summary.Damaged...)
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
