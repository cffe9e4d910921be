package server

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
)

// The metrics in the text format of Prometheus (version 0.0.4). They are written by hand: the library of that name would
// add more code than all of this. No label holds text of a user, a model or a file: each has a few fixed values.

// buckets are the upper bounds of durations, in seconds.
var (
	quick = []float64{0.001, 0.005, 0.02, 0.1, 0.5, 2, 10}
	slow  = []float64{0.5, 1, 2.5, 5, 10, 30, 60, 120, 300}
)

// tally is a counter with labels.
type tally struct {
	name, help string
	gauge      bool
	labels     []string

	mu  sync.Mutex
	all map[string]float64 // by the labels in text form
}

func newTally(name, help string, labels ...string) *tally {
	return &tally{name: name, help: help, labels: labels, all: map[string]float64{}}
}

func (t *tally) add(n float64, values ...string) {
	key := labelled(t.labels, values)
	t.mu.Lock()
	t.all[key] += n
	t.mu.Unlock()
}

func (t *tally) write(b *strings.Builder) {
	kind := "counter"
	if t.gauge {
		kind = "gauge"
	}
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", t.name, t.help, t.name, kind)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(t.all)) {
		b.WriteString(t.name + key + " " + digits(t.all[key]) + "\n")
	}
}

// spread is a histogram of durations.
type spread struct {
	name, help string
	label      string // "" = none
	bounds     []float64

	mu  sync.Mutex
	all map[string]*buckets // by the value of the label
}

type buckets struct {
	counts []uint64 // of one bucket each, not cumulative
	n      uint64
	sum    float64
}

func newSpread(name, help, label string, bounds []float64) *spread {
	return &spread{name: name, help: help, label: label, bounds: bounds, all: map[string]*buckets{}}
}

func (s *spread) add(d time.Duration, value string) {
	took := max(d.Seconds(), 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.all[value]
	if one == nil {
		one = &buckets{counts: make([]uint64, len(s.bounds))}
		s.all[value] = one
	}
	one.n++
	one.sum += took
	if i, _ := slices.BinarySearch(s.bounds, took); i < len(one.counts) {
		one.counts[i]++
	}
}

func (s *spread) write(b *strings.Builder) {
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s histogram\n", s.name, s.help, s.name)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, value := range slices.Sorted(maps.Keys(s.all)) {
		one, names, values := s.all[value], []string{}, []string{}
		if s.label != "" {
			names, values = []string{s.label}, []string{value}
		}
		below := uint64(0)
		at := func(bound string, n uint64) {
			b.WriteString(s.name + "_bucket" + labelled(append(slices.Clone(names), "le"),
				append(slices.Clone(values), bound)) + " " + strconv.FormatUint(n, 10) + "\n")
		}
		for i, bound := range s.bounds {
			below += one.counts[i]
			at(digits(bound), below)
		}
		at("+Inf", one.n)
		fmt.Fprintf(b, "%s_sum%s %s\n%s_count%s %d\n", s.name, labelled(names, values), digits(one.sum), s.name,
			labelled(names, values), one.n)
	}
}

var labelQuotes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// labelled are labels in text form; "" without any.
func labelled(names, values []string) string {
	if len(names) == 0 {
		return ""
	}
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = name + `="` + labelQuotes.Replace(values[i]) + `"`
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func digits(n float64) string {
	if n == math.Trunc(n) && math.Abs(n) < 1e15 {
		return strconv.FormatInt(int64(n), 10)
	}
	return strconv.FormatFloat(n, 'g', -1, 64)
}

// gauge writes one number, or one for each value of a label.
func gauge(b *strings.Builder, name, help, kind string, values map[string]float64, label string) {
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	for _, value := range slices.Sorted(maps.Keys(values)) {
		labels := ""
		if label != "" {
			labels = labelled([]string{label}, []string{value})
		}
		b.WriteString(name + labels + " " + digits(values[value]) + "\n")
	}
}

func one(n float64) map[string]float64 { return map[string]float64{"": n} }

// requests counts requests by route, method and status.
type requests struct {
	all  *tally
	took *spread
}

func newRequests() requests {
	return requests{
		all:  newTally("roost_http_requests_total", "Requests by route, method and status.", "route", "method", "status"),
		took: newSpread("roost_http_request_seconds", "How long answers took, streams aside.", "route", quick),
	}
}

// count counts an answered request. The route is the pattern, never the path, which names tasks.
func (c requests) count(r *http.Request, h http.Header, status int, took time.Duration) {
	route := r.Pattern[strings.Index(r.Pattern, " ")+1:]
	if route == "" {
		route = "refused"
	}
	method := "other"
	if slices.Contains([]string{"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"}, r.Method) {
		method = r.Method
	}
	c.all.add(1, route, method, strconv.Itoa(status))
	if !strings.HasPrefix(h.Get("Content-Type"), streamMedia) {
		c.took.add(took, route)
	}
}

// metrics answers with all metrics.
func (s *Server) metrics(w http.ResponseWriter, a *asked) *api.Problem {
	var b strings.Builder
	v := s.opt.Version
	fmt.Fprintf(&b, "# HELP roost_build_info What runs here.\n# TYPE roost_build_info gauge\nroost_build_info%s 1\n",
		labelled([]string{"version", "go"}, []string{v.Version, v.Go}))
	if s.service.ReadOnly() == nil {
		running, waiting, queued := s.service.Load()
		gauge(&b, "roost_runs", "Runs of this process by state.", "gauge",
			map[string]float64{"running": float64(running), "waiting": float64(waiting), "queued": float64(queued)}, "state")
		if n, ok := s.openQuestions(a); ok {
			gauge(&b, "roost_questions_open", "Open questions and approvals of all tasks.", "gauge",
				one(float64(n)), "")
		}
	}
	gauge(&b, "roost_draining", "1 while no new runs are started.", "gauge", one(flag(s.service.Draining())), "")
	gauge(&b, "roost_stream_followers", "Event streams that are open.", "gauge", one(float64(s.streams.open())), "")
	s.counted.all.write(&b)
	s.counted.took.write(&b)
	if s.opt.Watch != nil {
		s.opt.Watch.write(&b)
	}
	process(&b)
	h := w.Header()
	h.Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	if a.Method != http.MethodHead {
		_, _ = w.Write([]byte(b.String())) // it fails when the client has disconnected
	}
	return nil
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
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
