package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/server/peer"
)

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
