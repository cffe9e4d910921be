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
