package web

import (
	"html/template"
	"net/url"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/service"
	"github.com/roost-dev/roost/view"
	"github.com/roost-dev/roost/view/markup"
)

// patchBytes bounds the lines of one file's difference, allPatches those of a page.
const (
	patchBytes = 256 << 10
	allPatches = 4 << 20
	openLines  = 400 // a file with more is folded
)

// changesData is the data of the page of a task's changes.
type changesData struct {
	Task        api.Summary
	Checkpoints []api.Checkpoint
	From, To    string
	Files       []changedFile
	Added       int
	Removed     int
	Damaged     string
	Problem     *api.Problem
}

// Self is the address of the task.
func (d changesData) Self() string { return linkOf(d.Task) }

// Steps are the checkpoints with the one before each: what happened in between.
func (d changesData) Steps() (out []step) {
	for i, c := range d.Checkpoints {
		from := "0"
		if i > 0 {
			from = d.Checkpoints[i-1].Name()
		}
		if c.Number == 0 {
			continue
		}
		link := address(d.Self()+"/changes", url.Values{"from": {from}, "to": {c.Name()}})
		out = append(out, step{c, link, view.CheckpointReason(c.Reason), d.From == from && d.To == c.Name()})
	}
	return out
}

type step struct {
	api.Checkpoint
	Link string
	Why  string
	Here bool
}

// changedFile is a file with its difference.
type changedFile struct {
	api.FileDiff
	Patch template.HTML
	Open  bool
	Left  int64 // bytes of the difference that are not shown
}

// changes shows what a task changed: all of it, or what lies between two checkpoints.
func (w *Web) changes(a *asked) (*page, error) {
	t, _, err := w.opt.Reader.Task(a.Context(), a.id)
	if err != nil {
		return nil, err
	}
	d := changesData{From: redact.Terminal(a.URL.Query().Get("from")), To: redact.Terminal(a.URL.Query().Get("to"))}
	if d.Task, _, err = t.Document(a.Context()); err != nil {
		return nil, err
	}
	p := &page{Kind: "changes", Title: "Changes of " + titleOf(d.Task)}
	defer func() { p.Data = d }()
	if problem := w.opt.Reader.ReadOnly(); problem != nil {
		d.Problem = problem
		return p, nil
	}
	list, err := w.opt.Reader.Checkpoints(a.Context(), a.id)
	if err != nil {
		return nil, err
	}
	d.Checkpoints, d.Damaged = list.Checkpoints, list.Damaged
	if len(d.Checkpoints) == 0 {
		return p, nil
	}
	q := service.DiffQuery{From: "0", To: d.To, Patch: true}
	if d.From != "" {
		q.From = d.From
	}
	diff, err := w.opt.Reader.Diff(a.Context(), a.id, q)
	if err != nil {
		d.Problem = w.opt.Reader.Problem(a.Context(), err, a.id)
		return p, nil
	}
	set := markup.New(markup.Options{Clean: redact.Marked})
	room := allPatches
	for _, f := range diff.Files {
		if i := strings.Index(f.Patch, "\n@@"); i >= 0 {
			f.Patch = f.Patch[i+1:] // the page names the file
		}
		one := changedFile{FileDiff: f, Open: f.Added+f.Removed <= openLines}
		most := min(patchBytes, room)
		if len(f.Patch) > most {
			one.Left = int64(len(f.Patch) - most)
		}
		shown := f.Patch[:len(f.Patch)-int(one.Left)]
		room -= len(shown)
		one.Patch = template.HTML(set.Diff(strings.ToValidUTF8(shown, ""))) //nolint:gosec // package markup made it
		d.Files = append(d.Files, one)
		d.Added += f.Added
		d.Removed += f.Removed
	}
	return p, nil
}

// trash lists deleted tasks.
func (w *Web) trash(a *asked) (*page, error) {
	all, err := w.opt.Reader.Trash(a.Context())
	return &page{Kind: "trash", Title: "Trash", Data: all}, err
}

// sources lists the storages that tasks are read from.
func (w *Web) sources(a *asked) (*page, error) {
	all, err := w.opt.Reader.Sources(a.Context())
	return &page{Kind: "sources", Title: "Sources", Data: all}, err
}
