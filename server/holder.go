package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/accounts"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/internal/sleep"
	"github.com/roost-dev/roost/server/peer"
	"github.com/roost-dev/roost/service"
)

// Another process of this user may work on a task: roost run in a terminal, or another server. The task's lock file names
// that process's socket (see Socket), and the server passes requests that change the task on to that process, so that a
// client need not know which process works on which task. The server itself reads the task's journal.

const (
	// hopHeader counts how often a request was passed on: the process that works on a task may change, and two
	// processes must not pass a request to each other without end.
	hopHeader = "Roost-Hop"
	notHere   = "not-here" // in an answer: the process did nothing, because it no longer holds the task

	mostHops = 2
)

var errNotHere = errors.New("the process does not hold the task any more")

// subject returns the task that a request would change, as far as it can be found.
func (s *Server) subject(a *asked) (service.Task, bool) {
	ctx, id := a.Context(), a.id
	if rid := a.PathValue("rid"); rid != "" && s.service.ReadOnly() == nil {
		t, _, err := s.service.RunTask(ctx, rid)
		return t, err == nil
	}
	if qid := a.PathValue("qid"); qid != "" {
		id = service.TaskOfQuestion(qid)
	}
	id = cmp.Or(id, a.named())
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

// elsewhere passes on a request that changes a task, or asks for the present state of a run, to the process that works on
// the task. It reports whether that process answered. If the process is silent, elsewhere notes it in a.silent.
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
	address, who, _ := t.Holder(a.Context())
	if address == "" || hops(a.Request) >= mostHops {
		return false
	}
	conn, err := s.dialHolder(a.Context(), address)
	if err != nil {
		if not, is := errors.AsType[*peer.UnreachableError](err); is && not.Silent {
			a.silent = who
		}
		level := slog.LevelDebug
		if s.opt.Group != nil {
			level = slog.LevelWarn // the operator gave the address
		}
		s.opt.Log.Log(a.Context(), level, "not passed on", "path", a.URL.Path, "request_id", w.Header().Get(requestID),
			"server", address, "error", err.Error())
		return false
	}
	return s.passOn(w, a, conn, address)
}

// toWorkspace passes on a request that failed because this server lacks a workspace, to a server that has the workspace.
// It reports whether that server answered.
func (s *Server) toWorkspace(w http.ResponseWriter, a *asked, err error) bool {
	a.unreached = "" // of an attempt before
	at := s.service.Elsewhere(a.Context(), err)
	if at == "" || hops(a.Request) >= mostHops {
		return false
	}
	conn, err := s.dialHolder(a.Context(), at)
	if err != nil {
		s.opt.Log.Warn("not passed on", "path", a.URL.Path, "request_id", w.Header().Get(requestID), "server", at, "error", err.Error())
		a.unreached = at
		return false
	}
	return s.passOn(w, a, conn, at)
}

// notHere refuses work on other tasks in a process that ends with its own tasks. The process that passed the request on
// then carries it out itself.
func (s *Server) notHere(w http.ResponseWriter, a *asked, t service.Task, found bool) bool {
	if found && t.HeldHere(a.Context()) {
		return false
	}
	w.Header().Set(hopHeader, notHere)
	p := problem(http.StatusConflict, "not_here", "This process does not work on the task",
		"the process answers only for the task that it works on; roost serve answers for all tasks", "roost serve")
	fail(w, a.Request, p.Later("").About(a.id))
	return true
}

// passOn sends a request to the process at the other end of a connection, and the process's answer to the client. It
// reports false if that process did nothing because it has released the task: such an answer has the header notHere.
func (s *Server) passOn(w http.ResponseWriter, a *asked, conn net.Conn, address string) (answered bool) {
	answered = true
	ctx, end := s.untilStop(a.Context()) // a stream does not end by itself
	defer end()
	used := make(chan net.Conn, 1)
	used <- conn
	one := &http.Transport{DisableKeepAlives: true, DisableCompression: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			select {
			case c := <-used:
				return c, nil
			default: // the request must not be sent twice
				return nil, &peer.UnreachableError{Why: "the connection broke"}
			}
		}}
	defer one.CloseIdleConnections()
	defer func() { _ = conn.Close() }() // closed already where it was used
	done := w.Header()
	proxy := httputil.ReverseProxy{
		Transport: one, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "localhost" // the connection may have TLS already
			h := r.Out.Header
			// Proofs of the caller are for this server only. The peer knows from the connection which user's process asks.
			for _, name := range []string{"Authorization", "Cookie", "Origin", "Referer"} {
				h.Del(name)
			}
			for name := range h {
				if strings.HasPrefix(name, "Sec-") {
					h.Del(name)
				}
			}
			r.Out.Host = s.introduce(h, address)
			h.Set(hopHeader, strconv.Itoa(hops(a.Request)+1))
			h.Set(requestID, done.Get(requestID))
			h.Del(tokenHeader)
			if c, ok := accounts.Of(a.Context()); ok && c.Token != "" {
				h.Set(tokenHeader, c.Token)
			}
			if key := h.Get(keyHeader); key != "" {
				h.Set(keyHeader, s.ownKey(a, key))
			}
			r.Out.Body, r.Out.ContentLength = http.NoBody, 0
			if len(a.body) > 0 {
				r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(a.body)), int64(len(a.body))
			}
		},
		ModifyResponse: func(r *http.Response) error {
			if r.Header.Get(hopHeader) == notHere {
				return errNotHere
			}
			for name := range done { // the guard has set this header already
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
				"it is unknown whether that process carried the request out; a repeat with the same Idempotency-Key takes effect once")
			s.lament(w, r, p.Because(err).Later("1").About(a.id))
		},
	}
	proxy.ServeHTTP(&relayed{w, http.NewResponseController(w), s.opt.WriteTimeout}, a.WithContext(ctx))
	return answered
}

// untilStop returns a context that also ends with the server. The caller calls end.
func (s *Server) untilStop(ctx context.Context) (until context.Context, end func()) {
	until, cancel := context.WithCancel(ctx)
	undo := context.AfterFunc(s.running, cancel)
	return until, func() { undo(); cancel() }
}

// holderPoll is how often a stream of another process checks whether that process still works on the task.
const holderPoll = time.Second

// liveOfHolder publishes the live events of a task that another process of this user works on, until that process ends or
// releases the task: the next owner may be this process. It leaves out durable events, which the topic reads from the
// journal.
func (s *Server) liveOfHolder(ctx context.Context, t service.Task, publish func(events.Event)) {
	address, _, ok := t.Holder(ctx)
	if !ok || address == "" {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel()
	watch.Go(func() {
		defer cancel()
		for now := address; ok && now == address && sleep.For(ctx, holderPoll); {
			now, _, ok = t.Holder(ctx)
		}
	})
	one := &http.Transport{DisableKeepAlives: true, DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return s.dialHolder(ctx, address)
		}}
	// The client does not connect again: another process may hold the task by then.
	c, err := client.New("http://localhost", client.Options{HTTP: &http.Client{Transport: one},
		Lost: func(error, time.Duration) { cancel() }})
	if err != nil {
		return
	}
	defer c.Close()
	stream := client.Request{Path: "/v1/tasks/" + t.ID() + "/events", Header: http.Header{hopHeader: {"1"}}}
	s.introduce(stream.Header, address)
	var behind events.Cursor
	for e, err := range c.Follow(ctx, stream, "") {
		switch {
		case err != nil:
			return
		case e.ID != "" && e.Type != "message.text_saved": // as in engine.Run, streamed text waits for no such commit
			behind, _ = events.ParseCursor(e.ID)
		case e.ID == "" && !strings.HasPrefix(e.Type, "stream."):
			publish(events.Event{Type: e.Type, Task: t.ID(), Behind: behind.Seq, Data: e.Data})
		}
	}
}
