package server

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/report"
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
	if s.opt.Engine == nil {
		return out, errReadOnly()
	}
	run, err := s.opt.Engine.RunByID(a.Context(), job)
	if err != nil {
		return out, err
	}
	// A job's questions are also those of its subtasks, which have runs of their own.
	asked, err := s.opt.Engine.Questions(a.Context(), "")
	if err != nil {
		return out, err
	}
	for _, q := range asked {
		mine := q.Ref.ID == run.Ref.ID && (q.Run == job || q.Run == "") || cmp.Or(q.Task.RootID, q.Task.ID) == run.Ref.ID
		if mine && a.text["state"] != "answered" {
			out.Questions = append(out.Questions, olderQuestionOf(q, job))
		}
	}
	out.Total = len(out.Questions)
	return out, nil
}

func olderQuestionOf(q engine.Asked, job string) api.OlderQuestion {
	return api.OlderQuestion{
		ID: q.ID, Job: cmp.Or(job, q.Run), Task: q.Ref.ID, Question: q.Text, Kind: q.Kind,
		Suggestions: olderChoices(q.QuestionOpened), State: "pending", CreatedAt: api.Stamp(q.At),
	}
}

// olderQuestion tells of a question, or of those of a job: the older call's clients ask
// for both here.
func (s *Server) olderQuestion(a *asked) (any, error) {
	name := a.PathValue("qid")
	if !strings.Contains(name, ".") {
		return s.questionsOfJob(a, name)
	}
	q, err := s.open(a, name)
	if err != nil {
		return nil, err
	}
	return olderQuestionOf(*q, ""), nil
}

// open finds an open question.
func (s *Server) open(a *asked, name string) (*engine.Asked, error) {
	if s.opt.Engine == nil {
		return nil, errReadOnly()
	}
	missing := problem(http.StatusNotFound, "question_not_found", "Question not found",
		"no such question is open: "+report.Clip(name), "GET /v1/questions")
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 || !validRef(name[:dot]) {
		return nil, missing
	}
	list, err := s.opt.Engine.Questions(a.Context(), name[:dot])
	if err != nil {
		return nil, s.olderProblem(a, name[:dot], err)
	}
	for _, q := range list {
		if q.ID == name || q.Question == name[dot+1:] {
			return &q, nil
		}
	}
	return nil, missing
}

func (s *Server) olderAnswer(a *asked) (*reply, error) {
	var b api.OlderAnswer
	if err := a.read(&b); err != nil {
		return nil, err
	}
	text := strings.TrimSpace(b.Answer)
	if text == "" {
		return nil, problem(http.StatusBadRequest, "empty_answer", "Bad Request", "the answer is empty")
	}
	name := a.PathValue("qid")
	r := engine.Reply{ID: a.key(), Text: b.Answer, By: "api", Request: engine.Request{Interactive: true}}
	q, err := s.open(a, name)
	if err == nil {
		name = q.ID
		choices := olderChoices(q.QuestionOpened)
		if i := chosen(text, choices); i > 0 {
			if r.Choice, r.Text = i, ""; len(q.Choices) == 0 { // a yes or a no
				yes := i == 1
				r.Choice, r.Approve = 0, &yes
			}
		}
	}
	// A question that is not open may have been answered: the engine knows.
	done, failed := s.opt.Engine.Reply(keep(a.Context()), name, r)
	if failed != nil {
		if err != nil && s.problemOf(a.Context(), failed, "").Status != http.StatusConflict {
			return nil, err
		}
		return nil, failed
	}
	return &reply{doc: api.OlderAnswered{
		Success: true, Message: "Answer accepted", Question: name, Task: done.Asked.Ref.ID, Job: done.Run.ID,
		Timestamp: api.Stamp(s.opt.Now().UnixMilli()),
	}}, nil
}

// chosen is the number of the suggestion that an answer names by its words or its
// number, 0 when it is words of its own. Only a whole number is one: "2 files" is not.
func chosen(text string, choices []api.OlderChoice) int {
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		for i, c := range choices {
			if same(strings.TrimSpace(c.Answer), text) {
				return i + 1
			}
		}
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(choices) && strconv.Itoa(n) == text {
		return n
	}
	return 0
}
