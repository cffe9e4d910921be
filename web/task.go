package web

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/service"
	"github.com/roost-dev/roost/usage"
	"github.com/roost-dev/roost/view"
)

// Bounds of the page of a task.
const (
	messagesMost = 80
	aroundHit    = 20       // messages before the target of a link
	rowBytes     = 64 << 10 // of a stored row
	foundMost    = 100      // hits of the search in the task
	familyMost   = 50
	filesMost    = 40
)

// taskData is the data of the page of a task.
type taskData struct {
	Task      api.Summary
	Copies    []string
	View      string // messages, raw, effective, aligned, api
	Pairs     []pair
	Cursor    string
	First     int
	Last      int
	Total     int
	Items     string // HTML
	Raw       []rawRow
	Notes     []string
	StandIn   string
	Older     string
	Newer     string
	Newest    string
	Todos     []usage.Todo
	Prompts   api.Prompts
	Questions []api.Question
	Parent    *api.Summary
	Children  []row
	Files     []api.KnownFile // the files that the model knows; first those that have changed since it saw them
	FilesMore int
	FilesLost string // why the files cannot be compared
	Branches  []branchOf
	Find      string
	Found     []hit
	FoundMore bool
	Problem   *api.Problem // of the search in the task
}

// rawRow is a row as it is stored.
type rawRow struct {
	Number int
	Kind   string
	Text   string
	Left   int64 // bytes that are left out
}

// Self returns the address of the page; the parts of a task are below it.
func (d taskData) Self() string { return TaskPath(d.Task) }

// at returns the address of a message of the conversation.
func (d taskData) at(number int) string { return messageLink(d.Self(), api.UI, number, "") }

// API returns the address of the task's documents.
func (d taskData) API() string { return "/v1/tasks/" + url.PathEscape(refOf(d.Task)) }

// Resume returns the command that continues the task.
func (d taskData) Resume() string { return "roost resume " + api.ShellWord(refOf(d.Task)) }

// viewOf returns which history is shown, and how.
func viewOf(q url.Values) (name string, o service.LinesOptions) {
	switch {
	case q.Get("raw") != "":
		return "raw", o
	case q.Get("view") == "effective":
		return "effective", service.LinesOptions{Effective: true}
	case q.Get("view") == "aligned":
		return "aligned", service.LinesOptions{Effective: true}
	case q.Get("view") == "api":
		return "api", service.LinesOptions{API: true}
	}
	return "messages", o
}

// spanOf returns the part of the history that an address names.
func spanOf(q url.Values) (s service.Span, err error) {
	s.Limit = messagesMost
	number := func(name string) (n int) {
		text := q.Get(name)
		if text == "" || err != nil {
			return 0
		}
		if n, err = strconv.Atoi(text); err != nil || n < 1 {
			err = api.NewProblem(http.StatusUnprocessableEntity, "validation_failed", "The address of this page is wrong",
				name+" wants the number of a message, such as 12")
		}
		return n
	}
	if at := number("at"); at > 0 {
		s.After = max(at-aroundHit, 1)
	}
	if before := number("before"); before > 0 {
		s.Before, s.After = before, 0
	}
	if after := number("after"); after > 0 {
		s.After = after + 1
	}
	return s, err
}

// task shows a window of a task's messages.
func (w *Web) task(a *asked) (*page, error) {
	t, err := w.opt.Reader.Open(a.Context(), a.id)
	if err != nil {
		return nil, err
	}
	defer func() { _ = t.Close() }() // nothing was written
	d := taskData{Task: t.Document(), Copies: t.Copies, Cursor: t.Newest}
	q := a.URL.Query()
	span, err := spanOf(q)
	if err != nil {
		return nil, err
	}
	var o service.LinesOptions
	d.View, o = viewOf(q)
	var before, after *int
	switch d.View {
	case "raw":
		before, after, err = d.rawRows(t, span)
	case "aligned":
		before, after, err = d.aligned(a, t, span)
	default:
		before, after, err = d.messages(a, t, o, span)
		at, _ := strconv.Atoi(q.Get("at"))
		passed := d.Last == 0 && d.Total > 0 // the page would begin after the end, since messages were taken back

		// The newest messages stand in for those that are gone, and those before at fill the page.
		if err == nil && (passed || at > d.Last && after != nil) {
			d.Items, span.After = "", map[bool]int{false: at}[passed]
			before, after, err = d.messages(a, t, o, span)
		}
	}
	if err != nil {
		return nil, err
	}
	d.pages(q, before, after)
	if d.Prompts, err = t.Prompts(a.Context()); err != nil {
		return nil, err
	}
	if err := w.around(a, t, &d); err != nil {
		return nil, err
	}
	d.Find = strings.TrimSpace(redact.Terminal(q.Get("find")))
	if d.Find != "" {
		w.find(a, &d)
	}
	return &page{Kind: "task", Title: titleOf(d.Task), Body: w.taskPage(d)}, nil
}

func (d *taskData) messages(a *asked, t *service.OpenTask, o service.LinesOptions, span service.Span) (before, after *int, err error) {
	got, err := t.Fragments(a.Context(), o, span)
	if err != nil {
		return nil, nil, err
	}
	for _, one := range got.Items {
		d.Items += one.HTML
	}
	if n := len(got.Items); n > 0 {
		d.First, d.Last = got.Items[0].Number, got.Items[n-1].Number
	}
	d.Total, d.Notes, d.StandIn = got.Total, got.Notes, got.StandIn
	return got.Before, got.After, nil
}

// rawRows adds the stored rows unchanged, with their kinds.
func (d *taskData) rawRows(t *service.OpenTask, span service.Span) (before, after *int, err error) {
	got, err := t.Window(service.LinesOptions{}, span)
	if err != nil {
		return nil, nil, err
	}
	for i, raw := range got.Items {
		r := rawRow{Number: got.Numbers[i], Kind: redact.Marked(view.UI(raw, got.Numbers[i]).Kind)}
		shown := raw
		if len(shown) > rowBytes {
			shown = shown[:rowBytes]
			r.Left = int64(len(raw) - rowBytes)
		}
		r.Text = redact.Marked(string(shown))
		d.Raw = append(d.Raw, r)
	}
	if n := len(got.Numbers); n > 0 {
		d.First, d.Last = got.Numbers[0], got.Numbers[n-1]
	}
	d.Total, d.Notes = got.Total, got.Notes
	return got.Before, got.After, nil
}

// pages makes the links to older and newer messages of the same view.
func (d *taskData) pages(q url.Values, before, after *int) {
	keep := url.Values{}
	for _, name := range []string{"raw", "view", "find"} {
		if v := q.Get(name); v != "" {
			keep.Set(name, v)
		}
	}
	to := func(name string, n int) string {
		next := maps.Clone(keep)
		next.Set(name, itoa(n))
		return address(d.Self(), next)
	}
	if before != nil {
		d.Older = to("before", *before)
	}
	if after != nil {
		d.Newer, d.Newest = to("after", *after), address(d.Self(), keep)+"#end"
	}
}

// around reads the other parts of the page: open questions, branches, parent, subtasks and files.
func (w *Web) around(a *asked, t *service.OpenTask, d *taskData) (err error) {
	if w.opt.Reader.ReadOnly() == nil && d.Task.OpenQuestions > 0 {
		if d.Questions, err = w.opt.Reader.Questions(a.Context(), refOf(d.Task)); err != nil {
			return err
		}
	}
	d.Todos = t.Todos(a.Context())
	d.branches(t.Branches())
	if len(d.Task.ChildIDs) > 0 {
		family, err := w.opt.Reader.Family(a.Context(), a.id)
		if err != nil {
			return err
		}
		for i, child := range family.Tasks[1:min(len(family.Tasks), familyMost)] {
			d.Children = append(d.Children, row{child, min(family.Depths[i+1]-1, 6)})
		}
	}
	if d.Task.ParentID != "" {
		if parent, err := w.summary(a, d.Task.ParentID); err == nil { // the parent may be deleted
			d.Parent = &parent
		}
	}
	return w.known(a, t, d)
}

// summary returns a task's row.
func (w *Web) summary(a *asked, id string) (api.Summary, error) {
	t, _, err := w.opt.Reader.Task(a.Context(), id)
	if err != nil {
		return api.Summary{}, err
	}
	s, _, err := t.Document(a.Context())
	return s, err
}

// known reads which files the model knows, and which of them changed since the model saw them.
func (w *Web) known(a *asked, t *service.OpenTask, d *taskData) error {
	got, err := t.FileStates(a.Context())
	if err != nil {
		if a.Context().Err() != nil {
			return err
		}
		d.FilesLost = w.opt.Reader.Problem(a.Context(), err, a.id).Detail // such as a missing folder
		return nil
	}
	last := map[string]int{"fresh": 1}
	slices.SortStableFunc(got.Items, func(x, y api.KnownFile) int {
		return cmp.Or(last[x.State]-last[y.State], cmp.Compare(y.TS, x.TS)) // the newest first
	})
	d.Files = got.Items[:min(len(got.Items), filesMost)]
	d.FilesMore = len(got.Items) - len(d.Files)
	return nil
}

// find searches the task for words.
func (w *Web) find(a *asked, d *taskData) {
	got, _, err := w.opt.Reader.Search(a.Context(), api.SearchQuery{
		Text:     d.Find,
		Task:     a.id,
		Filter:   api.TaskFilter{Limit: foundMost},
		Patience: searchPatience,
	})
	if err != nil {
		d.Problem = w.opt.Reader.Problem(a.Context(), err, a.id)
		return
	}
	terms := api.QueryTerms(d.Find)
	for _, h := range got.Items {
		if one := hitOf(h, terms, d.Find); !one.in(d.Found) {
			d.Found = append(d.Found, one)
		}
	}
	d.FoundMore = got.Next != nil
}
