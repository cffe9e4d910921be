package server

import "github.com/roost-dev/roost/api"

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
