package server

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/service"
)

// The older call's questions are those that every door shows; a job is a run.

func (s *Server) olderQuestions(a *asked) (any, error) {
	job := a.text["jobId"]
	if job == "" {
		return nil, problem(http.StatusBadRequest, "bad_query", "Bad Request", "jobId is missing", "GET /api/questions?jobId=JOB")
	}
	return s.questionsOfJob(a, job)
}

func (s *Server) questionsOfJob(a *asked, job string) (api.OlderQuestions, error) {
	out := api.OlderQuestions{Questions: []api.OlderQuestion{}, Timestamp: api.Stamp(s.opt.Now().UnixMilli())}
	open, err := s.service.QuestionsOfRun(a.Context(), job)
	if err != nil {
		return out, err
	}
	for _, q := range open {
		if a.text["state"] != "answered" {
			out.Questions = append(out.Questions, olderQuestionOf(q, job))
		}
	}
	out.Total = len(out.Questions)
	return out, nil
}

func olderQuestionOf(q api.Question, job string) api.OlderQuestion {
	return api.OlderQuestion{
		ID: q.ID, Job: cmp.Or(job, q.Run), Task: q.Task, Question: q.Text, Kind: q.Kind,
		Suggestions: service.OlderChoices(q.QuestionOpened), State: "pending", CreatedAt: q.At,
	}
}

// olderQuestion answers with a question, or with those of a job: clients of the older call ask
// for both here.
func (s *Server) olderQuestion(a *asked) (any, error) {
	name := a.PathValue("qid")
	if !strings.Contains(name, ".") {
		return s.questionsOfJob(a, name)
	}
	q, err := s.service.OlderQuestion(a.Context(), name)
	if err != nil {
		return nil, err
	}
	return olderQuestionOf(q, ""), nil
}

func (s *Server) olderAnswer(a *asked) (*reply, error) {
	var b api.OlderAnswer
	if err := a.read(&b); err != nil {
		return nil, err
	}
	done, err := s.service.OlderAnswer(a.Context(), a.call(), a.PathValue("qid"), b.Answer)
	if err != nil {
		return nil, err
	}
	return &reply{doc: api.OlderAnswered{
		Success: true, Message: "Answer accepted", Question: done.Question, Task: done.Task, Job: done.Run,
		Timestamp: api.Stamp(s.opt.Now().UnixMilli()),
	}}, nil
}
