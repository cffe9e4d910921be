package service

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/export"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// windowBytes bounds the messages in one window, or the text of lines that are read forward, in bytes; one message may have
// more. Each window opens the task, which reads every byte of a folder of Roo's.
const windowBytes = 4 << 20

// Span is the part of a list that a window shows: its newest items where neither Before nor After is set.
type Span struct {
	Before int // items before this number, the newest of those; 0 = not given
	After  int // items from this number on, the oldest of those; 0 = not given
	Limit  int
}

// bounds returns the indexes of a span in a list of n items: the first one, and the one behind the last one. forward: the
// items are read from the first one on, and not from the last one.
func (s Span) bounds(n int) (from, to int, forward bool) {
	if to = n; s.Before > 0 {
		to = min(n, s.Before-1)
	}
	if s.After > 0 {
		from = min(s.After-1, n)
		return from, max(from, min(to, from+s.Limit)), true
	}
	return max(0, to-s.Limit), to, false
}

// edges returns the numbers at which a window of the items between two indexes continues, in a list of n items.
func edges(from, to, n int) (before, after *int) {
	if from > 0 {
		before = new(from + 1)
	}
	if to < n {
		after = &to
	}
	return before, after
}

// window returns a part of a list that is known as a whole, and the numbers at which it continues.
func window[T any](all []T, s Span) (part []T, before, after *int) {
	from, to, _ := s.bounds(len(all))
	before, after = edges(from, to, len(all))
	return append([]T{}, all[from:to]...), before, after
}

// part is a history to show: messages that were computed for this view, or stored ones.
type part struct {
	history task.History
	made    []json.RawMessage
	isMade  bool
	list    []*task.Message
	notes   []string // about the messages of the next request
	why     string   // why this history was reconstructed from the other one; "" = it was not
}

func partOf(v *store.View, o LinesOptions) (p part, err error) {
	if p.history, p.list = task.UI, v.State.UI(); o.API || o.Effective {
		p.history, p.list = task.API, v.State.API()
	}
	if o.Effective {
		p.made, p.notes, err = report.Effective(v)
		p.isMade = true
		return p, err
	}
	p.made, p.why, err = report.StandIn(v, p.history)
	p.isMade = p.made != nil || p.why != ""
	return p, err
}

func (p part) size() int {
	if p.isMade {
		return len(p.made)
	}
	return len(p.list)
}

// read reads a message of the part; m is nil for a computed message.
func (p part) read(v *store.View, i int) (raw json.RawMessage, m *task.Message, err error) {
	if p.isMade {
		return p.made[i], nil, nil
	}
	raws, err := v.State.Raws(p.list[i : i+1])
	if err != nil {
		return nil, nil, err
	}
	return raws[0], p.list[i], nil
}

func unread(i int, err error) string {
	return "message " + strconv.Itoa(i+1) + " cannot be read: " + err.Error()
}

// Window returns a window of the messages of a history.
func (t View) Window(o LinesOptions, span Span) (w api.Window, err error) {
	v := t.view
	p, err := partOf(v, o)
	w = api.Window{Task: v.Ref.ID, History: string(p.history)}
	if err != nil {
		return w, err
	}
	if w.Notes = p.notes; p.why != "" {
		w.Notes = []string{p.why}
	}
	fill(&w, span, p.size(), func(i int) (json.RawMessage, error) {
		raw, _, err := p.read(v, i)
		return raw, err
	})
	if p.history == task.UI && !p.isMade {
		w.Notices = report.NoticesOf(v.State, w.Numbers)
	}
	return w, nil
}

// fill reads as many messages of a span as fit. In place of an unreadable message it adds a note, so that the rest of a
// damaged task stays visible.
func fill(w *api.Window, span Span, n int, read func(i int) (json.RawMessage, error)) {
	w.Total = n
	from, to, forward := span.bounds(n)
	size, taken := 0, 0
	for ; taken < to-from; taken++ {
		i := from + taken
		if !forward {
			i = to - 1 - taken
		}
		item, err := read(i)
		if err == nil && size > 0 && size+len(item) > windowBytes {
			break
		}
		if err != nil {
			w.Notes = append(w.Notes, unread(i, err))
			continue
		}
		size += len(item) + 1
		w.Items, w.Numbers = append(w.Items, item), append(w.Numbers, i+1)
	}
	if forward {
		to = from + taken
	} else {
		from = to - taken
		slices.Reverse(w.Items)
		slices.Reverse(w.Numbers)
	}
	w.Before, w.After = edges(from, to, n)
}

// linesBytes bounds the messages of one batch, in bytes; one message may have more.
const linesBytes = 1 << 20

// LinesOptions are which messages are shown, and how.
type LinesOptions = export.LinesOptions

// Lines are messages rendered for a terminal.
func (t View) Lines(ctx context.Context, o LinesOptions, span Span) (api.Lines, error) {
	v := t.view
	out := api.Lines{Task: v.Ref.ID, Items: []api.ShownMessage{}, Notes: []string{}}
	out.Questions = api.Each(v.State.Questions, func(q *task.Question) string { return q.Text })
	p, err := partOf(v, o)
	if err != nil {
		return out, err
	}
	out.Notes, out.StandIn, out.Total = append(out.Notes, p.notes...), p.why, p.size()
	from, to, forward := span.bounds(out.Total)
	lines := export.NewLines(v, o)
	at, size := from, 0
	for at < to && ctx.Err() == nil && !(forward && size > windowBytes) {
		batch, read := p.batch(v, at, to, true, &out.Notes)
		at += read
		for i, rendered := range lines.Of(batch) {
			m := api.ShownMessage{Number: batch[i].Number, Lines: []api.Line{}}
			for _, l := range rendered {
				m.Lines = append(m.Lines, api.Line{Style: string(l.Style), Text: strings.ToValidUTF8(l.Text, "\ufffd")})
				size += len(l.Text)
			}
			out.Items = append(out.Items, m)
		}
	}
	out.Before, out.After = edges(from, at, out.Total)
	return out, ctx.Err()
}

// Commits returns a window of the commits of a task's journal.
func (t View) Commits(ctx context.Context, span Span) (api.Commits, error) {
	id := t.view.Ref.ID
	all, err := report.CommitsOf(ctx, t.view)
	if errors.Is(err, journal.ErrNotFound) {
		return api.Commits{}, problem(http.StatusNotFound, "no_journal", "The task has no journal",
			"no program that keeps a journal has changed the task", "roost show "+api.ShellWord(id)+" --ui")
	}
	if err != nil {
		return api.Commits{}, err
	}
	out := api.Commits{Task: id, Part: api.Part{Total: len(all)}}
	out.Items, out.Before, out.After = window(all, span)
	return out, nil
}

// Export is tasks as a file, ready to be written.
type Export struct {
	Task string // the id of the first task
	Name string // of the file, without its ending

	of     *Service
	format string
	mask   bool
	refs   []store.Ref
	view   *store.View // nil for an archive
}

// Export opens tasks to write them in a form: md, html, json, roo (a tar of Roo's files) or archive, which alone holds
// several tasks. With mask, secrets are masked in the forms that people read. The caller closes the export.
func (s *Service) Export(ctx context.Context, ids []string, format string, mask bool) (*Export, error) {
	x := &Export{of: s, format: format, mask: mask}
	refs, err := s.store.FindAll(ctx, ids)
	if err != nil {
		return nil, err
	}
	x.refs = api.Distinct(refs, func(r store.Ref) store.Ref { return r })
	x.Task, x.Name = x.refs[0].ID, export.FileName(x.refs[0].ID)
	if format == "archive" && s.store.Shared() {
		return nil, problem(http.StatusConflict, "no_folder", "Tasks in a database cannot be archived",
			store.ErrNoFolder.Error()+", and an archive holds folders", "roost export ID --format roo")
	}
	if format == "archive" { // the archive records for each task whether it could be read
		return x, x.noneReadable(ctx)
	}
	x.view, err = s.store.Read(ctx, x.refs[0])
	return x, err
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
	var p *api.Problem
	for _, ref := range x.refs {
		v, err := x.of.store.Read(ctx, ref)
		if err == nil {
			return v.Close()
		}
		wrong = append(wrong, api.Wrong{Parameter: ref.Source + ":" + ref.ID, Detail: err.Error()})
		p = x.of.Problem(ctx, err, ref.ID)
	}
	if len(x.refs) > 1 {
		p = problem(http.StatusUnprocessableEntity, "damaged", "None of the tasks can be read",
			wrong[0].Parameter+": "+wrong[0].Detail, "roost doctor")
	}
	p.Errors = wrong
	return p
}

// Write writes the file, and returns what was masked, left out or could not be read.
func (x *Export) Write(ctx context.Context, w io.Writer) (out api.Exported, err error) {
	o := export.Options{}
	if x.mask {
		o.Mask = redact.New(x.of.secrets()...)
	}
	var failed []api.NotExported
	switch x.format {
	case "html":
		out, err = export.HTML(ctx, w, x.view, o)
	case "json":
		out, err = export.JSON(ctx, w, x.view, o)
	case "roo":
		out, err = tarOf(ctx, w, x.view)
	case "archive":
		kept, done := x.of.checkpoints(ctx)
		defer done()
		out, err = export.Archive(ctx, w, x.readable(ctx, &failed), kept.Archived)
	default:
		out, err = export.Markdown(ctx, w, x.view, o)
	}
	if out.Failed = failed; x.view != nil {
		out.Damaged = x.view.Summary.Damaged
	}
	return out.Filled(), err
}

// readable returns the tasks of an archive; it adds those that cannot be read to failed.
func (x *Export) readable(ctx context.Context, failed *[]api.NotExported) func(yield func(*store.View, error) bool) {
	return func(yield func(*store.View, error) bool) {
		for _, ref := range x.refs {
			one, err := x.of.store.Read(ctx, ref)
			if err != nil {
				*failed = append(*failed, api.NotExported{ID: ref.ID, Source: ref.Source, Problem: err.Error()})
				continue
			}
			more := yield(one, nil)
			one.Close()
			if !more {
				return
			}
		}
	}
}

// tarOf writes Roo's folder of a task as a tar. It first makes the folder on disk, because export.Folder checks each of its
// files once the file is whole.
func tarOf(ctx context.Context, w io.Writer, v *store.View) (api.Exported, error) {
	temp, err := os.MkdirTemp("", "roost-export-")
	if err != nil {
		return api.Exported{}, err
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
