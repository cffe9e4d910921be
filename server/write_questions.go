package server

import (
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

func questionRoutes() []route {
	return []route{
		{path: "/v1/questions", summary: "Open questions and approvals of all tasks, the oldest first",
			answer: api.Page[api.Question]{}, fails: []int{400, 404}, document: (*Server).questions,
			params: []param{{name: "task", kind: "text", doc: "only of this task"}, limitParam, cursorParam}},
		{path: "/v1/questions/{qid}", summary: "An open question", answer: api.Question{}, document: (*Server).question},
		{method: "POST", path: "/v1/questions/{qid}/answer", summary: "Answer a question: the first answer wins",
			body: api.Answer{}, answer: api.Answered{}, act: (*Server).answerQuestion},
	}
}

func (s *Server) questions(a *asked) (any, error) {
	if s.opt.Engine == nil {
		return nil, readOnly()
	}
	id := a.text["task"]
	if id != "" && !validRef(id) {
		return nil, invalid(api.Wrong{Parameter: "task", Detail: "want a task's id"})
	}
	all, err := s.opt.Engine.Questions(a.Context(), id)
	if err != nil {
		return nil, err
	}
	return pageOf(a, all, report.QuestionOf)
}

func (s *Server) question(a *asked) (any, error) {
	if s.opt.Engine == nil {
		return nil, readOnly()
	}
	q, err := s.openQuestion(a)
	if err != nil {
		return nil, err
	}
	return report.QuestionOf(q), nil
}

// taskOf is the task in the id of a question; "" when there is none.
func taskOf(question string) string {
	if dot := strings.LastIndexByte(question, '.'); dot > 0 && validRef(question[:dot]) {
		return question[:dot]
	}
	return ""
}

// openQuestion finds an open question.
func (s *Server) openQuestion(a *asked) (engine.Asked, error) {
	id := a.PathValue("qid")
	none := problem(http.StatusNotFound, "question_not_found", "No such question is open",
		"no open question has the id "+report.Clip(id), "GET /v1/questions")
	of := taskOf(id)
	if of == "" {
		return engine.Asked{}, none
	}
	all, err := s.opt.Engine.Questions(a.Context(), of)
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

func (s *Server) answerQuestion(a *asked) (*reply, error) {
	var n api.Answer
	if err := a.read(&n); err != nil {
		return nil, err
	}
	id := a.PathValue("qid")
	q, err := s.openQuestion(a)
	open := err == nil
	if err != nil && !isProblem(err, "question_not_found") {
		return nil, err
	}
	r, err := replyOf(n, q, open)
	if err != nil {
		return nil, err
	}
	r.ID, r.By, r.Request = a.key(), a.door(), engine.Request{Interactive: true}
	done, err := s.opt.Engine.Reply(keep(a.Context()), id, r)
	var late *engine.AnsweredError
	if errors.As(err, &late) {
		// this request gave that answer
		if a.again && late.Answer.By == r.By && late.Answer.Text == r.Text && sameBool(late.Answer.Approve, r.Approve) {
			return &reply{head: aboutTask(late.Task, ""), doc: report.FirstAnswer(late)}, nil
		}
		return nil, report.AnsweredProblem(late)
	}
	if err != nil {
		return nil, err
	}
	doc := report.AnsweredOf(done)
	return &reply{head: aboutTask(doc.Task, doc.Run), doc: doc}, nil
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
