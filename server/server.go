package server

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/keyed"
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
	asked    questionCount // of open questions
	lists    listRefresher
	streams  streams
	readings chan struct{} // slots for MaxReadings
	bodies   chan struct{} // slots for large bodies
	keyed    *idempotency.Requests
	guards   keyed.Mutex[string] // of tasks, for changes with If-Match
	changes  changeGate
	document func() ([]byte, error) // the OpenAPI document; built for the first request
}
