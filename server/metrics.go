package server

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/server/metrics"
)

// metrics answers with all metrics.
func (s *Server) metrics(w http.ResponseWriter, a *asked) *api.Problem {
	var b metrics.Text
	b.Build(s.opt.Version.Version, s.opt.Version.Go)
	if s.service.ReadOnly() == nil {
		running, waiting, queued := s.service.Load()
		b.Gauges("roost_runs", "Runs of this process by state.", "state",
			map[string]float64{"running": float64(running), "waiting": float64(waiting), "queued": float64(queued)})
		if n, ok := s.openQuestions(a); ok {
			b.Gauge("roost_questions_open", "Open questions and approvals of all tasks.", float64(n))
		}
	}
	draining := 0.0
	if s.service.Draining() {
		draining = 1
	}
	b.Gauge("roost_draining", "1 while no new runs are started.", draining)
	b.Gauge("roost_stream_followers", "Event streams that are open.", float64(s.streams.open()))
	s.counted.Write(&b)
	if s.opt.Watch != nil {
		s.opt.Watch.Write(&b)
	}
	b.Process()
	h := w.Header()
	h.Set("Content-Type", metrics.Media)
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	if a.Method != http.MethodHead {
		_, _ = w.Write([]byte(b.String())) // it fails when the client has disconnected
	}
	return nil
}

// questionsFor is how long a count of open questions is reused: counting reads all tasks.
const questionsFor = 5 * time.Second

// questionCount keeps the newest count.
type questionCount struct {
	mu sync.Mutex
	at time.Time
	n  int
}

func (s *Server) openQuestions(a *asked) (int, bool) {
	c := &s.asked
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.at.IsZero() || now.Sub(c.at) > questionsFor {
		list, err := s.service.Questions(a.Context(), "")
		if err != nil {
			return 0, false // an unknown value is left out
		}
		c.at, c.n = now, len(list)
	}
	return c.n, true
}
