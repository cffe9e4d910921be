package server

import (
	"net/http"
	"os"
	"sync/atomic"

	"github.com/roost-dev/roost/api"
)

// Recovery is the state of the recovery of runs that an earlier process left.
type Recovery struct{ state atomic.Pointer[string] }

// Set sets the state: going_on, done, failed.
func (r *Recovery) Set(state string) { r.state.Store(&state) }

func (r *Recovery) String() string {
	if r != nil {
		if state := r.state.Load(); state != nil {
			return *state
		}
	}
	return "none"
}

// serverRoutes are the routes about the server itself.
func serverRoutes() []route {
	return []route{
		{path: "/metrics", summary: "What is counted, as Prometheus reads it", media: "text/plain",
			forms: []string{"application/openmetrics-text"}, serve: (*Server).metrics},
		{path: "/v1/server", summary: "What the server is and does", answer: api.Server{}, document: (*Server).server},
		{method: http.MethodPost, path: "/v1/server/drain", summary: "Start no more runs; those that work go on, queued ones " +
			"stay queued", answer: api.Server{}, act: (*Server).drain},
		{method: http.MethodDelete, path: "/v1/server/drain", summary: "Start runs again, the queued ones first",
			answer: api.Server{}, act: (*Server).admit},
		{method: http.MethodPost, path: "/v1/server/stop", summary: "End the server once its runs are finished, or its time " +
			"for that is over: what is not is interrupted and saved",
			answer: api.Server{}, status: http.StatusAccepted, body: api.Stop{}, act: (*Server).quit},
	}
}

func (s *Server) server(*asked) (any, error) { return s.state(), nil }

func (s *Server) state() api.Server {
	out := api.Server{
		PID: os.Getpid(), StartedAt: api.Stamp(s.begun.UnixMilli()), URL: s.opt.URL, Version: s.opt.Version.Version,
		Draining: s.service.Draining(), Stopping: s.ending.Load() || s.stopping.Load(), Recovery: s.opt.Recovery.String(),
		Streams: s.streams.open(),
		Limits:  s.opt.Limits,
	}
	out.Limits.MaxStreams, out.Limits.MaxBody = s.opt.MaxStreams, s.opt.MaxBody
	out.Runs.Running, out.Runs.Waiting, out.Runs.Queued = s.service.Load()
	return out
}

func (s *Server) drain(*asked) (*reply, error) {
	s.service.Drain()
	s.opt.Log.Info("draining")
	return &reply{doc: s.state()}, nil
}

func (s *Server) admit(*asked) (*reply, error) {
	if s.ending.Load() {
		return nil, problem(http.StatusConflict, "stopping", "The server is stopping", "it was asked to end and starts nothing more")
	}
	s.service.Undrain()
	s.opt.Log.Info("not draining any more")
	return &reply{doc: s.state()}, nil
}

// quit asks the program to end the server, and answers first.
func (s *Server) quit(a *asked) (*reply, error) {
	var how api.Stop
	if err := a.read(&how); err != nil {
		return nil, err
	}
	if s.opt.Stop == nil {
		return nil, problem(http.StatusConflict, "not_a_server", "That process is no server",
			"it runs a task in a terminal, and ends with it", "POST /v1/tasks/{id}/cancel")
	}
	s.Leave()
	s.opt.Stop(how.Now)
	return &reply{doc: s.state()}, nil
}

// Leave marks the server as ending: /readyz reports it, and the server refuses new runs. It answers requests until Serve
// returns.
func (s *Server) Leave() {
	s.ending.Store(true)
	s.service.Drain()
}
