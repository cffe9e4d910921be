package cli

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/export"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
)

// farExport writes tasks of a server: the server makes the form, this process the files.
func (a *App) farExport(ctx context.Context, c *client.Client, ids []string, f exportFlags) error {
	x := exporter{App: a, flags: f}
	var tasks []store.Summary
	for _, id := range ids {
		t, err := c.Task(ctx, id)
		if err != nil {
			return err
		}
		ref := store.Ref{ID: t.ID, Source: t.Source, Tool: t.Tool, Dir: t.Path}
		same := false
		for _, r := range x.refs {
			same = same || r == ref
		}
		if !same {
			x.refs, tasks = append(x.refs, ref), append(tasks, t)
		}
	}
	var all struct{ Items []struct{ ID, Path string } }
	if _, err := c.Do(ctx, http.MethodGet, "/v1/names", nil, nil, &all); err != nil {
		return err
	}
	x.known = func(context.Context) (out []store.Ref, _ error) {
		for _, one := range all.Items {
			out = append(out, store.Ref{ID: one.ID, Dir: one.Path})
		}
		return out, nil
	}
	if err := x.aim(ctx); err != nil {
		return err
	}
	var err error
	if f.format == "archive" {
		err = x.farArchive(ctx, c)
	} else {
		err = x.farEach(ctx, c, tasks)
	}
	if err != nil {
		return err
	}
	return x.tell()
}

// farFile gets a task in a form; the report comes behind it.
func (x *exporter) farFile(ctx context.Context, c *client.Client, ref store.Ref, also []string, into func(io.Reader) error) (told report.Exported, err error) {
	q := url.Values{"format": {x.flags.format}}
	if x.flags.plain {
		q.Set("redact", "false")
	}
	set(q, "also", strings.Join(also, ","))
	resp, err := c.Open(ctx, client.Request{Path: pathOf(ref.Source+":"+ref.ID, "export"), Query: q})
	if err != nil {
		return told, err
	}
	defer resp.Body.Close()
	if err := into(resp.Body); err != nil {
		return told, fmt.Errorf("export %s from the server %s: %w", ref.ID, c.Base(), err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil { // the report stands behind the last byte
		return told, fmt.Errorf("export %s from the server %s: %w", ref.ID, c.Base(), err)
	}
	text, err := url.QueryUnescape(resp.Trailer.Get("Roost-Export"))
	if err != nil || json.Unmarshal([]byte(text), &told) != nil {
		return told, &client.Unreachable{Base: c.Base(), Err: errors.New("its export ended before its end")}
	}
	return told, nil
}

func (x *exporter) farEach(ctx context.Context, c *client.Client, tasks []store.Summary) error {
	var pages []export.Page
	names := map[string]bool{}
	for i, ref := range x.refs {
		path := x.file
		if x.folder != "" {
			path = x.place(ref.ID, tasks[i].TS, names)
		}
		told, err := x.farFile(ctx, c, ref, nil, func(body io.Reader) error {
			switch {
			case x.flags.format == "roo":
				return untar(body, path)
			case path == "":
				return x.toStdout(func(w io.Writer) error { _, err := io.Copy(w, body); return err })
			}
			return export.ToFile(path, func(w io.Writer) error { _, err := io.Copy(w, body); return err }, nil)
		})
		if err != nil {
			return err
		}
		x.done = append(x.done, x.farResult(&ref, path, told))
		pages = append(pages, export.Page{File: base(path), Task: tasks[i]})
	}
	if x.flags.format != "html" || len(x.refs) < 2 {
		return nil
	}
	path := join(x.folder, "index.html")
	if !x.flags.plain {
		x.options.Mask = redact.New()
	}
	return export.ToFile(path, func(w io.Writer) error {
		n, err := export.Index(w, pages, x.options)
		x.done = append(x.done, x.result(nil, path, export.Report{Masked: n}))
		return err
	}, nil)
}

func (x *exporter) farArchive(ctx context.Context, c *client.Client) error {
	path := x.file
	if x.folder != "" {
		path = join(x.folder, archiveName(x.refs))
	}
	var also []string
	for _, ref := range x.refs[1:] {
		also = append(also, ref.Source+":"+ref.ID)
	}
	told, err := x.farFile(ctx, c, x.refs[0], also, func(body io.Reader) error {
		if path == "" {
			_, err := io.Copy(x.Out, body)
			return err
		}
		return export.ToFile(path, func(w io.Writer) error { _, err := io.Copy(w, body); return err }, func(f *os.File) error {
			info, err := f.Stat()
			if err == nil {
				_, err = export.VerifyArchive(ctx, f, info.Size())
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	for _, f := range told.Failed {
		e := x.result(nil, "", export.Report{})
		e.ID, e.Source, e.Failed = f.ID, f.Source, f.Problem
		x.done = append(x.done, e)
	}
	var one *store.Ref
	if len(x.refs) == 1 {
		one = &x.refs[0]
	}
	x.done = append(x.done, x.farResult(one, path, told))
	return nil
}

func (x *exporter) farResult(ref *store.Ref, path string, told report.Exported) exported {
	e := exported{Path: path, Masked: told.Masked, Damaged: append([]store.Damage{}, told.Damaged...), Unread: []export.Gap{}, Skipped: append([]string{}, told.Skipped...)}
	for _, g := range told.Unread {
		e.Unread = append(e.Unread, export.Gap(g))
	}
	if ref != nil {
		e.ID, e.Source = ref.ID, ref.Source
	}
	return e
}

// untar writes the files of a folder that a server sent. Only plain names are taken: a
// server must not write elsewhere.
func untar(in io.Reader, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	t := tar.NewReader(in)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		if h.Typeflag != tar.TypeReg || h.Name != filepath.Base(h.Name) || !filepath.IsLocal(h.Name) || strings.HasPrefix(h.Name, ".") {
			return fmt.Errorf("the server sent a file that no task has: %q", h.Name)
		}
		if err := export.ToFile(filepath.Join(dir, h.Name), func(w io.Writer) error { //nolint:gosec // the name was checked above
			_, err := io.Copy(w, t) //nolint:gosec // a task is as large as it is
			return err
		}, nil); err != nil {
			return err
		}
	}
}
