package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/server/peer"
	"github.com/roost-dev/roost/service"
)

// Another process of this user may work on a task: roost run in a terminal, or another server. The task's lock file
// names that process's socket (see Socket), and the server passes what concerns the task on to it, so that a client
// need not know which process works on what. The server itself reads what a task's journal holds.

const (
	// hopHeader counts how often a request was passed on: tasks change hands, and two
	// processes must not send a request back and forth for ever.
	hopHeader = "Roost-Hop"
	notHere   = "not-here" // in an answer: nothing was done, because the task is not held any more

	mostHops = 2
)

var errNotHere = errors.New("the process does not hold the task any more")

// subject is the task that a request would change, as far as it can be found.
func (s *Server) subject(a *asked) (service.Task, bool) {
	ctx, id := a.Context(), a.id
	if rid := a.PathValue("rid"); rid != "" && s.service.ReadOnly() == nil {
		t, _, err := s.service.RunTask(ctx, rid)
		return t, err == nil
	}
	if qid := a.PathValue("qid"); qid != "" {
		id = service.TaskOfQuestion(qid)
	}
	if id == "" {
		id = a.named()
	}
	if id == "" || a.RemoteAddr != client.LocalPeer && !service.ValidName(id) {
		return service.Task{}, false
	}
	t, err := s.service.FindLatest(ctx, id)
	return t, err == nil
}

func hops(r *http.Request) int {
	n, err := strconv.Atoi(r.Header.Get(hopHeader))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// elsewhere passes a request that changes something, or asks for the present state of a run, on to the process that
// works on its task, and reports whether that process answered. When the process cannot be reached, the request fails
// here, with a problem that names the process.
func (s *Server) elsewhere(w http.ResponseWriter, a *asked) bool {
	t, ok := s.subject(a)
	if a.about = (service.Task{}); ok {
		a.about = t
	}
	if s.opt.Guest && !safe(a.Method) {
		return s.notHere(w, a, t, ok)
	}
	if !ok {
		return false
	}
	held, _ := t.Holder()
	if held.Address == "" || hops(a.Request) >= mostHops {
		return false
	}
	conn, err := peer.Dial(a.Context(), held.Address)
	if err != nil {
		if not, is := errors.AsType[*peer.UnreachableError](err); is && not.Silent {
			a.silent = held.Who
		}
		s.opt.Log.Debug("not passed on", "path", a.URL.Path, "request_id", w.Header().Get(requestID), "error", err.Error())
		return false
	}
	return s.passOn(w, a, conn)
}

// notHere refuses work on other tasks in a process that ends with its own tasks. The process that passed the request on
// carries it out then.
func (s *Server) notHere(w http.ResponseWriter, a *asked, t service.Task, found bool) bool {
	if found && t.HeldHere() {
		return false
	}
	w.Header().Set(hopHeader, notHere)
	p := problem(http.StatusConflict, "not_here", "This process does not work on that",
		"it answers for the task that it works on, as long as it does; roost serve answers for all", "roost serve")
	p.Retryable, p.Task = true, a.id
	fail(w, a.Request, p)
	return true
}

// passOn sends a request to the process at the other end of a connection, and its answer to the client. It reports
// whether the process answered: one that has released the task meanwhile does nothing, and its answer has the header
// notHere.
func (s *Server) passOn(w http.ResponseWriter, a *asked, conn net.Conn) (answered bool) {
	answered = true
	ctx, end := s.untilStop(a.Context()) // a stream has no end of its own
	defer end()
	used := make(chan net.Conn, 1)
	used <- conn
	one := &http.Transport{DisableKeepAlives: true, DisableCompression: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			select {
			case c := <-used:
				return c, nil
			default: // nothing is sent twice
				return nil, &peer.UnreachableError{Why: "the connection broke"}
			}
		}}
	defer one.CloseIdleConnections()
	defer func() { _ = conn.Close() }() // closed already where it was used
	done := w.Header()
	proxy := httputil.ReverseProxy{
		Transport: one, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "localhost", "localhost"
			h := r.Out.Header
			// What proves who asked is for this server only; the peer sees whose process asks.
			for _, name := range []string{"Authorization", "Cookie", "Origin", "Referer"} {
				h.Del(name)
			}
			for name := range h {
				if strings.HasPrefix(name, "Sec-") {
					h.Del(name)
				}
			}
			h.Set(hopHeader, strconv.Itoa(hops(a.Request)+1))
			h.Set(requestID, done.Get(requestID))
			r.Out.Body, r.Out.ContentLength = http.NoBody, 0
			if len(a.body) > 0 {
				r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(a.body)), int64(len(a.body))
			}
		},
		ModifyResponse: func(r *http.Response) error {
			if r.Header.Get(hopHeader) == notHere {
				return errNotHere
			}
			for name := range done { // the guard has set it already
				r.Header.Del(name)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if errors.Is(err, errNotHere) {
				answered = false
				return
			}
			p := problem(http.StatusServiceUnavailable, "holder_gone", "The process that works on the task went away",
				"whether it did what was asked is not known; asked again with the same Idempotency-Key it is done once").Because(err)
			p.Retryable, p.After, p.Task = true, "1", a.id
			s.lament(w, r, p)
		},
	}
	proxy.ServeHTTP(&relayed{w, http.NewResponseController(w), s.opt.WriteTimeout}, a.WithContext(ctx))
	return answered
}

// untilStop is a context that ends with the server, too; end must be called.
func (s *Server) untilStop(ctx context.Context) (until context.Context, end func()) {
	until, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-s.stop:
		case <-until.Done():
		}
		cancel()
	}()
	return until, func() { cancel(); <-ended }
}

// relayed gives each write its own time, as streams and whole files want it.
type relayed struct {
	http.ResponseWriter
	ctl   *http.ResponseController
	limit time.Duration
}

func (p *relayed) Write(b []byte) (int, error) {
	_ = p.ctl.SetWriteDeadline(time.Now().Add(p.limit)) // a client of this process has none
	return p.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (p *relayed) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// holderPoll is how often a stream of another process checks whether that process still works on the task.
const holderPoll = time.Second

// liveOfHolder passes on the live events of a task that another process of this user works on, until that process
// ends or lets the task go: the next owner may be this process. Durable events are left out: the topic reads them from
// the journal.
func (s *Server) liveOfHolder(ctx context.Context, t service.Task, publish func(events.Event)) {
	held, ok := t.Holder()
	if !ok || held.Address == "" {
		return
	}
	address := held.Address
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel()
	watch.Go(func() {
		tick := time.NewTicker(holderPoll)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			if held, ok := t.Holder(); !ok || held.Address != address {
				cancel()
			}
		}
	})
	one := &http.Transport{DisableKeepAlives: true, DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return peer.Dial(ctx, address)
		}}
	// The client does not connect again: another process may hold the task by then.
	c, err := client.New("http://localhost", client.Options{HTTP: &http.Client{Transport: one},
		Lost: func(error, time.Duration) { cancel() }})
	if err != nil {
		return
	}
	defer c.Close()
	stream := client.Request{Path: "/v1/tasks/" + t.ID() + "/events", Header: http.Header{hopHeader: {"1"}}}
	for e, err := range c.Follow(ctx, stream, "") {
		if err != nil {
			return
		}
		if e.ID == "" && !strings.HasPrefix(e.Type, "stream.") {
			publish(events.Event{Type: e.Type, Task: t.ID(), Data: e.Data})
		}
	}
}

// Socket is where other processes of this user reach this one while it works on tasks; see package peer. It answers
// as any server does. It opens with the first task that is taken, and makes the server with the first request, so
// that a process which no other one asks pays nothing.
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

// SocketToken is a token that no client has: for a server that only its socket leads to.
func SocketToken() (string, error) { return random() }

// Address opens the socket, the first time, and returns its address, unix:/path; "" when there is none. It is safe
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
	s.web = &http.Server{
		Handler:           http.HandlerFunc(s.answer),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    32 << 10,
		ConnContext:       ofConn,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	s.wait.Go(func() { _ = s.web.Serve(limited(s.listener, maxPeers, maxPeers/2)) }) // it ends with Close
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
		p := problem(http.StatusServiceUnavailable, "stopping", "The process is ending", "it answers no more requests")
		p.Cause, p.Retryable = err, true
		fail(w, r, p)
		return
	}
	srv.guard(w, r)
}

// socketGrace bounds how long requests may still take when the process ends: followers get the end of their
// streams, and find the rest in the task's journal.
const socketGrace = 500 * time.Millisecond

// Close ends the socket, and the server if there is one. It cuts off requests that take longer than socketGrace.
func (s *Socket) Close() error {
	s.mu.Lock()
	s.closed = true
	srv, web := s.srv, s.web
	s.mu.Unlock()
	if web != nil {
		_ = s.listener.Remove() // if it stays, the next process that listens removes it
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
	if err != nil {
		return fmt.Errorf("close the socket: %w", err)
	}
	return nil
}

// A gate bounds the open connections: one more waits until another ends. Strangers are connections that have not shown
// the token yet; they have a smaller bound. When it is reached, the gate closes the oldest silent stranger, so that a
// user without the token cannot fill the server with connections.
type gate struct {
	net.Listener
	room chan struct{}
	shut chan struct{}
	once sync.Once

	most      int
	left      chan struct{} // a stranger closed, or showed the token
	mu        sync.Mutex
	strangers []*guest // the oldest first
}

// strangerPatience is how long a new stranger may be silent, however many others wait: a client under load needs a
// moment between connecting and sending.
const strangerPatience = 100 * time.Millisecond

// strangerAge bounds how long a stranger may send a little at a time without a request.
const strangerAge = time.Second

func limited(l net.Listener, most, strangers int) *gate {
	return &gate{Listener: l, room: make(chan struct{}, most), shut: make(chan struct{}), most: strangers, left: make(chan struct{}, 1)}
}

// Accept returns the next connection when there is room for it.
func (g *gate) Accept() (net.Conn, error) {
	select {
	case g.room <- struct{}{}:
	case <-g.shut:
		return nil, net.ErrClosed
	}
	conn, err := g.next()
	if err != nil {
		<-g.room
		return nil, err
	}
	c := &guest{Conn: conn, gate: g, came: time.Now()}
	c.leave = sync.OnceFunc(func() { c.known(); <-g.room })
	if p, ok := conn.(*peer.Conn); !ok || !p.SameUser {
		g.mu.Lock()
		g.strangers = append(g.strangers, c)
		g.mu.Unlock()
	}
	return c, nil
}

func (g *gate) next() (net.Conn, error) {
	for {
		full, idle := g.crowd()
		if !full {
			return g.Listener.Accept()
		}
		if idle != nil {
			_ = idle.Close()
			continue
		}
		select {
		case <-g.left:
		case <-time.After(strangerPatience / 4):
		case <-g.shut:
			return nil, net.ErrClosed
		}
	}
}

// crowd reports whether there is no room for a stranger, and which one may be closed for it.
func (g *gate) crowd() (full bool, idle *guest) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.strangers) < g.most {
		return false, nil
	}
	now := time.Now()
	for _, c := range g.strangers {
		since := c.silent.Load()
		if since != 0 && (now.UnixNano()-since >= int64(strangerPatience) || now.Sub(c.came) >= strangerAge) {
			return true, c
		}
	}
	return true, nil
}

// Close ends the listener, and Accept when it waits for room.
func (g *gate) Close() error {
	g.once.Do(func() { close(g.shut) })
	return g.Listener.Close()
}

// guest is an accepted connection.
type guest struct {
	net.Conn
	gate   *gate
	came   time.Time
	leave  func()
	silent atomic.Int64 // since when the server waits for its next bytes, in Unix nanoseconds; 0 = it does not wait
}

// Read waits for the next bytes.
func (c *guest) Read(p []byte) (int, error) {
	c.silent.Store(time.Now().UnixNano())
	n, err := c.Conn.Read(p)
	c.silent.Store(0)
	return n, err
}

// Close ends the connection and makes room for another.
func (c *guest) Close() error {
	c.leave()
	return c.Conn.Close()
}

// known marks a connection that has shown the token.
func (c *guest) known() {
	g := c.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.strangers, c); i >= 0 {
		g.strangers = slices.Delete(g.strangers, i, i+1)
		select {
		case g.left <- struct{}{}:
		default:
		}
	}
}

type guestKey struct{}

// ofConn puts the connection, and whether it is a peer's, into the context of its requests.
func ofConn(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	g, ok := c.(*guest)
	if !ok {
		return ctx
	}
	if p, ok := g.Conn.(*peer.Conn); ok && p.SameUser {
		ctx = context.WithValue(ctx, peerKey{}, true)
	}
	return context.WithValue(ctx, guestKey{}, g)
}

// shown marks the connection of a request that has shown the token.
func shown(r *http.Request) {
	if g, ok := r.Context().Value(guestKey{}).(*guest); ok {
		g.known()
	}
}
