package server

import (
	"net/http"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/service"
)

func taskRoutes() []route {
	return []route{
		{method: "POST", path: "/v1/tasks", summary: "A new task: with a message it runs at once, without it is there and " +
			"does nothing. The answer is the task, with its run",
			body: api.NewTask{}, answer: api.Started{}, status: http.StatusCreated, stream: true, act: (*Server).startTask},
		{method: "PATCH", path: "/v1/tasks/{id}", summary: "Change title, tags, pin or settings: a merge patch",
			body: api.TaskPatch{}, answer: api.Summary{}, act: (*Server).patchTask},
		{method: "DELETE", path: "/v1/tasks/{id}", summary: "Put a task into the trash", answer: api.Deleted{}, act: (*Server).deleteTask,
			params: []param{{name: "subtasks", kind: "word", words: []string{service.KeepSubtasks, service.DeleteSubtasks},
				doc: "what happens to the task's subtasks; required when there are some"}}},
	}
}

func (s *Server) startTask(a *asked) (*reply, error) {
	var n api.NewTask
	if err := a.read(&n); err != nil {
		return nil, err
	}
	doc, follow, err := s.service.Start(a.Context(), a.call(), n)
	if err != nil {
		return nil, err
	}
	return &reply{head: located(headOf(doc), taskPath(doc.Task)), doc: doc, follow: followedOf(follow)}, nil
}

func (s *Server) patchTask(a *asked) (*reply, error) {
	var p api.TaskPatch
	if err := a.read(&p); err != nil {
		return nil, err
	}
	t, copies, err := s.service.Patch(a.Context(), a.call(), a.id, p)
	if err != nil {
		return nil, err
	}
	doc, err := documentOf(a, t, copies)
	return &reply{doc: doc, head: aboutTask(t.ID(), "")}, err
}

func (s *Server) deleteTask(a *asked) (*reply, error) {
	doc, err := s.service.Delete(a.Context(), a.id, a.text["subtasks"])
	return &reply{doc: doc, head: headOf(doc)}, err
}

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
