package server

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/service"
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
