package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
)

// Options are what a server needs. Zero durations and numbers are the usual ones.
type Options struct {
	Store   *store.Store
	Token   string
	Hosts   []string          // names that it is reached by, beside localhost and its address
	TLS     *tls.Config       // nil: plain HTTP
	Cert    *x509.Certificate // whose names it is reached by, too; nil without TLS
	Log     *slog.Logger      // nil: nowhere
	Now     func() time.Time
	Version report.Version
	Secrets []redact.Known // that exports for readers mask, beside what looks like one
	Engine  *engine.Engine // that works on tasks; nil: the server only reads
	Restart Restart        // which tasks requests may restart
	Guest   bool           // it lives as long as the tasks that its process works on, and changes no others

	// What a server tells of itself, and does when it is asked to.
	URL      string         // that it is reached by
	Watch    *Watch         // what its engine's runs do, for /metrics; nil: that is left out
	Recovery *Recovery      // nil: there is none
	Limits   report.Bounds  // those that are not its own
	Stop     func(now bool) // ends the program once runs are finished, or without waiting for them; nil: it cannot be asked to
	Origins  []string       // web pages of these, exactly, may ask with the token; none by default

	HeaderTimeout time.Duration // for a request's headers
	Heartbeat     time.Duration // between signs of life on a quiet stream
	WriteTimeout  time.Duration // for one write to a client; who does not read for so long is cut off
	BodyTimeout   time.Duration // for a request's body
	MaxBody       int64         // bytes
	Grace         time.Duration // for requests that are being answered when the server stops
	MaxStreams    int           // at a time
	MaxPerClient  int           // streams of one address
	MaxConns      int
	MaxStrangers  int // connections of these that have not shown the token
	MaxReadings   int // of tasks at a time, for all clients
}

func (o *Options) fill() {
	set := func(d *time.Duration, usual time.Duration) {
		if *d == 0 {
			*d = usual
		}
	}
	count := func(n *int, usual int) {
		if *n == 0 {
			*n = usual
		}
	}
	set(&o.HeaderTimeout, 10*time.Second)
	set(&o.Heartbeat, 10*time.Second)
	set(&o.WriteTimeout, 20*time.Second)
	set(&o.BodyTimeout, time.Minute)
	if o.MaxBody == 0 {
		o.MaxBody = 32 << 20
	}
	set(&o.Grace, 10*time.Second)
	count(&o.MaxStreams, 2000)
	count(&o.MaxPerClient, 1500)
	count(&o.MaxConns, 4096)
	count(&o.MaxStrangers, min(1024, max(o.MaxConns/2, 1)))
	count(&o.MaxReadings, 8)
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// Server answers the API for one store. It is safe for concurrent use.
type Server struct {
	opt      Options
	door     *doorkeeper
	routes   []route
	mux      *http.ServeMux
	hosts    map[string]bool
	stop     chan struct{} // closed when the server stops
	stopping atomic.Bool
	rooted   atomic.Bool // the root was there
	leaving  atomic.Bool // it means to end
	begun    time.Time
	counted  requests
	asked    questionCount // of open questions
	feeds    feeds
	streams  streams
	readings chan struct{} // room for MaxReadings
	bodies   chan struct{} // room for large bodies that are being read
	keyed    *deeds
	turns    turns
	beside   beside
	document func() ([]byte, error) // the OpenAPI document; built when it is first asked for
}

// New makes a server. Nothing is opened, and nothing on disk changes.
func New(o Options) (*Server, error) {
	o.fill()
	key, err := random()
	if err != nil {
		return nil, err
	}
	s := &Server{
		opt: o, door: &doorkeeper{token: o.Token, now: o.Now, key: key}, stop: make(chan struct{}),
		hosts:    map[string]bool{"localhost": true, "127.0.0.1": true, "::1": true},
		readings: make(chan struct{}, o.MaxReadings), bodies: make(chan struct{}, maxBodies),
	}
	if o.Token == "" {
		return nil, errors.New("start the server: there is no token")
	}
	for _, host := range o.Hosts {
		s.hosts[hostName(host)] = true
	}
	s.feeds.store, s.feeds.task, s.feeds.all = o.Store, s.followTask, map[string]*feed{}
	s.streams.total, s.streams.each, s.streams.by = o.MaxStreams, o.MaxPerClient, map[string]int{}
	s.keyed, s.turns.all, s.beside.all = deedsOf(o.Store, o.Now), map[string]*turn{}, map[string]*changing{}
	s.room() // whether there is a root yet
	s.begun, s.counted = o.Now(), newRequests()
	s.routes = routes()
	s.mux = s.muxOf(s.routes)
	s.document = sync.OnceValues(func() ([]byte, error) { return openAPI(s.routes, o.Version, s.door.cookieName()) })
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

// Serve answers requests on a listener until ctx ends. Then it takes no more, tells
// the followers, finishes what is being answered within the grace, and returns nil; what
// is not finished by then is cut off, and told.
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
	s.feeds.close()
	return err
}

// End lets go of what followers share. It is for who uses Handler without Serve.
func (s *Server) End() {
	s.halt()
	s.feeds.close()
}

// halt tells everybody that the server stops.
func (s *Server) halt() {
	if !s.stopping.Swap(true) {
		close(s.stop)
	}
}
