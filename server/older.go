package server

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/server/idempotency"
	"github.com/roost-dev/roost/server/legacy"
	"github.com/roost-dev/roost/service"
)

// The older restart call; see package legacy. The server checks the request, finds the task, and has the run on disk
// before the stream begins.

func olderRoutes() []route {
	call := route{method: http.MethodPost, summary: "The older restart call: start a task, or go on with one, and follow " +
		"it", older: true, media: streamMedia,
		body: api.OlderRun{}, status: http.StatusOK, fails: []int{404, 409, 429}, act: (*Server).olderRun}
	other := call
	call.path, other.path = legacy.ChatPath, legacy.ExecutePath
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

func (s *Server) olderRun(a *asked) (*reply, error) {
	var b api.OlderRun
	if err := a.read(&b); err != nil {
		return nil, err
	}
	if err := service.CheckOlder(b); err != nil {
		return nil, err
	}
	leave, ok := s.streams.enter(addressOf(a.Request)) // refused before anything is done
	if !ok {
		return nil, tooManyStreams()
	}
	leave()
	f, err := s.service.Older(a.Context(), a.call(), b)
	if err != nil {
		return nil, err // where another process owns the task, the request is passed on to it
	}
	return &reply{head: aboutTask(f.Task, f.Run), follow: followedOf(f)}, nil
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

func (s *Server) olderQuestions(a *asked) (any, error) {
	return legacy.Questions(a.Context(), s.service, a.text["jobId"], a.text["state"], s.opt.Now())
}

func (s *Server) olderQuestion(a *asked) (any, error) {
	return legacy.Question(a.Context(), s.service, a.PathValue("qid"), s.opt.Now())
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

// older answers with the stream of a run that the older call started.
func (s *Server) older(w http.ResponseWriter, a *asked, at idempotency.Followed) *api.Problem {
	o := legacy.Options{
		Service:      s.service,
		Follow:       service.Follow{Task: at.Task, Run: at.Run},
		Stop:         s.stop,
		Now:          s.opt.Now,
		Heartbeat:    s.opt.Heartbeat,
		WriteTimeout: s.opt.WriteTimeout,
	}
	if err := a.read(&o.Call); err != nil {
		return s.problemFor(a, err)
	}
	var ok bool
	if o.Follow.From, ok = events.ParseCursor(at.From); at.From != "" && !ok {
		return s.problemFor(a, errors.New("the run's first event has no place: "+at.From))
	}
	leave, ok := s.streams.enter(addressOf(a.Request))
	if !ok {
		p := tooManyStreams()
		p.Task = at.Task
		return p
	}
	defer leave()
	serve, err := legacy.Open(a.Context(), o)
	if err != nil {
		return s.problemOf(a.Context(), err, at.Task)
	}
	if err := serve(a.Context(), w); err != nil && a.Context().Err() == nil {
		s.opt.Log.Debug("stream ended", "path", a.URL.Path, "request_id", w.Header().Get(requestID), "error", err.Error())
	}
	return nil
}

func tooManyStreams() *api.Problem {
	p := problem(http.StatusTooManyRequests, "too_many_streams", "Too many streams are open", "close some, or follow fewer tasks at a time")
	p.Retryable, p.After = true, "5"
	return p
}
