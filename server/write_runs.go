package server

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/service"
)

// runStates are those that a run can have.
var runStates = []string{"queued", "running", "waiting", "completed", "failed", "cancelled", "interrupted"}

// waitMost is how long an answer is held back for Prefer: wait.
const waitMost = 600 * time.Second

func runRoutes() []route {
	return []route{
		{path: "/v1/tasks/{id}/runs", summary: "The task's runs, newest first", answer: api.Page[api.Run]{},
			params: []param{limitParam, cursorParam}, document: listed(runsOf)},
		{method: "POST", path: "/v1/tasks/{id}/runs", summary: "Start, resume or continue the task; as an event stream: the " +
			"events of that run", body: api.NewRun{}, answer: api.Run{},
			status: http.StatusAccepted, stream: true, act: (*Server).startRun},
		{path: "/v1/runs", summary: "Runs of all tasks: those that work or wait first, then newest first",
			answer: api.Page[api.Run]{}, fails: []int{400}, document: (*Server).runs,
			params: []param{{name: "state", kind: "word", words: runStates, doc: "only runs in this state"}, limitParam, cursorParam}},
		{path: "/v1/runs/{rid}", summary: "A run", answer: api.Run{}, waits: true, serve: (*Server).run},
		{method: "POST", path: "/v1/runs/{rid}/cancel", summary: "Stop a run, saved, within two seconds", answer: api.Run{},
			act: (*Server).cancelRun},
		{method: "POST", path: "/v1/tasks/{id}/cancel", summary: "Stop what works on the task or waits in the queue, saved, " +
			"within two seconds", answer: api.Run{}, act: (*Server).cancelTask},
	}
}

func (s *Server) startRun(a *asked) (*reply, error) {
	var n api.NewRun
	if err := a.read(&n); err != nil {
		return nil, err
	}
	doc, follow, err := s.service.Continue(a.Context(), a.call(), a.id, n)
	if err != nil {
		return nil, err
	}
	return &reply{head: located(headOf(doc), runPath(doc.ID)), doc: doc, follow: followedOf(follow)}, nil
}

func runsOf(s *Server, a *asked) ([]api.Run, error) { return s.service.RunsOf(a.Context(), a.id) }

func (s *Server) runs(a *asked) (any, error) {
	if _, ok := countIn(a.text["cursor"]); !ok {
		return nil, service.BadCursor("list")
	}
	return s.service.Runs(a.Context(), service.RunFilter{State: a.text["state"], Limit: a.number["limit"], Cursor: a.text["cursor"]})
}

// run answers with a run, when it has ended or waits if the client prefers so.
func (s *Server) run(w http.ResponseWriter, a *asked) *api.Problem {
	patience, given, p := waitOf(a)
	if p != nil {
		return p
	}
	id := a.PathValue("rid")
	doc, err := s.service.Run(a.Context(), id, a.silent)
	if err == nil && given && a.silent == "" { // there is no process that would report its end
		w.Header().Set("Preference-Applied", "wait="+strconv.Itoa(int(patience/time.Second)))
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience + 3*s.opt.WriteTimeout))
		doc, err = s.service.Settled(a.Context(), id, patience, s.stop)
	}
	if err != nil {
		return s.problemFor(a, err)
	}
	for name, values := range headOf(doc) {
		w.Header()[name] = values
	}
	if err := respond(w, a.Request, http.StatusOK, doc); err != nil {
		return s.problemFor(a, err)
	}
	return nil
}

// waitOf reads Prefer: wait=N, in seconds. RFC 7240 lets a server ignore other preferences.
func waitOf(a *asked) (wait time.Duration, given bool, p *api.Problem) {
	for _, header := range a.Header.Values("Prefer") {
		for _, one := range strings.Split(header, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(one), "=")
			if !strings.EqualFold(strings.TrimSpace(name), "wait") {
				continue
			}
			n, err := strconv.Atoi(strings.TrimSpace(value))
			if err != nil || n < 0 {
				p := problem(http.StatusBadRequest, "bad_header", "The preference cannot be read",
					"want Prefer: wait=N with N in seconds, up to 600")
				return 0, false, p
			}
			return min(time.Duration(n)*time.Second, waitMost), true, nil
		}
	}
	return 0, false, nil
}

func (s *Server) cancelTask(a *asked) (*reply, error) {
	doc, err := s.service.Cancel(a.Context(), a.id)
	return &reply{head: headOf(doc), doc: doc}, err
}

func (s *Server) cancelRun(a *asked) (*reply, error) {
	doc, err := s.service.CancelRun(a.Context(), a.call(), a.PathValue("rid"))
	return &reply{head: headOf(doc), doc: doc}, err
}
