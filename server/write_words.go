package server

import (
	"net/http"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/task"
)

// deliveries are the ways in which words reach a task.
var deliveries = []string{"auto", "queue", "interrupt"}

func wordRoutes() []route {
	return []route{
		{method: "POST", path: "/v1/tasks/{id}/messages", summary: "Words for the task: they answer the open question, wait " +
			"until the run takes them, or start one",
			body: api.Message{}, answer: api.Sent{}, status: http.StatusAccepted, act: (*Server).sendWords},
		{path: "/v1/tasks/{id}/queue", summary: "Words that the task has not used yet", answer: api.Page[api.Queued]{},
			params: []param{limitParam, cursorParam}, document: (*Server).queue},
		{method: "PATCH", path: "/v1/tasks/{id}/queue/{input}", summary: "Give words in the queue other words",
			body: api.InputPatch{}, answer: api.Queued{}, act: (*Server).editInput},
		{method: "DELETE", path: "/v1/tasks/{id}/queue/{input}", summary: "Take words out of the queue", act: (*Server).dropInput},
	}
}

func (s *Server) sendWords(a *asked) (*reply, error) {
	var m api.Message
	if err := a.read(&m); err != nil {
		return nil, err
	}
	var w wrongs
	checkWords(m.Text, m.Images, "", &w)
	if m.Delivery != "" && !slices.Contains(deliveries, m.Delivery) {
		w.add("/delivery", "want one of auto, queue, interrupt")
	}
	if err := w.err(); err != nil {
		return nil, err
	}
	if err := s.mayRestart(a); err != nil {
		return nil, err
	}
	sent, err := s.opt.Engine.Send(keep(a.Context()), a.id, engine.Message{
		ID: a.key(), Text: m.Text, Images: m.Images, Delivery: m.Delivery, By: a.door(), Request: engine.Request{Interactive: true},
	})
	if err != nil {
		return nil, err
	}
	return &reply{head: aboutTask(sent.Ref.ID, sent.Run), doc: report.SentOf(sent)}, nil
}

// door is the name of the front door that input came through.
func (a *asked) door() string {
	switch {
	case a.RemoteAddr == client.LocalPeer:
		return "terminal"
	case isPeer(a.Request):
		return "cli"
	}
	return "api"
}

func (s *Server) queue(a *asked) (any, error) {
	if s.opt.Engine == nil {
		return nil, readOnly()
	}
	all, err := s.opt.Engine.Inputs(a.Context(), a.id)
	if err != nil {
		return nil, err
	}
	return pageOf(a, all, s.queued(a))
}

// queued gives the document of words that wait. Images that cannot be read are left out of
// it: doctor tells of the damage, and the words can still be changed or taken back.
func (s *Server) queued(a *asked) func(task.InputQueued) api.Queued {
	return func(q task.InputQueued) api.Queued {
		q, _ = s.opt.Engine.LoadInput(a.Context(), a.id, q)
		return report.QueuedOf(q)
	}
}

func (s *Server) editInput(a *asked) (*reply, error) {
	var p api.InputPatch
	if err := a.read(&p); err != nil {
		return nil, err
	}
	var w wrongs
	checkWords(p.Text, nil, "", &w)
	if err := w.err(); err != nil {
		return nil, err
	}
	input := a.PathValue("input")
	if err := s.opt.Engine.EditInput(a.Context(), a.id, input, &p.Text); err != nil {
		return nil, err
	}
	all, err := s.opt.Engine.Inputs(a.Context(), a.id)
	if err != nil {
		return nil, err
	}
	out := api.Queued{ID: input, Text: p.Text, Images: []string{}}
	for _, q := range all { // it may have been taken since
		if q.Input == input {
			out = s.queued(a)(q)
		}
	}
	return &reply{doc: out}, nil
}

func (s *Server) dropInput(a *asked) (*reply, error) {
	return &reply{}, s.opt.Engine.EditInput(a.Context(), a.id, a.PathValue("input"), nil)
}
