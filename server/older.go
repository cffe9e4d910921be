package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/journal"
)

// The older restart call starts a task or goes on with one, in a shape of its own: one
// POST whose answer is a stream of flat JSON. It is made of the same parts as the routes
// beside it: what is asked is checked, the task found (and never made), the run is on
// disk, and then the stream begins. The stream's end, whoever ends it, touches no run.

func olderRoutes() []route {
	call := route{method: http.MethodPost, summary: "The older restart call: start a task, or go on with one, and follow " +
		"it", older: true, media: streamMedia,
		body: api.OlderRun{}, status: http.StatusOK, fails: []int{404, 409, 429}, act: (*Server).olderRun}
	other := call
	call.path, other.path = "/chat/stream", "/execute/stream"
	return []route{
		call, other,
		{path: "/api/questions", summary: "The open questions of a job of the older call", older: true,
			answer: api.OlderQuestions{}, fails: []int{400, 404},
			params: []param{
				{name: "jobId", kind: "text", doc: "the job, which is a run; it must be there"},
				{name: "state", kind: "word", words: []string{"pending", "answered"},
					doc: "only pending ones exist: the task has the answered ones"},
			}, document: (*Server).olderQuestions},
		{path: "/api/questions/{qid}", summary: "An open question of the older call, or those of a job", older: true,
			media: jsonMedia, fails: []int{400, 404}, document: (*Server).olderQuestion},
		{method: http.MethodPost, path: "/api/questions/{qid}/answer", summary: "Answer a question of the older call", older: true,
			body: api.OlderAnswer{}, answer: api.OlderAnswered{}, fails: []int{400, 404, 409}, act: (*Server).olderAnswer},
	}
}

const (
	leastIdle = 1000 // milliseconds, as the older call bounds them
	mostIdle  = 24 * 60 * 60 * 1000
)

func (s *Server) olderRun(a *asked) (*reply, error) {
	var b api.OlderRun
	if err := a.read(&b); err != nil {
		return nil, err
	}
	var w wrongs
	if strings.TrimSpace(b.Text) == "" {
		w.add("/task", "it is empty")
	}
	switch {
	case b.Restart && b.Task == "":
		w.add("/taskId", "restartTask continues a task: name it")
	case !b.Restart && b.Task != "":
		w.add("/restartTask", "taskId names a task to continue: set restartTask, too")
	case b.Task != "" && !validRef(b.Task):
		w.add("/taskId", "that can be no task's id")
	}
	if b.IdleMS != 0 && (b.IdleMS < leastIdle || b.IdleMS > mostIdle) {
		w.add("/slidingTimeoutMs", "want milliseconds from %d to %d; 0 is the usual", leastIdle, mostIdle)
	}
	if err := w.err(); err != nil {
		return nil, err
	}
	leave, ok := s.streams.enter(addressOf(a.Request)) // refused before anything is done
	if !ok {
		return nil, tooManyStreams()
	}
	leave()
	r := engine.Request{Text: b.Text, Choice: setup.Choice{Mode: b.Mode}, Interactive: true, Origin: "api"}
	if b.IdleMS > 0 {
		r.Limits = &api.RunLimits{IdleTimeoutMS: b.IdleMS}
	}
	var err error
	if b.Restart {
		r.Fallback = true // the call cannot name a model
		err = s.restarts(a, b.Task, &r)
	} else {
		err = s.begins(a, &r)
	}
	if err != nil {
		return nil, err
	}
	t, err := s.opt.Engine.Submit(keep(a.Context()), r)
	if errors.Is(err, engine.ErrRunning) && b.Restart {
		return s.joins(a, r)
	}
	if err != nil {
		var busy *journal.BusyError
		if errors.As(err, &busy) {
			return nil, err // another process owns the task: the request is passed on to it
		}
		return nil, s.olderProblem(a, b.Task, err)
	}
	return &reply{head: aboutTask(t.Ref.ID, t.ID), follow: followedOf(t.Ref.ID, t.ID, t.From)}, nil
}

// joins gives the words to a run that works on the task already, and follows it from here.
func (s *Server) joins(a *asked, r engine.Request) (*reply, error) {
	ref, err := s.opt.Store.Find(a.Context(), r.Task)
	if err != nil {
		return nil, s.olderProblem(a, r.Task, err)
	}
	from, _, err := events.Newest(a.Context(), s.opt.Store, ref)
	if err != nil {
		return nil, s.olderProblem(a, ref.ID, err)
	}
	sent, err := s.opt.Engine.Send(keep(a.Context()), r.Task, engine.Message{ID: a.key(), Text: r.Text, By: "api", Request: r})
	if err != nil {
		return nil, s.olderProblem(a, ref.ID, err)
	}
	return &reply{head: aboutTask(ref.ID, sent.Run), follow: followedOf(ref.ID, sent.Run, from)}, nil
}

// named is the task that the body of the older call names; "" for every other request.
func (a *asked) named() string {
	if !a.route.older || a.route.body != any(api.OlderRun{}) {
		return ""
	}
	var b struct {
		Task string `json:"taskId"`
	}
	if json.Unmarshal(a.body, &b) != nil {
		return "" // it is refused
	}
	return b.Task
}

// begins fills in what a new task needs.
func (s *Server) begins(a *asked, r *engine.Request) error {
	if r.Workspace = s.opt.Restart.Workspace; r.Workspace == "" {
		dir, err := os.Getwd()
		if err != nil {
			return fmt.Errorf("find the workspace of a new task: %w", err)
		}
		r.Workspace = dir
	}
	r.NewTask = a.key()
	if r.NewTask != "" {
		r.RunID = a.runFor(r.NewTask)
	}
	return nil
}

// olderProblem is a problem that names the task which the body named.
func (s *Server) olderProblem(a *asked, id string, err error) error {
	p := s.problemOf(a.Context(), err, id)
	if p.Task == "" {
		p.Task = id
	}
	return p
}

// olderPath reports whether a path is of the older call.
func olderPath(path string) bool {
	return path == "/chat/stream" || path == "/execute/stream" || strings.HasPrefix(path, "/api/")
}

// olderFail writes a problem in the older shape.
func (s *Server) olderFail(w http.ResponseWriter, r *http.Request, p *api.Problem) {
	out := api.OlderFailure{Error: p.Title, Message: p.Detail, Code: p.Code, Suggestions: p.Suggestions,
		Timestamp: api.Stamp(s.opt.Now().UnixMilli())}
	if p.Code == "task_not_found" {
		out.Error = "Task not found"
	}
	if p.Task != "" {
		out.Task = &p.Task
	}
	if out.Suggestions == nil {
		out.Suggestions = []string{}
	}
	h := w.Header()
	h.Set("Content-Type", jsonMedia)
	if p.After != "" {
		h.Set("Retry-After", p.After)
	}
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(out) // it fails when the client has disconnected
	}
}

func tooManyStreams() *api.Problem {
	p := problem(http.StatusTooManyRequests, "too_many_streams", "Too many streams are open", "close some, or follow fewer tasks at a time")
	p.Retryable, p.After = true, "5"
	return p
}
