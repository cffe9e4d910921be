package server

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store/trash"

	"github.com/roost-dev/roost/store"
)

func trashRoutes() []route {
	return []route{
		{path: "/v1/trash", summary: "Deleted tasks, newest first", answer: api.Page[api.DeletedTask]{},
			params: []param{limitParam, cursorParam}, document: (*Server).trash},
		{path: "/v1/trash/{name}", summary: "A deleted task, also one that was purged and whose folder another tool keeps",
			answer: api.DeletedTask{}, document: (*Server).trashedTask},
		{method: "POST", path: "/v1/trash/{name}/restore", summary: "Put a deleted task back", answer: api.Restored{},
			act: (*Server).restoreTask},
		{method: "POST", path: "/v1/purges", summary: "Remove deleted tasks for good", body: api.NewPurge{},
			answer: api.Purged{}, act: (*Server).purgeTasks},
		{method: "DELETE", path: "/v1/trash/{name}", summary: "Remove a deleted task for good", answer: api.DeletedTask{},
			act: (*Server).purgeTask},
	}
}

func (s *Server) trash(a *asked) (any, error) {
	all, err := trash.List(a.Context(), s.opt.Store)
	if err != nil {
		return nil, err
	}
	return pageOf(a, all, func(t api.DeletedTask) api.DeletedTask { return t })
}

// trashedTask finds a deleted task as the command line does: also by an end of its name.
func (s *Server) trashedTask(a *asked) (any, error) {
	return trash.Find(a.Context(), s.opt.Store, a.PathValue("name"))
}

// trashed finds a deleted task by its whole name or id: what is taken for good, or put
// back, is not guessed.
func (s *Server) trashed(a *asked, name string) (api.DeletedTask, error) {
	t, err := trash.Find(a.Context(), s.opt.Store, name)
	if errors.Is(err, store.ErrNotFound) || err == nil && name != t.Name && name != t.ID && name != t.QualifiedName() {
		return t, problem(http.StatusNotFound, "task_not_found", "It is not in the trash",
			"nothing there goes by "+report.Clip(name), "GET /v1/trash")
	}
	return t, err
}

func (s *Server) restoreTask(a *asked) (*reply, error) {
	t, err := s.trashed(a, a.PathValue("name"))
	if a.again && err != nil { // the first attempt may have put it back
		if ref, found := s.opt.Store.Find(a.Context(), a.PathValue("name")); found == nil {
			return restored(ref), nil
		}
	}
	if err != nil {
		return nil, err
	}
	ref, err := trash.Restore(a.Context(), s.opt.Store, t.QualifiedName())
	if errors.Is(err, trash.ErrTaken) {
		p := report.SetupProblem(err)
		p.Task = t.ID
		return nil, p
	}
	if err != nil {
		return nil, err
	}
	return restored(ref), nil
}

func restored(ref store.Ref) *reply {
	head := aboutTask(ref.ID, "")
	head.Set("Location", "/v1/tasks/"+url.PathEscape(ref.ID))
	return &reply{head: head, doc: api.Restored{ID: ref.ID, Source: ref.Source, Path: ref.Dir}}
}

// purgeTasks removes several deleted tasks. All are found before one is removed.
func (s *Server) purgeTasks(a *asked) (*reply, error) {
	var body api.NewPurge
	if err := a.read(&body); err != nil {
		return nil, err
	}
	words := make([]string, len(body.Names))
	for i, name := range body.Names {
		t, err := s.trashed(a, name)
		if err != nil {
			return nil, err
		}
		words[i] = t.QualifiedName()
	}
	out := api.Purged{Items: []api.DeletedTask{}}
	err := s.opt.Engine.PurgeAll(a.Context(), words, func(t api.DeletedTask) error {
		out.Items = append(out.Items, t)
		return nil
	})
	return &reply{doc: out}, err
}

func (s *Server) purgeTask(a *asked) (*reply, error) {
	t, err := s.trashed(a, a.PathValue("name"))
	if err != nil {
		return nil, err
	}
	gone, err := s.opt.Engine.Purge(a.Context(), t.QualifiedName())
	if err != nil {
		return nil, err
	}
	return &reply{doc: gone, head: aboutTask(gone.ID, "")}, nil
}
