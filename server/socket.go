package server

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"sync"
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
