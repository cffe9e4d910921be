package server

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
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
