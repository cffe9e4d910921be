package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/keyed"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/server/idempotency"
	"github.com/roost-dev/roost/server/metrics"
	"github.com/roost-dev/roost/service"
)

// Options are the options of a server. Zero durations and numbers mean the defaults.
type Options struct {
	Service *service.Service // does what requests ask for
	Token   string
	Hosts   []string          // its names besides localhost and its address
	TLS     *tls.Config       // nil: plain HTTP
	Cert    *x509.Certificate // whose names are names of the server, too; nil without TLS
	Log     *slog.Logger      // nil: no log
	Now     func() time.Time
	Version api.Version
	Guest   bool // it ends with the tasks that its process works on, and changes no others

	// The server itself: what it reports, and how it stops.
	URL      string         // its address
	Watch    *metrics.Watch // counts the runs of its engine for /metrics; nil: no such metrics
	Recovery *Recovery      // nil: there is none
	Limits   api.Bounds     // of the engine, for reports
	Stop     func(now bool) // ends the program after its runs, or at once; nil: requests cannot stop it
	Origins  []string       // pages of these exact origins may use the token; none by default

	HeaderTimeout time.Duration // for the headers of a request
	Heartbeat     time.Duration // between comments on a quiet stream
	WriteTimeout  time.Duration // for one write to a client; a slower client is disconnected
	BodyTimeout   time.Duration // for the body of a request
	MaxBody       int64         // bytes
	Grace         time.Duration // for open requests when the server stops
	MaxStreams    int           // at a time
	MaxPerClient  int           // streams of one address
	MaxConns      int
	MaxStrangers  int // connections that have not shown the token
	MaxReadings   int // concurrent readings of tasks, for all clients
}

func (o *Options) fill() {
	o.HeaderTimeout = cmp.Or(o.HeaderTimeout, 10*time.Second)
	o.Heartbeat = cmp.Or(o.Heartbeat, 10*time.Second)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 20*time.Second)
	o.BodyTimeout = cmp.Or(o.BodyTimeout, time.Minute)
	o.MaxBody = cmp.Or(o.MaxBody, 32<<20)
	o.Grace = cmp.Or(o.Grace, 10*time.Second)
	o.MaxStreams = cmp.Or(o.MaxStreams, 2000)
	o.MaxPerClient = cmp.Or(o.MaxPerClient, 1500)
	o.MaxConns = cmp.Or(o.MaxConns, 4096)
	o.MaxStrangers = cmp.Or(o.MaxStrangers, min(1024, max(o.MaxConns/2, 1)))
	o.MaxReadings = cmp.Or(o.MaxReadings, 8)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
}

// Server answers the API for one service. It is safe for concurrent use.
type Server struct {
	opt      Options
	service  *service.Service
	door     *doorkeeper
	routes   []route
	mux      *http.ServeMux
	hosts    map[string]bool
	stop     chan struct{} // closed when the server stops
	stopping atomic.Bool
	rooted   atomic.Bool // the root has existed
	ending   atomic.Bool // the server is about to stop
	begun    time.Time
	counted  metrics.Requests
	streams  streams
	readings chan struct{} // slots for MaxReadings
	bodies   chan struct{} // slots for large bodies
	keyed    *idempotency.Requests
	guards   keyed.Mutex[string] // of tasks, for changes with If-Match
	changes  changeGate
	document func() ([]byte, error) // the OpenAPI document; built for the first request
}

// New makes a server. It opens nothing and changes nothing on disk.
func New(o Options) (*Server, error) {
	o.fill()
	key, err := random()
	if err != nil {
		return nil, err
	}
	s := &Server{
		opt: o, service: o.Service, door: &doorkeeper{token: o.Token, now: o.Now, key: key}, stop: make(chan struct{}),
		hosts:    map[string]bool{"localhost": true, "127.0.0.1": true, "::1": true},
		readings: make(chan struct{}, o.MaxReadings), bodies: make(chan struct{}, maxBodies),
	}
	if o.Token == "" {
		return nil, errors.New("start the server: there is no token")
	}
	for _, host := range o.Hosts {
		s.hosts[hostName(host)] = true
	}
	s.service.FollowHolders(s.liveOfHolder)
	s.streams.total, s.streams.each, s.streams.by = o.MaxStreams, o.MaxPerClient, map[string]int{}
	s.keyed = idempotency.New(filepath.Join(s.service.Root(), "server", "idempotency"), o.Now,
		func() idempotency.Seal { return s.service.IdempotencySeal() })
	s.changes.all = map[string]*changing{}
	s.room() // notes whether the root exists
	s.begun, s.counted = o.Now(), metrics.NewRequests()
	s.routes = routes()
	s.mux = s.muxOf(s.routes)
	s.document = sync.OnceValues(func() ([]byte, error) { return describedRoutes(s.routes, o.Version, s.door.cookieName()) })
	return s, nil
}

// LoginPath is the path and query of the log-in link, which works once.
func (s *Server) LoginPath() string {
	s.door.mu.Lock()
	defer s.door.mu.Unlock()
	return "/login?key=" + s.door.key
}

// Handler answers requests; see Serve for a server with all limits.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.guard) }

// Serve answers requests on a listener until ctx ends. Then it accepts no more, ends the streams, finishes open
// requests within the grace, and returns nil. It cuts off the others and returns that as an error.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	web := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: s.opt.HeaderTimeout, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		ConnContext: ofConn, ErrorLog: slog.NewLogLogger(s.opt.Log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	bounded := limited(l, s.opt.MaxConns, s.opt.MaxStrangers)
	go func() {
		if web.TLSConfig = s.opt.TLS; s.opt.TLS != nil {
			served <- web.ServeTLS(bounded, "", "")
			return
		}
		served <- web.Serve(bounded)
	}()
	var err error
	select {
	case err = <-served:
		s.End()
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	s.halt()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opt.Grace)
	defer cancel()
	if err = web.Shutdown(grace); err != nil {
		err = fmt.Errorf("stop the server: requests were cut off after %s: %w", s.opt.Grace, errors.Join(err, web.Close()))
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	s.service.Close()
	return err
}

// End ends the server for callers that use Handler without Serve.
func (s *Server) End() {
	s.halt()
	s.service.Close()
}

// halt marks the server as stopping, which ends its streams.
func (s *Server) halt() {
	if !s.stopping.Swap(true) {
		close(s.stop)
	}
}

// muxOf leads requests to their routes. A request without a route gets a problem.
func (s *Server) muxOf(list []route) *http.ServeMux {
	mux := http.NewServeMux()
	methods := map[string][]string{} // by path
	for i := range list {
		rt := &list[i]
		methods[rt.path] = append(methods[rt.path], rt.method)
		mux.HandleFunc(rt.method+" "+rt.path, func(w http.ResponseWriter, r *http.Request) {
			if p := s.answer(rt, w, r); p != nil {
				s.lament(w, r, p)
			}
		})
	}
	for path, list := range methods {
		allow := allowed(list)
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { // any other method
			if r.Method == http.MethodOptions {
				w.Header().Set("Allow", allow)
				w.WriteHeader(http.StatusNoContent)
				return
			}
			p := problem(http.StatusMethodNotAllowed, "method_not_allowed", "That cannot be asked that way", "this path takes "+allow)
			for _, method := range list {
				p.Suggestions = append(p.Suggestions, method+" "+path)
			}
			p.Allow = allow
			fail(w, r, p)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, r, problem(http.StatusNotFound, "no_such_route", "There is no such route",
			"nothing is served at "+report.Clip(r.URL.Path), "GET /openapi.json"))
	})
	return mux
}

// allowed is the Allow header of a path with these methods.
func allowed(methods []string) string {
	all := append(slices.Clone(methods), http.MethodOptions)
	if slices.Contains(methods, http.MethodGet) {
		all = append(all, http.MethodHead)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

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
		{on: "GET /metrics", media: "text/plain", forms: []string{"application/openmetrics-text"}, serve: (*Server).metrics},
		{on: "GET /v1/server", answer: api.Server{}, document: func(s *Server, _ *asked) (any, error) { return s.state(), nil }},
		{on: "POST /v1/server/drain", answer: api.Server{}, act: (*Server).drain},
		{on: "DELETE /v1/server/drain", answer: api.Server{}, act: (*Server).admit},
		{on: "POST /v1/server/stop", answer: api.Server{}, status: http.StatusAccepted, body: api.Stop{}, act: reads((*Server).quit)},
	}
}

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
func (s *Server) quit(a *asked, how api.Stop) (*reply, error) {
	if s.opt.Stop == nil {
		return nil, problem(http.StatusConflict, "not_a_server", "That process is no server",
			"it runs a task in a terminal, and ends with it", "POST /v1/tasks/{id}/cancel")
	}
	s.Leave()
	s.opt.Stop(how.Now)
	return &reply{doc: s.state()}, nil
}

// Leave marks the server as ending: /readyz reports it, and the server refuses new runs. It answers requests until
// Serve returns.
func (s *Server) Leave() {
	s.ending.Store(true)
	s.service.Drain()
}

type health struct {
	Status string `json:"status"`
}

func (s *Server) healthz(*asked) (any, error) { return health{"ok"}, nil }

// readiness is the result of the checks, without paths: the route needs no token.
type readiness struct {
	Status string            `json:"status"` // ready, not ready
	Checks map[string]string `json:"checks"`
}

// readyz checks whether tasks can be read and kept, and whether the server is stopping. It reports the recovery of an
// earlier server's runs and does not wait for it.
func (s *Server) readyz(w http.ResponseWriter, a *asked) *api.Problem {
	out := readiness{"ready", map[string]string{"store": "ok", "server": "ok", "recovery": s.opt.Recovery.String()}}
	if why := s.room(); why != "" {
		out.Status, out.Checks["store"] = "not ready", why
	}
	switch {
	case s.stopping.Load(), s.ending.Load():
		out.Status, out.Checks["server"] = "not ready", "it is stopping"
	case s.service.Draining():
		out.Status, out.Checks["server"] = "not ready", "it starts no more runs"
	}
	status := http.StatusOK
	if out.Status != "ready" {
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	}
	if err := respond(w, a.Request, status, out); err != nil {
		return s.service.Problem(a.Context(), err, "")
	}
	return nil
}

func (s *Server) describe(*asked) (any, error) {
	doc, err := s.document()
	return raw(doc), err
}

// login turns the key of the link into a cookie. The HEAD request of a prefetching browser does not use the key up.
func (s *Server) login(w http.ResponseWriter, a *asked) *api.Problem {
	if a.Method != http.MethodGet {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if !s.door.use(a.text["key"]) {
		return problem(http.StatusUnauthorized, "login_used", "The log-in link does not work",
			"it was used, or belongs to another start of the server", "roost serve prints a new one at each start")
	}
	http.SetCookie(w, s.door.cookie(a.TLS != nil))
	if strings.Contains(strings.Join(a.Header.Values("Accept"), ","), jsonMedia) { // a program, which needs no redirect
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	http.Redirect(w, a.Request, "/v1/tasks", http.StatusSeeOther)
	return nil
}

// metrics answers with all metrics.
func (s *Server) metrics(w http.ResponseWriter, a *asked) *api.Problem {
	var b metrics.Text
	b.Build(s.opt.Version.Version, s.opt.Version.Go)
	if s.service.ReadOnly() == nil {
		running, waiting, queued := s.service.Load()
		b.Gauges("roost_runs", "Runs of this process by state.", "state",
			map[string]float64{"running": float64(running), "waiting": float64(waiting), "queued": float64(queued)})
		if open, err := s.service.Questions(a.Context(), ""); err == nil { // an unknown value is left out
			b.Gauge("roost_questions_open", "Open questions and approvals of all tasks.", float64(len(open)))
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
	send(w, a.Request, http.StatusOK, metrics.Media, []byte(b.String()))
	return nil
}

// leastRoom is the free space that a disk must have, in bytes: with less it cannot store a turn.
const leastRoom = 1 << 20

// room is why tasks of the root cannot be read or stored, without paths; "" when they can. It writes nothing. The root
// may not exist yet: the first task makes it. A root that existed before and does not now is lost with all tasks.
func (s *Server) room() string {
	root := s.service.Root()
	for _, dir := range []string{root, filepath.Join(root, "tasks")} {
		f, err := os.Open(dir)
		if err == nil {
			_, err = f.Readdirnames(1)
			f.Close()
		}
		switch {
		case err == nil, errors.Is(err, io.EOF):
			s.rooted.Store(true)
		case errors.Is(err, fs.ErrNotExist) && dir == root && s.rooted.Load():
			return "it is missing"
		case errors.Is(err, fs.ErrNotExist) && dir == root:
			return ""
		case errors.Is(err, fs.ErrNotExist): // no task yet
		case errors.Is(err, fs.ErrPermission):
			return "it may not be read"
		default:
			return "it cannot be read"
		}
	}
	return kept(root, leastRoom)
}
