package server

import "github.com/roost-dev/roost/api"

func trashRoutes() []route {
	return []route{
		{path: "/v1/trash", summary: "Deleted tasks, newest first", answer: api.Page[api.DeletedTask]{},
			params: []param{limitParam, cursorParam}, document: listed(deleted)},
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

func deleted(s *Server, a *asked) ([]api.DeletedTask, error) { return s.service.Trash(a.Context()) }

func (s *Server) trashedTask(a *asked) (any, error) {
	return s.service.Trashed(a.Context(), a.PathValue("name"))
}

func (s *Server) restoreTask(a *asked) (*reply, error) {
	doc, err := s.service.Untrash(a.Context(), a.call(), a.PathValue("name"))
	if err != nil {
		return nil, err
	}
	return &reply{head: located(headOf(doc), taskPath(doc.ID)), doc: doc}, nil
}

func (s *Server) purgeTasks(a *asked) (*reply, error) {
	var body api.NewPurge
	if err := a.read(&body); err != nil {
		return nil, err
	}
	doc, err := s.service.PurgeAll(a.Context(), body.Names)
	return &reply{doc: doc}, err
}

func (s *Server) purgeTask(a *asked) (*reply, error) {
	doc, err := s.service.Purge(a.Context(), a.PathValue("name"))
	return &reply{doc: doc, head: headOf(doc)}, err
}
