package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/report"
)

// ValidName reports whether a text can name a task: an id, or a source and an id.
func ValidName(text string) bool {
	source, id, named := strings.Cut(text, ":")
	if !named {
		source, id = "", text
	}
	return api.ValidTaskID(id) && (!named || api.ValidTaskID(source))
}

// Questions are the open questions and approvals of a task, or of all tasks when id is "", the oldest first.
func (s *Service) Questions(ctx context.Context, id string) ([]api.Question, error) {
	if err := s.writable(); err != nil {
		return nil, err
	}
	if id != "" && !ValidName(id) {
		return nil, api.Invalid(api.Wrong{Parameter: "task", Detail: "want a task's id"})
	}
	all, err := s.engine.Questions(ctx, id)
	out := make([]api.Question, len(all))
	for i, q := range all {
		out[i] = report.QuestionOf(q)
	}
	return out, err
}

// Question is an open question.
func (s *Service) Question(ctx context.Context, id string) (api.Question, error) {
	q, err := s.openQuestion(ctx, id)
	return report.QuestionOf(q), err
}

// TaskOfQuestion is the task in the id of a question; "" when there is none.
func TaskOfQuestion(id string) string {
	if dot := strings.LastIndexByte(id, '.'); dot > 0 && ValidName(id[:dot]) {
		return id[:dot]
	}
	return ""
}

// openQuestion finds an open question.
func (s *Service) openQuestion(ctx context.Context, id string) (engine.Asked, error) {
	if err := s.writable(); err != nil {
		return engine.Asked{}, err
	}
	none := problem(http.StatusNotFound, "question_not_found", "No such question is open",
		"no open question has the id "+report.Clip(id), "GET /v1/questions")
	of := TaskOfQuestion(id)
	if of == "" {
		return engine.Asked{}, none
	}
	all, err := s.engine.Questions(ctx, of)
	if err != nil {
		return engine.Asked{}, err
	}
	for _, q := range all {
		if q.ID == id {
			return q, nil
		}
	}
	none.Task = of
	return engine.Asked{}, none
}

// Answer answers a question. The first answer wins: a later one gets a problem that names the first.
func (s *Service) Answer(ctx context.Context, c Call, id string, n api.Answer) (api.Answered, error) {
	q, err := s.openQuestion(ctx, id)
	open := err == nil
	if err != nil && !isProblem(err, "question_not_found") {
		return api.Answered{}, err
	}
	r, err := replyOf(n, q, open)
	if err != nil {
		return api.Answered{}, err
	}
	r.ID, r.By, r.Request = c.Key, c.Door, engine.Request{Interactive: true}
	done, err := s.engine.Reply(keep(ctx), id, r)
	var late *engine.AnsweredError
	if errors.As(err, &late) {
		// this call gave that answer
		if c.Again && late.Answer.By == r.By && late.Answer.Text == r.Text && sameBool(late.Answer.Approve, r.Approve) {
			return report.FirstAnswer(late), nil
		}
		return api.Answered{}, report.AnsweredProblem(late)
	}
	if err != nil {
		return api.Answered{}, err
	}
	return report.AnsweredOf(done), nil
}

func isProblem(err error, code string) bool {
	var p *api.Problem
	return errors.As(err, &p) && p.Code == code
}

func sameBool(a, b *bool) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

// replyOf checks an answer against its question, while that is open: it refuses an answer that does not fit.
func replyOf(n api.Answer, q engine.Asked, open bool) (r engine.Reply, err error) {
	var w wrongs
	r = engine.Reply{Text: n.Text, Approve: n.Approve, Always: n.Always}
	if n.Seen != "" {
		at, ok := events.ParseCursor(n.Seen)
		if !ok || at.IsWhole() {
			w.add("/seen", "want the id of an event, such as 1.7-0")
		}
		r.Seen = &at
	}
	approval := q.Kind == "approval"
	switch {
	case n.Choice == nil && n.Approve == nil && strings.TrimSpace(n.Text) == "":
		w.add("", "it answers nothing: want choice, text or approve")
	case n.Choice != nil && (n.Approve != nil || n.Text != ""):
		w.add("/choice", "one of choice, text and approve answers")
	case open && approval && n.Approve == nil:
		w.add("/approve", "it is a request for an approval: want true or false; text beside it is for the model")
	case open && n.Always && (n.Approve == nil || !*n.Approve):
		w.add("/always", "only what is approved can be allowed from then on")
	}
	if n.Choice != nil {
		r.Choice = choiceOf(*n.Choice, q, open, &w)
	}
	return r, w.err()
}

// choiceOf reads a choice: its number from 1, or its text.
func choiceOf(raw json.RawMessage, q engine.Asked, open bool, w *wrongs) int {
	var n int
	var words string
	switch {
	case json.Unmarshal(raw, &n) == nil:
		if n < 1 || open && n > len(q.Choices) {
			w.add("/choice", "%s", choicesText(q))
		}
		return n
	case json.Unmarshal(raw, &words) != nil:
		w.add("/choice", "want a choice's number from 1, or its words")
		return 0
	}
	for i, one := range q.Choices {
		if one == words {
			return i + 1
		}
	}
	if open {
		w.add("/choice", "%s", choicesText(q))
	}
	return 1 // the question is closed, so the choice does not matter
}

func choicesText(q engine.Asked) string {
	if len(q.Choices) == 0 {
		return "the question has no choices: answer with text"
	}
	return fmt.Sprintf("there is no such choice; there are %d: %s", len(q.Choices), strings.Join(q.Choices, " | "))
}
