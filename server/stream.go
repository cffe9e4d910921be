package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/server/idempotency"
	"github.com/roost-dev/roost/service"
)

// given is the cursor that a client sent. A browser that comes back asks the same
// address, so the header goes before the parameter.
func (a *asked) given() string {
	if last := a.Header.Get("Last-Event-ID"); last != "" {
		return last
	}
	return a.text["after"]
}

// enter takes a place among the streams; leave must be called.
func (s *Server) enter(a *asked) (leave func(), p *api.Problem) {
	if s.stopping.Load() {
		return nil, s.problemOf(a.Context(), context.Canceled, a.id)
	}
	leave, ok := s.streams.enter(addressOf(a.Request))
	if !ok {
		p = tooManyStreams()
	}
	return leave, p
}

// events streams a task's events: those behind the cursor, then new ones. Everything that can be refused is refused
// before the head of the answer.
func (s *Server) events(w http.ResponseWriter, a *asked) *api.Problem {
	given := a.given()
	from, ok := events.ParseCursor(given)
	if given != "" && !ok {
		return problem(http.StatusBadRequest, "bad_cursor", "The cursor cannot be read",
			"want the id of an event such as 1.7-0, or 0 for the start", "after=0")
	}
	wants, p := a.wanted()
	if p != nil {
		return p
	}
	t, err := s.service.Find(a.Context(), a.id)
	if err != nil {
		p := s.problemOf(a.Context(), err, a.id)
		p.Task = a.id
		return p
	}
	return s.streamTask(w, a, t, func(ctx context.Context, f *eventStream) (events.Cursor, error) {
		f.wants = wants
		if given != "" {
			return from, f.check(ctx, t, from)
		}
		newest, ok, err := t.Newest(ctx)
		if ok {
			f.start = newest.String()
		}
		return events.AfterCommit(newest.Seq), err
	})
}

// streamTask streams a task's events; prepare sets how, and gives the cursor from which the stream starts.
func (s *Server) streamTask(w http.ResponseWriter, a *asked, t service.Task,
	prepare func(context.Context, *eventStream) (events.Cursor, error)) *api.Problem {
	leave, p := s.enter(a)
	if p != nil {
		return p
	}
	defer leave()
	topic, release, err := t.Topic()
	if err != nil {
		return s.problemOf(a.Context(), context.Canceled, a.id)
	}
	defer release()
	f := &eventStream{s: s, task: t.ID(), w: w, ctl: http.NewResponseController(w), snapshot: s.snapshotOfTask(t)}
	// The topic opens before the journal is read for the cursor, so that no event is lost between the two.
	_, err = topic.Newest(a.Context())
	var from events.Cursor
	if err == nil {
		from, err = prepare(a.Context(), f)
	}
	if err != nil {
		return s.problemOf(a.Context(), err, t.ID())
	}
	f.subscriber = topic.Subscribe(from)
	f.serve(a)
	return nil
}

// check notes whether a cursor names no event of the task.
func (f *eventStream) check(ctx context.Context, t service.Task, from events.Cursor) error {
	if from.IsStart() {
		return nil
	}
	known, err := t.HasEvent(ctx, from)
	f.unknown = !known
	return err
}

// snapshotOfTask describes a task to a client whose cursor is unknown.
func (s *Server) snapshotOfTask(t service.Task) snapshotOf {
	return func(ctx context.Context) (data []byte, at events.Cursor, id string, err error) {
		newest, ok, err := t.Newest(ctx)
		if err != nil {
			return nil, at, "", err
		}
		doc, _, err := t.Document(ctx) // after the cursor was read, so that it is not older
		if err != nil {
			return nil, at, "", err
		}
		row, err := rowOf(doc)
		if err != nil {
			return nil, at, "", err
		}
		var o esjson.Object
		o.String("type", "stream.snapshot")
		o.String("task_id", t.ID())
		o.Int("seq", int64(newest.Seq))
		o.String("at", api.Stamp(s.opt.Now().UnixMilli()))
		o.String("reason", "unknown_cursor")
		o.Raw("task", row)
		if ok {
			id = newest.String()
		}
		return o.Bytes(), events.AfterCommit(newest.Seq), id, nil
	}
}

// rowOf is a task's summary as lists have it.
func rowOf(t api.Summary) ([]byte, error) {
	var row bytes.Buffer
	enc := json.NewEncoder(&row)
	enc.SetEscapeHTML(false)
	err := enc.Encode(t)
	return bytes.TrimSpace(row.Bytes()), err
}

// streamRoutes are the streams beside those of single tasks.
func streamRoutes() []route {
	return []route{
		{path: "/v1/events", summary: "The events of all tasks, as they became durable", media: streamMedia,
			fails: []int{400, 429}, serve: (*Server).allEvents,
			params: []param{{name: "after", kind: "text", doc: "0: from the oldest that is kept; the id of an event of this " +
				"stream: what comes behind it. Last-Event-ID goes before it. Neither: only what comes from now on"}, typesParam}},
		{path: "/v1/runs/{rid}/events", summary: "The events of a run, until it has ended; 204 for a client that has seen the end",
			media: streamMedia, fails: []int{429}, serve: (*Server).runEvents,
			params: []param{{name: "after", kind: "text", doc: "the id of an event of the task: what comes behind it; else " +
				"all of the run. Last-Event-ID goes before it"}, typesParam}},
	}
}

// allEvents streams the events of all tasks.
func (s *Server) allEvents(w http.ResponseWriter, a *asked) *api.Problem {
	given := a.given()
	from, ok := events.ParseAllCursor(given)
	if given != "" && !ok {
		return problem(http.StatusBadRequest, "bad_cursor", "The cursor cannot be read",
			"want the id of an event of this stream, or 0 for the oldest that is kept", "after=0")
	}
	wants, p := a.wanted()
	if p != nil {
		return p
	}
	leave, p := s.enter(a)
	if p != nil {
		return p
	}
	defer leave()
	topic, release, err := s.service.AllTopic()
	if err != nil {
		return s.problemOf(a.Context(), context.Canceled, "")
	}
	defer release()
	defer s.lists.use(s, topic)()
	f := &eventStream{s: s, w: w, ctl: http.NewResponseController(w), wants: wants, snapshot: s.snapshotOfAll(topic)}
	newest, err := topic.Newest(a.Context())
	if err == nil && given == "" {
		from, f.start = newest, newest.String()
	} else if err == nil {
		var known bool
		known, err = s.service.HasLine(from)
		f.unknown = !known
	}
	if err != nil {
		return s.problemOf(a.Context(), err, "")
	}
	f.subscriber = topic.Subscribe(from)
	f.serve(a)
	return nil
}

// activeStates are the states of tasks in which a run works, or waits for a person or a subtask.
var activeStates = []string{"queued", "running", "waiting", "delegated"}

// snapshotOfAll sends the active tasks to a client whose cursor is unknown.
func (s *Server) snapshotOfAll(topic *events.Topic) snapshotOf {
	return func(ctx context.Context) ([]byte, events.Cursor, string, error) {
		newest, err := topic.Newest(ctx)
		if err != nil {
			return nil, events.Cursor{}, "", err
		}
		l, _, err := s.service.List(ctx, api.TaskFilter{}) // after the cursor was read, so that it is not older
		if err != nil {
			return nil, events.Cursor{}, "", err
		}
		rows := []byte{'['}
		for _, t := range l.Items {
			if !slices.Contains(activeStates, t.Status) {
				continue
			}
			row, err := rowOf(t)
			if err != nil {
				return nil, events.Cursor{}, "", err
			}
			if len(rows) > 1 {
				rows = append(rows, ',')
			}
			rows = append(rows, row...)
		}
		var o esjson.Object
		o.String("type", "stream.snapshot")
		o.String("at", api.Stamp(s.opt.Now().UnixMilli()))
		o.String("reason", "unknown_cursor")
		o.Raw("tasks", append(rows, ']'))
		return o.Bytes(), newest, newest.String(), nil
	}
}

// listRefresh is the pause between two lists of a listRefresher.
const listRefresh = 2 * time.Second

// listRefresher lists the tasks now and then while a client follows all of them. A list derives again what changed
// since the previous one, so a person who opens the list later waits for the last two seconds only.
type listRefresher struct {
	mu    sync.Mutex
	users int
	stop  func()
}

// use keeps the lists fresh until done is called.
func (l *listRefresher) use(s *Server, topic *events.Topic) (done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users++; l.users == 1 {
		ctx, cancel := context.WithCancel(context.Background())
		var wait sync.WaitGroup
		wait.Go(func() { s.refreshLists(ctx, topic) })
		l.stop = func() { cancel(); wait.Wait() }
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.users--; l.users == 0 {
			l.stop()
		}
	}
}

func (s *Server) refreshLists(ctx context.Context, topic *events.Topic) {
	seen, err := topic.Newest(ctx)
	for err == nil {
		change := topic.Changed()
		newest, failed := topic.Newest(ctx)
		if err = failed; err == nil && newest != seen {
			seen = newest
			_ = s.service.Refresh(ctx) // a user who lists the tasks sees the error
			select {
			case <-ctx.Done():
			case <-time.After(listRefresh):
			}
			continue
		}
		select {
		case <-change:
		case <-ctx.Done():
		}
		err = errors.Join(err, ctx.Err())
	}
}

// streamRun answers with the events of a task behind a place, until one of its runs has
// ended; a run that waits for a person has not. Then stream.end says so. Who comes back
// with Last-Event-ID goes on there.
func (s *Server) streamRun(w http.ResponseWriter, a *asked, t service.Task, from events.Cursor, run string) *api.Problem {
	if last := a.Header.Get("Last-Event-ID"); last != "" {
		var ok bool
		if from, ok = events.ParseCursor(last); !ok {
			return problem(http.StatusBadRequest, "bad_cursor", "The cursor cannot be read", "want the id of an event such as 1.7-0")
		}
	}
	w.Header().Set("Roost-Run-Id", run)
	return s.streamTask(w, a, t, func(ctx context.Context, f *eventStream) (events.Cursor, error) {
		f.last, f.runEnded = service.EndsRun(run), s.over(run)
		return from, f.check(ctx, t, from)
	})
}

// over reports whether a run has ended, also one that was killed.
func (s *Server) over(run string) func() bool {
	return func() bool { return s.service.RunOver(context.Background(), run) }
}

// runEvents streams the events of a run alone.
func (s *Server) runEvents(w http.ResponseWriter, a *asked) *api.Problem {
	if s.service.ReadOnly() != nil {
		return problem(http.StatusServiceUnavailable, "read_only", "This server only reads", "it does not know runs", "GET /v1/tasks")
	}
	wants, p := a.wanted()
	if p != nil {
		return p
	}
	run := a.PathValue("rid")
	t, doc, err := s.service.RunTask(a.Context(), run)
	if err != nil {
		return s.problemOf(a.Context(), err, run)
	}
	from := events.Cursor{}
	if given := a.given(); given != "" {
		var ok bool
		if from, ok = events.ParseCursor(given); !ok {
			return problem(http.StatusBadRequest, "bad_cursor", "The cursor cannot be read", "want the id of an event such as 1.7-0")
		}
		seen, err := t.SawEnd(a.Context(), doc, from)
		if err != nil {
			return s.problemOf(a.Context(), err, run)
		}
		if seen {
			w.Header().Del("Content-Type")
			w.WriteHeader(http.StatusNoContent) // it makes a browser's EventSource stop
			return nil
		}
	}
	w.Header().Set("Roost-Run-Id", run)
	return s.streamTask(w, a, t, func(ctx context.Context, f *eventStream) (events.Cursor, error) {
		f.last, f.runEnded = service.EndsRun(run), s.over(run)
		f.wants = func(i events.Item) bool { return i.Run == run && (wants == nil || wants(i)) }
		return from, f.check(ctx, t, from)
	})
}

func followedOf(f service.Follow) *idempotency.Followed {
	if f.Run == "" {
		return nil
	}
	out := &idempotency.Followed{Task: f.Task, Run: f.Run}
	if !f.From.IsStart() {
		out.From = f.From.String()
	}
	return out
}

// followed streams the events of a run, the same ones to a client that repeats the request.
func (s *Server) followed(w http.ResponseWriter, a *asked, f idempotency.Followed) *api.Problem {
	t, err := s.service.FindOwn(a.Context(), f.Task)
	if err != nil {
		return s.problemFor(a, err)
	}
	at, _ := events.ParseCursor(f.From)
	return s.streamRun(w, a, t, at, f.Run)
}

// batchBytes is about how many bytes are written to a client at a time.
const batchBytes = 64 << 10

// errRunEnded: the run whose stream this is has ended.
var errRunEnded = errors.New("the run has ended")

// eventStream writes the events of a topic to one client as server-sent events.
type eventStream struct {
	subscriber
	s    *Server
	w    http.ResponseWriter
	ctl  *http.ResponseController
	buf  []byte
	task string // "" = all tasks

	start    string                 // the id that the stream continues, for a client that sent none
	unknown  bool                   // the cursor of the client names no event that exists
	wants    func(events.Item) bool // nil: all events
	last     func(events.Item) bool // whether an event ends the stream; nil: none does
	runEnded func() bool            // whether the run has ended; nil: unknown
	snapshot snapshotOf             // for a client whose cursor is unknown
	skipped  string                 // the id of the newest event that the client did not want
}

// subscriber is the part of events.Subscriber that a stream needs.
type subscriber interface {
	Read(ctx context.Context, give func(events.Item) error) error
	ReadJournal(ctx context.Context, give func(events.Item) error) error
	Changed() <-chan struct{}
	Skip(to events.Cursor)
}

// snapshotOf gives the data of stream.snapshot, the cursor from which the stream continues, and its id for the client.
type snapshotOf func(ctx context.Context) (data []byte, at events.Cursor, id string, err error)

// serve answers with the stream until the client or the server stops, or the stream ends. A client that stops is no
// failure: it comes back with its cursor.
func (f *eventStream) serve(a *asked) {
	h := f.w.Header()
	h.Set("Content-Type", streamMedia)
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no")
	if f.task != "" {
		h.Set("Roost-Task-Id", f.task)
	}
	if f.start != "" {
		h.Set("Roost-Event-Id", f.start) // for HEAD: where a stream would start
	}
	f.w.WriteHeader(http.StatusOK)
	if a.Method == http.MethodHead {
		return
	}
	if err := f.write(a.Context()); err != nil && a.Context().Err() == nil {
		f.s.opt.Log.Debug("stream ended", "path", a.URL.Path, "request_id", h.Get(requestID), "error", err.Error())
	}
}

func (f *eventStream) write(ctx context.Context) error {
	f.buf = append(f.buf, "retry: 2000\n: connected\n\n"...)
	if f.start != "" {
		// An id without data is no event, but clients keep it: one that is cut off before the first event comes back
		// with it and misses nothing.
		f.writeID(f.start)
	}
	if f.unknown {
		data, at, id, err := f.snapshot(ctx)
		if err != nil {
			return err
		}
		f.buf = events.AppendFrame(f.buf, id, "stream.snapshot", data)
		f.Skip(at)
	}
	if err := f.flush(); err != nil {
		return err
	}
	beat := time.NewTicker(f.s.opt.Heartbeat)
	defer beat.Stop()
	for {
		err := f.Read(ctx, f.give)
		if err := errors.Join(err, f.flush()); err != nil {
			return f.end(err)
		}
		select {
		case <-f.Changed():
		case <-ctx.Done():
			return ctx.Err()
		case <-f.s.stop:
			return f.end(events.ErrClosed)
		case <-beat.C:
			if f.runEnded != nil && f.runEnded() {
				// The event that ended it may be in the journal and not in the topic yet.
				err := f.ReadJournal(ctx, f.give)
				if err == nil {
					err = errRunEnded
				}
				return f.end(err)
			}
			f.buf = append(f.buf, ": heartbeat\n\n"...)
			if f.skipped != "" { // the client need not read again what it did not want
				f.writeID(f.skipped)
				f.skipped = ""
			}
			if err := f.flush(); err != nil {
				return err
			}
		}
	}
}

// writeID adds an id without an event.
func (f *eventStream) writeID(id string) {
	f.buf = append(append(append(f.buf, "id: "...), id...), '\n', '\n')
}

// give adds an event, and sends what was added when that is enough for one write.
func (f *eventStream) give(one events.Item) error {
	select {
	case <-f.s.stop:
		return events.ErrClosed
	default:
	}
	if f.wants != nil && !f.wants(one) {
		if !one.Live {
			f.skipped = one.CursorID()
		}
		return nil
	}
	if !one.Live {
		f.skipped = ""
	}
	f.buf = append(f.buf, one.Frame...)
	if f.last != nil && f.last(one) {
		return errRunEnded
	}
	if len(f.buf) >= batchBytes {
		return f.flush()
	}
	return nil
}

// flush sends what was added. A client that does not take it in time is cut off; it comes back with its cursor.
func (f *eventStream) flush() error {
	if len(f.buf) == 0 {
		return nil
	}
	_ = f.ctl.SetWriteDeadline(time.Now().Add(f.s.opt.WriteTimeout)) // a recorder in tests has none
	_, err := f.w.Write(f.buf)
	if f.buf = f.buf[:0]; cap(f.buf) > 4*batchBytes {
		f.buf = nil // release the memory of a large event
	}
	if err == nil {
		err = f.ctl.Flush()
	}
	return err
}

// end ends the stream, with a reason where the client can use it.
func (f *eventStream) end(why error) error {
	reason := ""
	switch {
	case errors.Is(why, events.ErrClosed):
		reason = "server_stopping"
	case errors.Is(why, errRunEnded):
		reason = "run_ended"
	case errors.Is(why, events.ErrGone):
		reason = "task_gone"
	default:
		return why
	}
	var o esjson.Object
	o.String("type", "stream.end")
	if f.task != "" {
		o.String("task_id", f.task)
	}
	o.String("reason", reason)
	f.buf = events.AppendFrame(f.buf, "", "stream.end", o.Bytes())
	return errors.Join(f.flush(), why)
}

// typesParam narrows a stream.
var typesParam = param{name: "types", kind: "text", doc: "only events of these types, joined by commas: run.ended, or " +
	"message.* for all that begin so"}

// wanted reads the parameter types; nil means all events. The events stream.snapshot and stream.end are always sent.
func (a *asked) wanted() (func(events.Item) bool, *api.Problem) {
	text, given := a.text["types"]
	if !given {
		return nil, nil
	}
	list := strings.Split(text, ",")
	for _, one := range list {
		if !events.PlainType(strings.TrimSuffix(one, "*")) && one != "*" || len(list) > 64 {
			p := problem(http.StatusUnprocessableEntity, "validation_failed", "A parameter is wrong",
				"types: want types of events such as run.ended or message.*, joined by commas")
			p.Errors = []api.Wrong{{Parameter: "types", Detail: "want types of events such as run.ended or message.*, joined by commas"}}
			return nil, p
		}
	}
	return func(i events.Item) bool {
		return slices.ContainsFunc(list, func(one string) bool {
			begin, open := strings.CutSuffix(one, "*")
			return one == i.Type || open && strings.HasPrefix(i.Type, begin)
		})
	}, nil
}

// streams counts the open streams.
type streams struct {
	mu          sync.Mutex
	total, each int
	now         int
	by          map[string]int
}

// enter takes one of the streams that are allowed, in total and for one client; ok is false when there is none left.
func (s *streams) enter(client string) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now >= s.total || s.by[client] >= s.each {
		return nil, false
	}
	s.now++
	s.by[client]++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.now--
		if s.by[client]--; s.by[client] == 0 {
			delete(s.by, client)
		}
	}), true
}

// open counts the open streams.
func (s *streams) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}
