package legacy

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/service"
)

// The questions of the call are those of every other route; a job is a run.

// Questions are the open questions of a job and of its subtasks; none of those in the state answered, which the task has.
func Questions(ctx context.Context, s *service.Service, job, state string, now time.Time) (api.OlderQuestions, error) {
	out := api.OlderQuestions{Questions: []api.OlderQuestion{}, Timestamp: api.Stamp(now.UnixMilli())}
	if job == "" {
		return out, api.NewProblem(http.StatusBadRequest, "bad_query", "Bad Request", "jobId is missing",
			"GET /api/questions?jobId=JOB")
	}
	open, err := s.QuestionsOfRun(ctx, job)
	if err != nil {
		return out, err
	}
	for _, q := range open {
		if state != "answered" {
			out.Questions = append(out.Questions, questionOf(q, job))
		}
	}
	out.Total = len(out.Questions)
	return out, nil
}

func questionOf(q api.Question, job string) api.OlderQuestion {
	return api.OlderQuestion{
		ID: q.ID, Job: cmp.Or(job, q.Run), Task: q.Task, Question: q.Text, Kind: q.Kind,
		Suggestions: service.OlderChoices(q.QuestionOpened), State: "pending", CreatedAt: q.At,
	}
}

// Question is an open question, or the questions of a job: clients of the call ask for both at one address.
func Question(ctx context.Context, s *service.Service, name string, now time.Time) (any, error) {
	if !strings.Contains(name, ".") {
		return Questions(ctx, s, name, "", now)
	}
	q, err := s.OlderQuestion(ctx, name)
	if err != nil {
		return nil, err
	}
	return questionOf(q, ""), nil
}
