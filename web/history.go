package web

import (
	"cmp"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/redact"
)

// Bounds of a page of the history.
const (
	rowsMost  = 50
	tasksMost = 20 // with hits
	hitsEach  = 4
	trailMost = 20 // earlier pages that an address remembers
)

// searchPatience bounds how long a search may add texts to the index.
const searchPatience = 5 * time.Second

// fields are the parameters that narrow and order the history, in the order of its addresses.
var fields = []string{"q", "workspace", "source", "status", "tag", "model", "tool", "file", "min_cost", "max_cost", "since", "until",
	"damaged", "sort"}

// form are the parameters in the address of the history.
type form struct {
	url.Values
	Wrong []api.Wrong
}

// With returns the address of the history's first page with another value of one field.
func (f form) With(name, value string) string {
	q := f.narrowing()
	q.Set(name, value)
	if value == "" {
		q.Del(name)
	}
	return address("/", q)
}

// narrowing returns the fields that have a value.
func (f form) narrowing() url.Values {
	q := url.Values{}
	for _, field := range fields {
		if v := f.Get(field); v != "" {
			q.Set(field, v)
		}
	}
	return q
}

// chip is a field that narrows the list, with the address of the list without it.
type chip struct{ Label, Value, Without string }

var chipLabels = map[string]string{"workspace": "folder", "source": "tool or source", "tool": "called tool", "file": "touched file",
	"min_cost": "cost from", "max_cost": "cost to", "until": "before", "damaged": "only damaged"}

// Chips returns the fields that narrow the list, besides the words.
func (f form) Chips() (out []chip) {
	for _, name := range fields {
		value := f.Get(name)
		if value == "" || name == "q" || name == "sort" {
			continue
		}
		if name == "damaged" {
			value = ""
		}
		out = append(out, chip{cmp.Or(chipLabels[name], name), redact.Marked(value), f.With(name, "")})
	}
	return out
}

// Narrowed reports whether a parameter besides the order is set.
func (f form) Narrowed() bool {
	return slices.ContainsFunc(fields, func(name string) bool { return name != "sort" && f.Get(name) != "" })
}

// shown returns a field's value, safe to show.
func (f form) shown(name string) string { return clean(f.Get(name)) }

// Searches reports whether the page searches messages, and does not list tasks alone.
func (f form) Searches() bool { return strings.TrimSpace(f.Get("q"))+f.Get("tool")+f.Get("file") != "" }

// More reports whether a field has a value that only the opened form shows.
func (f form) More() bool {
	return slices.ContainsFunc([]string{"tag", "model", "tool", "file", "min_cost", "max_cost", "since", "until", "damaged"},
		func(name string) bool { return f.Get(name) != "" })
}

// history is the data of its page.
type history struct {
	Form      form
	Tools     []string // the tools and sources
	Statuses  []string
	Questions []api.Question
	Rows      []row
	Groups    []group
	Found     api.Found
	Next      string
	Prev      string
	First     bool   // this is the first page
	Setup     *setup // for a user with neither task nor model; else nil
	Problem   *api.Problem
}

// Sorts returns the orders besides the usual one: the best hits of a search, or the newest tasks first.
func (h *history) Sorts() []string {
	if h.Form.Searches() {
		return []string{"newest"}
	}
	return []string{"oldest", "cost", "tokens"}
}

// row is a task in the list.
type row struct {
	api.Summary
	Depth int
}

// group is a task with its hits.
type group struct {
	Task api.Summary
	Hits []hit
	More int // hits that are left out
}

// history lists tasks, or searches them.
func (w *Web) history(a *asked) (*page, error) {
	data := &history{Form: form{Values: askedFor(a)}, Statuses: api.Statuses}
	p := &page{Kind: "history", Title: "History", Body: w.historyPage(data)}
	data.First = data.Form.Get("cursor") == ""
	filter := w.filterOf(&data.Form)
	var (
		err, unasked error
		asking       sync.WaitGroup // the list and the questions each read all tasks, so both run at once
	)
	if data.First && w.opt.Reader.ReadOnly() == nil {
		asking.Go(func() { data.Questions, unasked = w.opt.Reader.Questions(a.Context(), "") })
	}
	if data.Form.Wrong == nil {
		if data.Form.Searches() {
			err = w.search(a, data, strings.TrimSpace(data.Form.Get("q")), filter)
		} else {
			err = w.list(a, data, filter)
		}
	}
	if err != nil {
		data.Problem = w.opt.Reader.Problem(a.Context(), err, "")
		p.Status = data.Problem.Status
		err = nil
	}
	if data.Found.Sources == nil {
		data.Found.Sources, err = w.opt.Reader.Sources(a.Context())
	}
	for _, s := range data.Found.Sources {
		data.Tools = append(data.Tools, cmp.Or(s.Tool, s.Name), s.Name)
	}
	slices.Sort(data.Tools)
	data.Tools = slices.Compact(data.Tools)
	asking.Wait()
	if data.First && len(data.Rows) == 0 && len(data.Form.Wrong) == 0 && data.Problem == nil && !data.Form.Narrowed() {
		s, failed := w.setup(a) // the list works without settings; the page of settings shows why it fails
		if failed == nil && s.Problem != "" {
			data.Setup = s
		}
	}
	return p, errors.Join(err, unasked)
}

// askedFor returns the parameters of a request, with the characters that the page named when it showed them in its form.
func askedFor(a *asked) url.Values {
	q := a.URL.Query()
	for _, values := range q {
		for i := range values {
			values[i] = redact.Unmarked(values[i])
		}
	}
	return q
}

// filterOf reads the filter from a form, and marks malformed fields in the form.
func (w *Web) filterOf(f *form) api.TaskFilter {
	wrong := func(name, detail string) { f.Wrong = append(f.Wrong, api.Wrong{Parameter: name, Detail: detail}) }
	moment := func(name string) int64 {
		text := f.Get(name)
		if text == "" {
			return 0
		}
		at, ok := api.Moment(text, w.opt.Now())
		if !ok {
			wrong(name, "want a day such as 2026-01-31, or an age such as 7d")
		}
		return at
	}
	cost := func(name string) *money.USD {
		text := strings.TrimPrefix(f.Get(name), "$")
		if text == "" {
			return nil
		}
		usd, err := money.Parse(text)
		if err != nil || usd < 0 {
			wrong(name, "want an amount of US dollars such as 0.50")
			return nil
		}
		return &usd
	}
	out := api.TaskFilter{
		Workspace: f.Get("workspace"),
		Status:    f.Get("status"),
		Source:    f.Get("source"),
		Tag:       f.Get("tag"),
		Model:     f.Get("model"),
		MinCost:   cost("min_cost"),
		MaxCost:   cost("max_cost"),
		Since:     moment("since"),
		Until:     moment("until"),
		Damaged:   f.Get("damaged") != "",
		Limit:     rowsMost,
		Cursor:    f.Get("cursor"),
	}
	if s := out.Status; s != "" && !slices.Contains(api.Statuses, s) {
		wrong("status", "no task has the status "+redact.Marked(s))
	}
	return out
}

func (w *Web) list(a *asked, data *history, f api.TaskFilter) error {
	switch sort := data.Form.Get("sort"); sort {
	case "oldest", "cost", "tokens":
		f.Sort = sort
	default:
		f.Tree = !data.Form.Narrowed()
	}
	got, found, err := w.opt.Reader.List(a.Context(), f)
	if err != nil {
		return err
	}
	data.Found = found
	depths := make([]int, len(got.Items))
	if f.Tree {
		depths = api.DepthsOf(got.Items)
	}
	for i, t := range got.Items {
		data.Rows = append(data.Rows, row{t, min(depths[i], 6)})
	}
	data.pages(got.Next)
	return nil
}

func (w *Web) search(a *asked, data *history, words string, f api.TaskFilter) error {
	f.Sort, f.Limit = api.SortBest, 0
	if data.Form.Get("sort") == "newest" {
		f.Sort = api.SortNew
	}
	got, found, err := w.opt.Reader.Search(a.Context(), api.SearchQuery{Text: words, Filter: f, Tool: data.Form.Get("tool"),
		File: data.Form.Get("file"), Each: hitsEach, Tasks: tasksMost, Patience: searchPatience})
	if err != nil {
		return err
	}
	data.Found = found
	terms := api.QueryTerms(words)
	for _, h := range got.Items {
		n := len(data.Groups)
		if n == 0 || refOf(data.Groups[n-1].Task) != refOf(h.Task) {
			data.Groups = append(data.Groups, group{Task: h.Task, More: found.Hits[h.Task.Key()]})
			n++
		}
		g := &data.Groups[n-1]
		if one := hitOf(h, terms, ""); !one.in(g.Hits) {
			g.Hits = append(g.Hits, one)
		}
	}
	for i := range data.Groups {
		data.Groups[i].More = max(data.Groups[i].More-len(data.Groups[i].Hits), 0)
	}
	data.pages(got.Next)
	return nil
}

// pages makes the links to the next and the previous page. An address contains the cursors of the earlier pages, because a
// cursor leads only forward.
func (h *history) pages(next *string) {
	q := h.Form.narrowing()
	trail := strings.Fields(h.Form.Get("trail"))
	if !h.First {
		back := maps.Clone(q)
		if n := len(trail); n > 0 {
			back.Set("cursor", trail[n-1])
			if n > 1 {
				back.Set("trail", strings.Join(trail[:n-1], " "))
			}
		}
		h.Prev = address("/", back)
		trail = append(trail, h.Form.Get("cursor"))
	}
	if next == nil {
		return
	}
	q.Set("cursor", *next)
	if trail = trail[max(0, len(trail)-trailMost):]; len(trail) > 0 {
		q.Set("trail", strings.Join(trail, " "))
	}
	h.Next = address("/", q)
}
