package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/service"
)

type sources struct {
	Items []api.SourceState `json:"items"`
}

func (s *Server) sources(a *asked) (any, error) {
	got, err := s.service.Sources(a.Context())
	return sources{got}, err
}

// filter is the filter from the parameters that lists and searches share.
func (a *asked) filter() api.TaskFilter {
	return api.TaskFilter{
		Workspace: a.text["workspace"], Status: a.text["status"], Source: a.text["source"], Tag: a.text["tag"], Model: a.text["model"],
		Since: a.time["since"], Until: a.time["until"], MinCost: a.usd["min_cost"], MaxCost: a.usd["max_cost"],
		Limit: a.number["limit"], Cursor: a.text["cursor"],
	}
}

func (s *Server) tasks(a *asked) (any, error) {
	f := a.filter()
	f.Words, f.Sort, f.Tree, f.Damaged, f.Empty = a.text["query"], a.text["sort"], a.flag["tree"], a.flag["damaged"], a.flag["empty"]
	page, found, err := s.service.List(a.Context(), f)
	if err != nil {
		return nil, err
	}
	return widen(s, a, page, page.Items, found)
}

// widened is a document with what the parameter with adds to it.
type widened[T any] struct {
	doc   T
	Names map[string]string `json:"names,omitempty"`
	Found *api.Found        `json:"found,omitempty"`
}

// MarshalJSON puts the added members behind those of the document. It escapes no HTML, as in all other documents: an
// encoder keeps what a MarshalJSON escaped.
func (w widened[T]) MarshalJSON() ([]byte, error) {
	doc, err := bytesOf(w.doc)
	if err != nil {
		return nil, err
	}
	type rest widened[T]
	more, err := bytesOf(rest(w))
	doc, more = bytes.TrimSpace(doc), bytes.TrimSpace(more)
	if err != nil || len(more) == len("{}") {
		return doc, err
	}
	return slices.Concat(doc[:len(doc)-1], []byte(","), more[1:]), nil
}

// widen adds to a document what the parameter with asks for.
func widen[T any](s *Server, a *asked, doc T, items []api.Summary, found api.Found) (widened[T], error) {
	out := widened[T]{doc: doc}
	with := strings.Split(a.text["with"], ",")
	if slices.Contains(with, "found") {
		out.Found = &found
	}
	if !slices.Contains(with, "names") {
		return out, nil
	}
	var err error
	out.Names, err = s.service.ShortNames(a.Context(), items)
	return out, err
}

// searchPatience is how long a search of a client of another process also adds to the index what it had to read.
const searchPatience = 20 * time.Second

func (s *Server) search(a *asked) (any, error) {
	q := api.SearchQuery{Text: a.text["q"], Filter: a.filter(), Tool: a.text["tool"], File: a.text["file"]}
	patience := searchPatience
	if a.RemoteAddr == client.LocalPeer {
		patience = 0
	}
	if in := a.text["in"]; in != "" {
		q.In = strings.Split(in, ",")
	}
	page, found, err := s.service.Search(a.Context(), q, patience)
	if err != nil || a.text["with"] == "" {
		return page, err
	}
	tasks := make([]api.Summary, len(page.Items))
	for i, h := range page.Items {
		tasks[i] = h.Task
	}
	return widen(s, a, page, tasks, found)
}

func (s *Server) spending(a *asked) (any, error) {
	return s.service.Spending(a.Context(), api.Grouping(a.text["by"]), service.SpendFilter{
		Source: a.text["source"], Workspace: a.text["workspace"], Since: a.time["since"], Until: a.time["until"],
	})
}

func (s *Server) task(a *asked) (any, error) {
	t, copies, err := s.service.Task(a.Context(), a.id)
	if err != nil {
		return nil, err
	}
	return documentOf(a, t, copies)
}

// documentOf is the document of a task, with its position.
func documentOf(a *asked, t service.Task, copies []string) (doc tagged, err error) {
	row, head, err := t.Document(a.Context())
	row.Copies = copies
	return tagged{row, head}, err
}

func (s *Server) tree(a *asked) (any, error) {
	family, err := s.service.Family(a.Context(), a.id)
	if err != nil {
		return nil, err
	}
	return widen(s, a, family.Branch(), family.Tasks, api.Found{})
}

func (s *Server) files(a *asked) (any, error) {
	var only *string
	if path, named := a.text["path"]; named {
		only = &path
	}
	return s.service.KnownFiles(a.Context(), a.id, a.text["workspace"], only)
}

// lookRoutes are the routes by which the command line shows tasks.
func lookRoutes() []route {
	const id = "/v1/tasks/{id}"
	return []route{
		{path: "/v1/names", summary: "The ids of all tasks and their folders, from which short names follow",
			answer: api.Names{}, document: (*Server).names},
		{path: "/v1/undo", summary: "What can be taken back of all tasks, the newest first",
			answer: api.Page[api.TaskActions]{}, document: (*Server).allActions,
			params: []param{{name: "limit", kind: "number", doc: "at most this many tasks; 0 = all", most: 1000, deflt: 0}}},
		{path: id + "/lines", summary: "Messages as lines of text: a window of them, the newest when none is named",
			answer: api.Lines{}, document: (*Server).lines,
			params: with(windowParams,
				param{name: "view", kind: "word", words: []string{"ui", "api", "effective"},
					doc: "what the person saw (the default), what the model saw, or what would be sent"},
				param{name: "whole", kind: "flag", doc: "thinking unfolded, and output not cut"})},
		{path: id + "/journal", summary: "The commits of the task's journal: a window of them, the newest when none is " +
			"named", answer: api.Commits{}, document: (*Server).journal, params: windowParams},
		{path: id + "/context", summary: "What the next request is made of, in tokens", answer: api.ContextUse{},
			fails: []int{503}, document: (*Server).context, params: []param{
				{name: "workspace", kind: "text", doc: "the folder to look from, for a task that records none"},
			}},
	}
}

func (s *Server) names(a *asked) (any, error) {
	items, err := s.service.Names(a.Context())
	return api.Names{Items: items}, err
}

func (s *Server) allActions(a *asked) (any, error) {
	all, err := s.service.AllActions(a.Context(), a.number["limit"])
	return api.PageOf(all, ""), err
}

func (s *Server) context(a *asked) (any, error) {
	return s.service.Context(a.Context(), a.id, a.text["workspace"])
}

func (s *Server) journal(a *asked) (any, error) {
	span, err := a.span()
	if err != nil {
		return nil, err
	}
	return s.service.Commits(a.Context(), a.id, span)
}

func (s *Server) lines(a *asked) (any, error) {
	span, err := a.span()
	if err != nil {
		return nil, err
	}
	o := service.LinesOptions{API: a.text["view"] == "api", Effective: a.text["view"] == "effective", Whole: a.flag["whole"]}
	return s.service.Lines(a.Context(), a.id, o, span)
}

func (s *Server) messages(a *asked) (any, error) {
	span, err := a.span()
	if err != nil {
		return nil, err
	}
	w, err := s.service.Messages(a.Context(), a.id, span)
	return windowBytes(w), err
}

func (s *Server) history(a *asked) (any, error) {
	span, err := a.span()
	if err != nil {
		return nil, err
	}
	w, err := s.service.History(a.Context(), a.id, a.text["view"] == "effective", span)
	return windowBytes(w), err
}

// windowBytes is a window as JSON. The items are copied: encoding them again would change their bytes.
func windowBytes(w api.Window) raw {
	items := []byte("[")
	for i, item := range w.Items {
		if i > 0 {
			items = append(items, ',')
		}
		items = append(items, item...)
	}
	var o esjson.Object
	o.String("task_id", w.Task)
	o.String("history", w.History)
	o.Raw("items", append(items, ']'))
	put := func(key string, v any) {
		text, _ := json.Marshal(v) // numbers and texts
		o.Raw(key, text)
	}
	put("numbers", append([]int{}, w.Numbers...))
	put("total", w.Total)
	put("next_before", w.Before)
	put("next_after", w.After)
	put("notes", append([]string{}, w.Notes...))
	put("notices", append([]api.Notice{}, w.Notices...))
	return append(raw(o.Bytes()), '\n')
}

// span is the part of a list that the parameters before, after and limit name.
func (a *asked) span() (service.Span, error) {
	out := service.Span{Limit: a.number["limit"]}
	for name, to := range map[string]*int{"before": &out.Before, "after": &out.After} {
		text, given := a.text[name]
		if !given {
			continue
		}
		n, err := strconv.Atoi(strings.TrimPrefix(text, "#"))
		if err != nil || n < 0 || name == "before" && n == 0 {
			p := problem(http.StatusUnprocessableEntity, "validation_failed", "A parameter is wrong",
				name+": want a message's number such as 12")
			p.Errors = []api.Wrong{{Parameter: name, Detail: "want a message's number such as 12"}}
			return out, p
		}
		if *to = n; name == "after" {
			*to = n + 1 // the first one
		}
	}
	return out, nil
}
