package server

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
)

func trashRoutes() []route {
	return []route{
		{path: "/v1/trash", summary: "Deleted tasks, newest first", answer: report.Page[store.Trashed]{}, params: []param{limitParam, cursorParam}, document: (*Server).trash},
		{method: "POST", path: "/v1/trash/{name}/restore", summary: "Put a deleted task back", answer: report.Restored{}, act: (*Server).restoreTask},
		{method: "DELETE", path: "/v1/trash/{name}", summary: "Remove a deleted task for good", answer: store.Trashed{}, act: (*Server).purgeTask},
	}
}

func (s *Server) trash(a *asked) (any, error) {
	all, err := s.opt.Store.Trash(a.Context())
	if err != nil {
		return nil, err
	}
	return pageOf(a, all, func(t store.Trashed) store.Trashed { return t })
}

// trashed finds a deleted task by its whole name or id: what is taken for good, or put
// back, is not guessed.
func (s *Server) trashed(a *asked) (store.Trashed, error) {
	name := a.PathValue("name")
	t, err := s.opt.Store.Trashed(a.Context(), name)
	if errors.Is(err, store.ErrNotFound) || err == nil && name != t.Name && name != t.ID && name != t.Word() {
		return t, problem(http.StatusNotFound, "task_not_found", "It is not in the trash", "nothing there goes by "+clip(name), "GET /v1/trash")
	}
	return t, err
}

func (s *Server) restoreTask(a *asked) (*reply, error) {
	t, err := s.trashed(a)
	if a.again && err != nil { // the first attempt may have put it back
		if ref, found := s.opt.Store.Find(a.Context(), a.PathValue("name")); found == nil {
			return restored(ref), nil
		}
	}
	if err != nil {
		return nil, err
	}
	ref, err := s.opt.Store.Restore(a.Context(), t.Word())
	if err != nil {
		return nil, err
	}
	return restored(ref), nil
}

func restored(ref store.Ref) *reply {
	head := aboutTask(ref.ID, "")
	head.Set("Location", "/v1/tasks/"+url.PathEscape(ref.ID))
	return &reply{head: head, doc: report.Restored{ID: ref.ID, Source: ref.Source, Path: ref.Dir}}
}

func (s *Server) purgeTask(a *asked) (*reply, error) {
	t, err := s.trashed(a)
	if err != nil {
		return nil, err
	}
	gone, err := s.opt.Engine.Purge(a.Context(), t.Word())
	if err != nil {
		return nil, err
	}
	return &reply{doc: gone, head: aboutTask(gone.ID, "")}, nil
}
