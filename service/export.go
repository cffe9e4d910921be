package service

import (
	"archive/tar"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/export"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/store"
)

// Export is tasks as a file, ready to be written.
type Export struct {
	Task string // the id of the first task
	Name string // of the file, without its ending

	of     *Service
	format string
	mask   bool
	refs   []store.Ref
	view   *store.View // of a form of one task
	done   api.Exported
}

// Export opens tasks to write them in a form: md, html, json, roo (a tar of Roo's files) or archive, which alone holds
// several tasks. With mask, secrets are masked in the forms that people read. The caller closes the export.
func (s *Service) Export(ctx context.Context, ids []string, format string, mask bool) (*Export, error) {
	x := &Export{of: s, format: format, mask: mask, done: api.Exported{Damaged: []api.Damage{}}}
	for _, id := range ids {
		ref, err := s.store.Find(ctx, id)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(x.refs, ref) {
			x.refs = append(x.refs, ref)
		}
	}
	x.Task, x.Name = x.refs[0].ID, export.FileName(x.refs[0].ID)
	if format == "archive" { // it records for each task whether it could be read
		return x, x.noneReadable(ctx)
	}
	v, err := s.store.Read(ctx, x.refs[0])
	if err != nil {
		return nil, err
	}
	x.view = v
	x.done.Damaged = append(x.done.Damaged, v.Summary.Damaged...)
	return x, nil
}

// Close closes the export.
func (x *Export) Close() error {
	if x.view == nil {
		return nil
	}
	return x.view.Close()
}

// noneReadable is the problem of an archive for which no task can be read; nil when one can.
func (x *Export) noneReadable(ctx context.Context) error {
	var wrong []api.Wrong
	for _, ref := range x.refs {
		v, err := x.of.store.Read(ctx, ref)
		if err == nil {
			return v.Close()
		}
		wrong = append(wrong, api.Wrong{Parameter: ref.Source + ":" + ref.ID, Detail: err.Error()})
		if len(x.refs) == 1 {
			p := x.of.Problem(ctx, err, ref.ID)
			p.Errors = wrong
			return p
		}
	}
	p := problem(http.StatusUnprocessableEntity, "damaged", "None of the tasks can be read",
		wrong[0].Parameter+": "+wrong[0].Detail, "roost doctor")
	p.Errors = wrong
	return p
}

// Write writes the file, and returns what was masked, left out or could not be read.
func (x *Export) Write(ctx context.Context, w io.Writer) (api.Exported, error) {
	o := export.Options{}
	if x.mask {
		o.Mask = redact.New(x.of.opt.Secrets...)
	}
	got, err := x.write(ctx, w, o)
	out := x.done
	out.Masked, out.Unread, out.Skipped = got.Masked, []api.Unread{}, append([]string{}, got.Skipped...)
	for _, g := range got.Unread {
		out.Unread = append(out.Unread, api.Unread(g))
	}
	return out, err
}

func (x *Export) write(ctx context.Context, w io.Writer, o export.Options) (export.Report, error) {
	switch x.format {
	case "html":
		return export.HTML(ctx, w, x.view, o)
	case "json":
		return export.JSON(ctx, w, x.view, o)
	case "roo":
		return tarOf(ctx, w, x.view)
	case "archive":
		return export.Archive(ctx, w, x.readable(ctx))
	}
	return export.Markdown(ctx, w, x.view, o)
}

// readable are the tasks of an archive; it notes those that cannot be read.
func (x *Export) readable(ctx context.Context) func(yield func(*store.View, error) bool) {
	return func(yield func(*store.View, error) bool) {
		for _, ref := range x.refs {
			one, err := x.of.store.Read(ctx, ref)
			if err != nil {
				x.done.Failed = append(x.done.Failed, api.NotExported{ID: ref.ID, Source: ref.Source, Problem: err.Error()})
				continue
			}
			x.done.Damaged = append(x.done.Damaged, one.Summary.Damaged...)
			more := yield(one, nil)
			one.Close()
			if !more {
				return
			}
		}
	}
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
