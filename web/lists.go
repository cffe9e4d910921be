package web

import (
	"html/template"
	"net/url"
	"strings"
	"time"

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

// usageData is the data of the page of what was spent.
type usageData struct {
	Spans  []span
	Kinds  []span
	Total  api.SpendingGroup
	Chart  chart
	Column string // the name of the first one
}

type span struct {
	Name, Link string
	Here       bool
}

// chart are the groups of one kind with their bars.
type chart struct {
	By    string
	Bars  []bar
	Left  int // groups that are not shown
	Money bool
}

type bar struct {
	api.SpendingGroup
	Name  string
	Link  string
	Share int // of the longest, in thousandths
}

// barsMost bounds the groups of a chart.
const barsMost = 40

// spans are the stretches of time that the page offers, in days; 0 = all.
var spans = []struct {
	name string
	days int
}{{"7 days", 7}, {"30 days", 30}, {"90 days", 90}, {"a year", 365}, {"all", 0}}

// kinds are the groupings that the page offers: their names, and those of their columns.
var kinds = []struct {
	by           api.Grouping
	name, column string
}{{api.ByDay, "By day", "Day"}, {api.ByModel, "By model", "Model"}, {api.ByWorkspace, "By folder", "Folder"}, {api.ByTool, "By tool", "Tool"}}

// usage shows what all tasks spent, by day, model, folder or tool.
func (w *Web) usage(a *asked) (*page, error) {
	var d usageData
	days, by := "30", api.ByDay
	if given := a.URL.Query().Get("days"); given != "" {
		days = given
	}
	for _, k := range kinds {
		if a.URL.Query().Get("by") == string(k.by) {
			by = k.by
		}
	}
	var f service.SpendFilter
	for _, s := range spans {
		here := days == itoa(s.days)
		d.Spans = append(d.Spans, span{s.name, address("/usage", url.Values{"by": {string(by)}, "days": {itoa(s.days)}}), here})
		if here && s.days > 0 {
			now := w.opt.Now()
			f.Since = time.Date(now.Year(), now.Month(), now.Day()-s.days+1, 0, 0, 0, 0, now.Location()).UnixMilli()
		}
	}
	for _, k := range kinds {
		link := address("/usage", url.Values{"by": {string(k.by)}, "days": {redact.Terminal(days)}})
		d.Kinds = append(d.Kinds, span{k.name, link, k.by == by})
		if k.by == by {
			d.Column = k.column
		}
	}
	got, err := w.opt.Reader.Spending(a.Context(), by, f)
	if err != nil {
		return nil, err
	}
	d.Total, d.Chart = got.Total, w.chartOf(got)
	return &page{Kind: "usage", Title: "Usage", Data: d}, nil
}

func (w *Web) chartOf(t api.Totals) chart {
	c := chart{By: string(t.By), Money: t.Total.Usage.Micros() > 0}
	size := func(g api.SpendingGroup) int64 {
		if c.Money {
			return g.Usage.Micros()
		}
		return g.Usage.Tokens()
	}
	items := t.Items
	if len(items) > barsMost { // the newest, or the largest
		c.Left = len(items) - barsMost
		items = items[:barsMost]
	}
	var most int64 = 1
	for _, g := range items {
		most = max(most, size(g))
	}
	for _, g := range items {
		b := bar{SpendingGroup: g, Name: redact.Marked(g.Key), Link: w.groupLink(t.By, g.Key)}
		if g.Key == "" {
			b.Name = "not known"
		}
		if n := size(g); n > 0 {
			b.Share = max(int(float64(n)/float64(most)*1000), 4)
		}
		c.Bars = append(c.Bars, b)
	}
	return c
}

// groupLink leads to the tasks of a group.
func (w *Web) groupLink(by api.Grouping, key string) string {
	if key == "" {
		return ""
	}
	switch by {
	case api.ByDay:
		at, err := time.ParseInLocation(time.DateOnly, key, w.opt.Now().Location())
		if err != nil {
			return ""
		}
		return address("/", url.Values{"since": {key}, "until": {at.AddDate(0, 0, 1).Format(time.DateOnly)}})
	case api.ByModel:
		_, model, both := strings.Cut(key, "/")
		if !both {
			model = key
		}
		return address("/", url.Values{"model": {model}})
	case api.ByWorkspace:
		return address("/", url.Values{"workspace": {key}})
	case api.ByTool:
		return address("/", url.Values{"tool": {key}})
	}
	return ""
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
