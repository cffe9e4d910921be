package server

import (
	"bytes"
	"cmp"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/search"
	"github.com/roost-dev/roost/store/spend"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/workspace"
)

type sources struct {
	Items []api.SourceState `json:"items"`
}

func (s *Server) sources(a *asked) (any, error) {
	got, err := s.opt.Store.List(a.Context(), store.Filter{Limit: 1})
	return sources{got.Sources}, err
}

// filter is the filter from the parameters that lists and searches share.
func (a *asked) filter() store.Filter {
	return store.Filter{
		Workspace: a.text["workspace"], Status: a.text["status"], Source: a.text["source"], Tag: a.text["tag"], Model: a.text["model"],
		Since: a.time["since"], Until: a.time["until"], MinCost: a.usd["min_cost"], MaxCost: a.usd["max_cost"],
		Limit: a.number["limit"], Cursor: a.text["cursor"],
	}
}

func badCursor(what string) error {
	return problem(http.StatusBadRequest, "bad_cursor", "The cursor cannot be read", "no "+what+" gave that cursor",
		"leave cursor out to start from the first page")
}

func (s *Server) tasks(a *asked) (any, error) {
	f := a.filter()
	f.Query, f.Sort, f.Tree, f.Damaged, f.Empty = a.text["query"], a.text["sort"], a.flag["tree"], a.flag["damaged"], a.flag["empty"]
	if !f.ValidCursor() {
		return nil, badCursor("list")
	}
	got, err := s.opt.Store.List(a.Context(), f)
	if err != nil {
		return nil, err
	}
	return widen(s, a, api.PageOf(got.Items, got.NextCursor), got.Items, api.Found{Sources: got.Sources, Copies: got.Copies})
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
	refs, err := s.opt.Store.Refs(a.Context())
	out.Names = report.ShortNames(refs, items)
	return out, err
}

func (s *Server) search(a *asked) (any, error) {
	q := search.Query{Text: a.text["q"], Filter: a.filter(), Tool: a.text["tool"], File: a.text["file"], Patience: 20 * time.Second}
	if a.RemoteAddr == client.LocalPeer {
		q.Patience = 0
	}
	if in := a.text["in"]; in != "" {
		q.In = strings.Split(in, ",")
	}
	if !search.ValidCursor(q.Filter.Cursor) {
		return nil, badCursor("search")
	}
	got, err := search.Run(a.Context(), s.opt.Store, q)
	if err != nil {
		return nil, err
	}
	page := api.PageOf(got.Items, got.NextCursor)
	if a.text["with"] == "" {
		return page, nil
	}
	tasks := make([]api.Summary, len(got.Items))
	for i, h := range got.Items {
		tasks[i] = h.Task
	}
	return widen(s, a, page, tasks, api.Found{Sources: got.Sources, Tasks: got.Tasks, Unread: got.Unread, Notes: got.Notes})
}

func (s *Server) spending(a *asked) (any, error) {
	by := api.Grouping(a.text["by"])
	if by == "" {
		by = "day"
	}
	return spend.Sum(a.Context(), s.opt.Store, by, spend.Filter{
		Source: a.text["source"], Workspace: a.text["workspace"], Since: a.time["since"], Until: a.time["until"],
		Zone: s.opt.Now().Location(),
	})
}

// read opens the task of the request, and closes it after f.
func (s *Server) read(a *asked, f func(*store.View) (any, error)) (any, error) {
	ref, err := s.opt.Store.Find(a.Context(), a.id)
	if err != nil {
		return nil, err
	}
	v, err := s.opt.Store.Read(a.Context(), ref)
	if err != nil {
		return nil, err
	}
	doc, err := f(v)
	if closed := v.Close(); err == nil {
		err = closed
	}
	return doc, err
}

func (s *Server) task(a *asked) (any, error) {
	ref, copies, err := s.opt.Store.FindWithCopies(a.Context(), a.id)
	if err != nil {
		return nil, err
	}
	doc, err := s.taskDocument(a, ref)
	return doc.standing(copies), err
}

// taskDocument is the document of a task without its copies, with its position.
func (s *Server) taskDocument(a *asked, ref store.Ref) (doc tagged, err error) {
	v, err := s.opt.Store.Read(a.Context(), ref)
	if err != nil {
		return doc, err
	}
	return tagged{v.Summary, events.AfterCommit(v.State.Seq)}, v.Close()
}

// standing adds the copies of a task to its document.
func (t tagged) standing(copies []string) tagged {
	if row, ok := t.doc.(api.Summary); ok {
		row.Copies = copies
		t.doc = row
	}
	return t
}

func (s *Server) usage(a *asked) (any, error) {
	return s.read(a, func(v *store.View) (any, error) { return v.Summary.Usage, nil })
}

func (s *Server) tree(a *asked) (any, error) {
	ref, err := s.opt.Store.Find(a.Context(), a.id)
	if err != nil {
		return nil, err
	}
	family, err := report.FamilyOf(a.Context(), s.opt.Store, ref)
	if err != nil {
		return nil, err
	}
	return widen(s, a, family.Branch(), family.Tasks, api.Found{})
}

type files struct {
	Items []api.KnownFile `json:"items"`
	Task  string          `json:"task_id"`
}

func (s *Server) files(a *asked) (any, error) {
	if err := folder("workspace", a.text["workspace"]); err != nil {
		return nil, err
	}
	return s.read(a, func(v *store.View) (any, error) {
		records := report.Records(v)
		path, named := a.text["path"]
		w, why := openWorkspace(cmp.Or(a.text["workspace"], v.Summary.Workspace))
		if named {
			records = ofFile(records, w, path)
		}
		switch {
		case named && len(records) == 0:
			return nil, problem(http.StatusNotFound, "file_not_known", "The model does not know that file",
				"it neither read nor changed a file of that path", "GET /v1/tasks/"+a.id+"/files")
		case len(records) > 0 && w == nil:
			return nil, problem(http.StatusUnprocessableEntity, "workspace_missing", "The task's workspace is not there", why,
				"POST /v1/tasks/"+v.Ref.ID+"/runs, with \"workspace\", the folder of today", "roost files "+v.Ref.ID+" -C DIR")
		}
		items, err := report.Files(a.Context(), v, w, records, named)
		return files{items, v.Ref.ID}, err
	})
}

// openWorkspace opens the folder of a task; nil, with the reason, when it cannot be opened.
func openWorkspace(dir string) (*workspace.Workspace, string) {
	if dir == "" {
		return nil, "its workspace is not recorded"
	}
	w, err := workspace.Open(dir)
	if err != nil {
		return nil, err.Error()
	}
	return w, ""
}

// ofFile keeps the records of one file, however its path is spelled.
func ofFile(records []task.FileRecord, w *workspace.Workspace, path string) []task.FileRecord {
	names := []string{path, filepath.ToSlash(filepath.Clean(path))}
	if w != nil {
		if p, err := w.Resolve(path); err == nil {
			names = append(names, p.Readable, p.RealReadable)
		}
	}
	for _, name := range names {
		var out []task.FileRecord
		for _, r := range records {
			if r.Path == name {
				out = append(out, r)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}
