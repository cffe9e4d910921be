package server

import (
	"net/http"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/service"
)

func wordRoutes() []route {
	return []route{
		{method: "POST", path: "/v1/tasks/{id}/messages", summary: "Words for the task: they answer the open question, wait " +
			"until the run takes them, or start one",
			body: api.Message{}, answer: api.Sent{}, status: http.StatusAccepted, act: change((*service.Service).Send)},
		{path: "/v1/tasks/{id}/queue", summary: "Words that the task has not used yet", answer: api.Page[api.Queued]{},
			params: []param{limitParam, cursorParam}, document: listed(queue)},
		{method: "PATCH", path: "/v1/tasks/{id}/queue/{input}", summary: "Give words in the queue other words",
			body: api.InputPatch{}, answer: api.Queued{}, act: (*Server).editInput},
		{method: "DELETE", path: "/v1/tasks/{id}/queue/{input}", summary: "Take words out of the queue", act: (*Server).dropInput},
	}
}

func queue(s *Server, a *asked) ([]api.Queued, error) { return s.service.Queue(a.Context(), a.id) }

func (s *Server) editInput(a *asked) (*reply, error) {
	var p api.InputPatch
	if err := a.read(&p); err != nil {
		return nil, err
	}
	doc, err := s.service.EditInput(a.Context(), a.id, a.PathValue("input"), p)
	return &reply{doc: doc}, err
}

func (s *Server) dropInput(a *asked) (*reply, error) {
	return &reply{}, s.service.DropInput(a.Context(), a.id, a.PathValue("input"))
}

func questionRoutes() []route {
	return []route{
		{path: "/v1/questions", summary: "Open questions and approvals of all tasks, the oldest first",
			answer: api.Page[api.Question]{}, fails: []int{400, 404}, document: listed(questions),
			params: []param{{name: "task", kind: "text", doc: "only of this task"}, limitParam, cursorParam}},
		{path: "/v1/questions/{qid}", summary: "An open question", answer: api.Question{}, document: (*Server).question},
		{method: "POST", path: "/v1/questions/{qid}/answer", summary: "Answer a question: the first answer wins",
			body: api.Answer{}, answer: api.Answered{}, act: (*Server).answerQuestion},
	}
}

func questions(s *Server, a *asked) ([]api.Question, error) {
	return s.service.Questions(a.Context(), a.text["task"])
}

func (s *Server) question(a *asked) (any, error) {
	return s.service.Question(a.Context(), a.PathValue("qid"))
}

func (s *Server) answerQuestion(a *asked) (*reply, error) {
	var n api.Answer
	if err := a.read(&n); err != nil {
		return nil, err
	}
	doc, err := s.service.Answer(a.Context(), a.call(), a.PathValue("qid"), n)
	return &reply{head: headOf(doc), doc: doc}, err
}
