package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/accounts"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/keyed"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/server/devices"
	"github.com/roost-dev/roost/server/idempotency"
	"github.com/roost-dev/roost/server/metrics"
	"github.com/roost-dev/roost/server/peer"
	"github.com/roost-dev/roost/service"
)

// Options are the options of a server. Zero durations and numbers mean the defaults.
type Options struct {
	Service *service.Service // does what requests ask for
	Token   string
	Hosts   []string          // the server's names besides localhost and its address
	TLS     *tls.Config       // nil: plain HTTP
	Cert    *x509.Certificate // its names are names of the server, too; nil without TLS
	LAN     *LAN              // how devices of the local network reach the server; nil: they cannot
	Devices *devices.Devices  // the logged-in browsers; nil: those of the service's root and the token
	// Requests stores the requests with idempotency keys; nil: in the service's root.
	Requests *idempotency.Requests
	Log      *slog.Logger // nil: no log
	Now      func() time.Time
	Version  api.Version
	Pages    Pages              // the pages for browsers; nil: the server has only the API
	Accounts *accounts.Accounts // of the people who share the store; nil: there is one user, who may do everything
	Group    *Group             // the servers that share its database; nil: there are none
	Guest    bool               // the server ends with the tasks that its process works on, and changes no others

	// The server itself: what it reports, and how it stops.
	URL      string         // the server's address
	Watch    *metrics.Watch // counts the runs of its engine for /metrics; nil: no such metrics
	Recovery *Recovery      // the recovery of an earlier process's runs; nil: there is none
	Limits   api.Bounds     // of the engine, for reports
	Stop     func(now bool) // ends the program after its runs, or at once; nil: requests cannot stop the program
	Origins  []string       // pages of these exact origins may use the token; none by default

	HeaderTimeout time.Duration // for the headers of a request
	Heartbeat     time.Duration // between comments on a quiet stream
	WriteTimeout  time.Duration // for one write to a client; a slower client is disconnected
	BodyTimeout   time.Duration // for the body of a request
	MaxBody       int64         // bytes
	Grace         time.Duration // for open requests at the server's end
	MaxStreams    int           // at a time
	MaxPerClient  int           // streams of one account, or of one address
	MaxConns      int
	MaxStrangers  int // connections whose client has not sent the token
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

// LAN is a second listener of a server, for other devices of the local network. It uses TLS with a certificate of the
// root's own authority.
type LAN struct {
	Listener net.Listener
	TLS      *tls.Config
	Names    func(host string) bool // whether a Host header may have this name
	CAFile   []byte                 // the certificate of the authority, as a file for a device (DER)
	api.LAN
}

// Pages answer browsers, and read tasks for the logged-in user. Package web implements them.
type Pages interface {
	// Pages are handlers by their patterns of http.ServeMux. A handler that returns an error has sent nothing.
	Pages() map[string]func(http.ResponseWriter, *http.Request) error
	Refuse(w http.ResponseWriter, r *http.Request, p *api.Problem) // answers with a page that shows the problem
}

// staticPath is the beginning of the paths of files that contain nothing of a task. The log-in page needs these files.
const staticPath = "/static/"

// Server answers the API for one service. It is safe for concurrent use.
type Server struct {
	opt      Options
	service  *service.Service
	routes   []route
	mux      *http.ServeMux
	hosts    map[string]bool
	running  context.Context //nolint:containedctx // ends when the server stops
	halt     func()          // ends running, and with it the streams
	rooted   atomic.Bool     // the root existed at some time
	ending   atomic.Bool     // the server is about to stop
	begun    time.Time
	counted  metrics.Requests
	streams  *slots
	readings *slots // MaxReadings
	exports  *slots // exports last as long as their downloads; as many
	bodies   *slots // large bodies
	keyed    *idempotency.Requests
	guards   keyed.Mutex[string] // of tasks, for changes with If-Match
	changes  changeGate
	document func() ([]byte, error) // the OpenAPI document; built for the first request
}

// New makes a server. It opens nothing and changes nothing on disk.
func New(o Options) (*Server, error) {
	o.fill()
	if o.Token == "" {
		return nil, errors.New("start the server: there is no token")
	}
	if o.Devices == nil {
		o.Devices = devices.New(o.Service.Root(), o.Token, o.Now)
	}
	s := &Server{
		opt: o, service: o.Service,
		hosts:    map[string]bool{"localhost": true, "127.0.0.1": true, "::1": true},
		streams:  newSlots(o.MaxStreams, o.MaxPerClient),
		readings: newSlots(o.MaxReadings, 0), exports: newSlots(o.MaxReadings, 0), bodies: newSlots(maxBodies, 0),
	}
	s.running, s.halt = context.WithCancel(context.Background())
	for _, host := range o.Hosts {
		s.hosts[hostName(host)] = true
	}
	s.service.FollowHolders(s.liveOfHolder)
	if s.keyed = o.Requests; s.keyed == nil {
		s.keyed = idempotency.New(filepath.Join(s.service.Root(), "server", "idempotency"), o.Now,
			func() idempotency.Seal { return s.service.IdempotencySeal() })
	}
	s.changes.all = map[string]*changing{}
	s.room() // notes whether the root exists
	s.begun, s.counted = o.Now(), metrics.NewRequests()
	s.routes = routes()
	s.mux = s.muxOf(s.routes)
	s.document = sync.OnceValues(func() ([]byte, error) { return describedRoutes(s.routes, o.Version, o.Devices.CookieName()) })
	return s, nil
}

// LoginPath makes a log-in link, which works once, and returns its path and query.
func (s *Server) LoginPath(ctx context.Context) (string, error) { return s.opt.Devices.Link(ctx) }

// Handler answers requests; see Serve for a server with all limits.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.guard) }

// Serve answers requests on a listener until ctx ends. Then it accepts no more requests, ends the streams, finishes the
// open requests within the grace, and returns nil. If some take longer, it cuts them off and returns an error.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	web := newHTTP(s.guard, s.opt.HeaderTimeout, slog.NewLogLogger(s.opt.Log.Handler(), slog.LevelDebug))
	web.TLSConfig = s.opt.TLS
	doors := 1
	served := make(chan error, 2)
	bounded := limited(l, s.opt.MaxConns, s.opt.MaxStrangers)
	if lan := s.opt.LAN; lan != nil {
		doors++
		outer := limited(lan.Listener, s.opt.MaxConns, s.opt.MaxStrangers)
		outer.lan = true
		go func() { served <- web.Serve(tls.NewListener(outer, lan.TLS)) }()
	}
	go func() {
		if s.opt.TLS != nil {
			served <- web.ServeTLS(bounded, "", "")
			return
		}
		served <- web.Serve(bounded)
	}()
	var err error
	select {
	case err = <-served:
		_ = web.Close()
		for range doors - 1 {
			err = errors.Join(err, <-served)
		}
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
	for range doors {
		if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
			err = errors.Join(err, ended)
		}
	}
	_ = s.opt.Devices.Save(grace) // the times of the last requests are no reason to fail
	s.service.Close()
	return err
}

// newHTTP makes a server of net/http with the bounds of all listeners.
func newHTTP(answer http.HandlerFunc, headers time.Duration, errors *log.Logger) *http.Server {
	return &http.Server{
		Handler: answer, ReadHeaderTimeout: headers, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10, ConnContext: ofConn,
		ErrorLog: errors,
	}
}

// End ends the server for callers that use Handler without Serve.
func (s *Server) End() {
	s.halt()
	s.service.Close()
}

// stopped reports whether the server stops.
func (s *Server) stopped() bool { return s.running.Err() != nil }

// muxOf makes the mux that calls the routes, and answers a request without a route with a problem.
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
			p := problem(http.StatusMethodNotAllowed, "method_not_allowed", "The path does not take that method", "this path takes "+allow)
			p.Suggestions = api.Each(list, func(method string) string { return method + " " + path })
			p.Allow = allow
			fail(w, r, p)
		})
	}
	if s.opt.Pages != nil {
		for path, page := range s.opt.Pages.Pages() {
			mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { s.show(w, r, page) })
		}
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.deny(w, r, problem(http.StatusNotFound, "no_such_route", "There is no such route",
			"nothing is served at "+report.Clip(r.URL.Path), "GET /openapi.json"))
	})
	return mux
}

// show answers with a page. A page reads tasks, so it counts as a reading. Another server of the group makes the page if this
// one lacks the workspace that the page is about.
func (s *Server) show(w http.ResponseWriter, r *http.Request, page func(http.ResponseWriter, *http.Request) error) {
	if !strings.HasPrefix(r.URL.Path, staticPath) {
		defer s.readings.wait(r)()
	}
	if c, ok := accounts.Of(r.Context()); ok {
		scope, _ := route{on: "GET /v1" + r.URL.Path, method: http.MethodGet}.needs() // as the page's document
		if p := c.Denied(scope); p != nil {
			s.deny(w, r, p)
			return
		}
		r = r.WithContext(service.As(r.Context(), c, accounts.Read))
	}
	if err := page(w, r); err != nil {
		a := &asked{Request: r, id: r.PathValue("id")}
		if !s.toWorkspace(w, a, err) {
			s.deny(w, r, s.problemFor(a, err))
		}
	}
}

// deny answers with a problem, as a page if a browser asked for a page.
func (s *Server) deny(w http.ResponseWriter, r *http.Request, p *api.Problem) {
	if s.opt.Pages == nil || !safe(r.Method) || !prefers(r.Header.Values("Accept"), htmlMedia) || strings.HasPrefix(r.URL.Path, "/v1/") {
		fail(w, r, p)
		return
	}
	p.Request = w.Header().Get(requestID)
	s.opt.Pages.Refuse(w, r, p)
}

// allowed returns the Allow header of a path with these methods.
func allowed(methods []string) string {
	all := append(slices.Clone(methods), http.MethodOptions)
	if slices.Contains(methods, http.MethodGet) {
		all = append(all, http.MethodHead)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// answerAny answers a request of a route. Its caller has checked who sent the request.
func (s *Server) answerAny(rt *route, w http.ResponseWriter, r *http.Request) *api.Problem {
	media := cmp.Or(rt.media, jsonMedia)
	accept := r.Header.Values("Accept")
	if !accepts(accept, media) && !(rt.stream && accepts(accept, streamMedia)) && !(rt.fragments && accepts(accept, htmlMedia)) &&
		!slices.ContainsFunc(rt.forms, func(form string) bool { return accepts(accept, form) }) {
		return problem(http.StatusNotAcceptable, "not_acceptable", "The route does not give that media type", "this route gives "+media,
			"Accept: "+media)
	}
	if p := s.service.ReadOnly(); p != nil && rt.engine {
		return p
	}
	a := &asked{Request: r, route: rt, id: r.PathValue("id")}
	var err error
	if a.values, err = decode(r.URL.RawQuery, paramsFor(r, rt.params), s.opt.Now()); err != nil {
		return s.problemFor(a, err)
	}
	if !safe(r.Method) {
		if err = s.take(w, a); err != nil {
			return s.problemFor(a, err)
		}
	}
	switch {
	case rt.waits && s.elsewhere(w, a): // the process that works on the run knows its state first
		return nil
	case rt.serve != nil:
		return rt.serve(s, w, a)
	case rt.act != nil:
		return s.change(w, a)
	case !rt.open:
		defer s.readings.wait(r)() // each reading costs memory, so their number is bounded
	}
	if rt.fragments && prefers(accept, htmlMedia) {
		return s.problemFor(a, s.fragments(w, a))
	}
	doc, err := rt.document(s, a)
	s.begin(w)
	switch {
	case err == nil:
		err = respond(w, r, http.StatusOK, doc)
	case s.toWorkspace(w, a, err):
		return nil
	}
	return s.problemFor(a, err)
}

// Socket lets other processes of this user reach this one while this process works on tasks; see package peer. It answers
// as every server does. It opens with the first task that this process takes, and makes the server with the first request,
// so that it costs nothing in a process that no other process asks.
type Socket struct {
	env    func(string) string
	make   func() (*Server, error)
	listen func(env func(string) string) *peer.Listener

	once     sync.Once
	listener *peer.Listener
	web      *http.Server
	wait     sync.WaitGroup

	mu     sync.Mutex
	srv    *Server
	err    error
	closed bool
}

// NewSocket returns a socket that is not open yet. server makes the server for the first request; Close ends it.
func NewSocket(env func(string) string, server func() (*Server, error)) *Socket {
	return &Socket{env: env, make: server, listen: peer.Listen}
}

// SocketToken returns a token that no client has: for a server that is reached only through its socket.
func SocketToken() string { return devices.Secret(tokenBytes) }

// Address returns the address of the socket, unix:/path; "" if there is none. The first call opens the socket. It is safe
// for concurrent use.
func (s *Socket) Address() string {
	s.once.Do(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed {
			return
		}
		if s.listener = s.listen(s.env); s.listener != nil {
			s.serve()
		}
	})
	if s.listener == nil {
		return ""
	}
	return s.listener.Address()
}

// serve answers requests. The caller holds mu.
func (s *Socket) serve() {
	s.web = newHTTP(s.answer, 10*time.Second, log.New(io.Discard, "", 0))
	s.wait.Go(func() { _ = s.web.Serve(limited(s.listener, maxPeers, maxPeers/2)) }) // Close ends it
	s.wait.Go(s.listener.Sweep)
}

// maxPeers bounds the open connections of a socket.
const maxPeers = 256

func (s *Socket) answer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.srv == nil && s.err == nil && !s.closed {
		s.srv, s.err = s.make()
	}
	srv, err := s.srv, s.err
	s.mu.Unlock()
	if srv == nil {
		p := problem(http.StatusServiceUnavailable, "stopping", "The process is ending", "the process answers no more requests")
		fail(w, r, p.Because(err).Later(""))
		return
	}
	srv.guard(w, r)
}

// socketGrace bounds how long requests may take after Close began. A follower gets the end of its stream, and finds the
// remaining events in the task's journal.
const socketGrace = 500 * time.Millisecond

// Close ends the socket, and its server if one was made. It cuts off requests that take longer than socketGrace.
func (s *Socket) Close() error {
	s.mu.Lock()
	s.closed = true
	srv, web := s.srv, s.web
	s.mu.Unlock()
	if web != nil {
		_ = s.listener.Remove() // if that fails, the next process that listens removes it
	}
	if srv != nil {
		srv.halt()
	}
	var err error
	if web != nil {
		ctx, cancel := context.WithTimeout(context.Background(), socketGrace)
		defer cancel()
		if web.Shutdown(ctx) != nil {
			err = web.Close()
		}
	}
	if srv != nil {
		srv.service.Close()
	}
	s.wait.Wait()
	return api.Failed(err, "close the socket")
}
