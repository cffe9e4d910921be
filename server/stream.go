package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/service"
)

// streamRoutes returns the streams of events.
func streamRoutes() []route {
	return []route{
		{on: "GET /v1/tasks/{id}/events", media: streamMedia, fails: []int{429}, serve: (*Server).events},
		{on: "GET /v1/events", media: streamMedia, fails: []int{429}, serve: (*Server).allEvents},
		{on: "GET /v1/runs/{rid}/events", media: streamMedia, also: http.StatusNoContent, fails: []int{429}, engine: true, serve: (*Server).runEvents},
	}
}

// cursor returns the cursor that a client sent, read by parse; given is false if the client sent none. A browser that
// reconnects repeats the address with its old parameter, so the header has precedence.
func (a *asked) cursor(parse func(string) (events.Cursor, bool), want string) (at events.Cursor, given bool, p *api.Problem) {
	text := cmp.Or(a.Header.Get("Last-Event-ID"), a.text["after"])
	at, ok := parse(text)
	if text != "" && !ok {
		return at, true, problem(http.StatusBadRequest, "bad_cursor", "The cursor cannot be read", "want the id of an event "+want, "after=0")
	}
	return at, text != "", nil
}

// enter takes a place among the streams. The caller calls leave.
func (s *Server) enter(a *asked) (leave func(), p *api.Problem) {
	if s.stopped() {
		return nil, s.service.Problem(a.Context(), context.Canceled, a.id)
	}
	leave, left := s.streams.enter(callerOf(a.Request))
	if left != nil {
		p = problem(http.StatusTooManyRequests, "too_many_streams", "Too many streams are open",
			"close some, or follow fewer tasks at a time").Later("5")
	}
	return leave, p
}

const eventID = "such as 1.7-0, or 0 for the start"

// events streams a task's events: those after the cursor, then new ones. It can refuse a request only before it sends
// the head of the answer.
func (s *Server) events(w http.ResponseWriter, a *asked) *api.Problem {
	from, given, p := a.cursor(events.ParseCursor, eventID)
	if p != nil {
		return p
	}
	t, err := s.service.Find(a.Context(), a.id)
	if err != nil {
		return s.problemFor(a, err)
	}
	return s.streamTask(w, a, t, "", from, !given)
}

// runEvents streams the events of one run.
func (s *Server) runEvents(w http.ResponseWriter, a *asked) *api.Problem {
	run := a.PathValue("rid")
	t, doc, err := s.service.RunTask(a.Context(), run)
	if err != nil {
		return s.service.Problem(a.Context(), err, run)
	}
	from, given, p := a.cursor(events.ParseCursor, eventID)
	if p != nil {
		return p
	}
	if given {
		seen, err := t.SawEnd(a.Context(), doc, from)
		if err != nil {
			return s.service.Problem(a.Context(), err, run)
		}
		if seen {
			w.Header().Del("Content-Type")
			w.WriteHeader(http.StatusNoContent) // it makes a browser's EventSource stop
			return nil
		}
	}
	return s.streamTask(w, a, t, run, from, false)
}

// followed streams the events of a task from the start of a run to its end. A client that repeats the request gets the same
// events.
func (s *Server) followed(w http.ResponseWriter, a *asked, f service.Follow) *api.Problem {
	t, err := s.service.FindOwn(a.Context(), f.Task)
	if err != nil {
		return s.problemFor(a, err)
	}
	from, given, p := a.cursor(events.ParseCursor, eventID)
	if p != nil {
		return p
	}
	if !given {
		from, _ = events.ParseCursor(f.From)
	}
	return s.streamTask(w, a, t, f.Run, from, false)
}

// streamTask streams a task's events after a cursor, or from now on. With a run, the stream ends with that run; a run that
// waits for a person has not ended. On a route of a run, it leaves out the events of other runs.
func (s *Server) streamTask(w http.ResponseWriter, a *asked, t service.Task, run string, from events.Cursor, fromNow bool) *api.Problem {
	f := &eventStream{s: s, task: t.ID(), run: run, w: w, snapshot: s.snapshotOfTask(t)}
	if a.PathValue("rid") != "" {
		f.wants = func(i events.Item) bool { return i.Run == run }
	}
	return f.open(a, t.Topic, func(*events.Topic, events.Cursor) (events.Cursor, error) {
		if run != "" {
			w.Header().Set("Roost-Run-Id", run)
			f.runEnded = func() bool { return s.service.RunOver(context.Background(), run) }
		}
		switch {
		case fromNow:
			newest, ok, err := t.Newest(a.Context())
			if ok {
				f.start = newest.String()
			}
			return events.AfterCommit(newest.Seq), err
		case !from.IsStart():
			known, err := t.HasEvent(a.Context(), from)
			f.unknown = !known
			return from, err
		}
		return from, nil
	})
}

// open opens a topic and streams its events. begin gets the topic's newest cursor, and returns the cursor after which the
// stream begins. The topic opens before the journal is read for the cursor, so that no event is lost between the two.
func (f *eventStream) open(a *asked, topic func() (*events.Topic, func(), error),
	begin func(*events.Topic, events.Cursor) (events.Cursor, error)) *api.Problem {
	wants, p := a.wanted()
	if p != nil {
		return p
	}
	leave, p := f.s.enter(a)
	if p != nil {
		return p
	}
	defer leave()
	t, release, err := topic()
	if err != nil {
		return f.s.service.Problem(a.Context(), context.Canceled, f.task)
	}
	defer release()
	if own := f.wants; own == nil {
		f.wants = wants
	} else if wants != nil {
		f.wants = func(i events.Item) bool { return own(i) && wants(i) }
	}
	f.shows = f.s.shows(a.Context())
	from, err := t.Newest(a.Context())
	if err == nil {
		from, err = begin(t, from)
	}
	if err != nil {
		return f.s.service.Problem(a.Context(), err, f.task)
	}
	f.ctl, f.subscriber = http.NewResponseController(f.w), t.Subscribe(from)
	f.serve(a)
	return nil
}

// snapshotOfTask describes a task to a client whose cursor is unknown.
func (s *Server) snapshotOfTask(t service.Task) func(context.Context) (snapshot, error) {
	return func(ctx context.Context) (out snapshot, err error) {
		newest, ok, err := t.Newest(ctx)
		if err != nil {
			return out, err
		}
		if out.name, out.at = "task", events.AfterCommit(newest.Seq); ok {
			out.id = newest.String()
		}
		out.doc, _, err = t.Document(ctx) // after the cursor was read, so that it is not older
		return out, err
	}
}

// allEvents streams the events of all tasks.
func (s *Server) allEvents(w http.ResponseWriter, a *asked) *api.Problem {
	from, given, p := a.cursor(events.ParseAllCursor, "of this stream, or 0 for the oldest that is kept")
	if p != nil {
		return p
	}
	f := &eventStream{s: s, w: w}
	return f.open(a, s.service.AllTopic, func(t *events.Topic, newest events.Cursor) (events.Cursor, error) {
		f.snapshot = s.snapshotOfAll(t)
		if !given {
			f.start = newest.String()
			return newest, nil
		}
		known, err := s.service.HasLine(a.Context(), from)
		f.unknown = !known
		return from, err
	})
}

// activeStates are the states of tasks in which a run works, or waits for a person or a subtask.
var activeStates = []string{"queued", "running", "waiting", "delegated"}

// snapshotOfAll sends the active tasks to a client whose cursor is unknown.
func (s *Server) snapshotOfAll(topic *events.Topic) func(context.Context) (snapshot, error) {
	return func(ctx context.Context) (out snapshot, err error) {
		newest, err := topic.Newest(ctx)
		if err != nil {
			return out, err
		}
		l, _, err := s.service.List(ctx, api.TaskFilter{}) // after the cursor was read, so that it is not older
		rows := slices.DeleteFunc(slices.Clone(l.Items), func(t api.Summary) bool { return !slices.Contains(activeStates, t.Status) })
		return snapshot{name: "tasks", doc: rows, at: newest, id: newest.String()}, err
	}
}

// batchBytes is about how many bytes are written to a client at a time.
const batchBytes = 64 << 10

// errRunEnded: the run whose stream this is has ended.
var errRunEnded = errors.New("the run has ended")

// eventStream writes the events of a topic to one client, as server-sent events.
type eventStream struct {
	subscriber
	s    *Server
	w    http.ResponseWriter
	ctl  *http.ResponseController
	buf  []byte
	task string // "" = all tasks
	run  string // the stream ends with this run; "" = none

	start    string                 // the id after which the stream begins, for a client that sent none
	unknown  bool                   // the cursor of the client names no event that exists
	wants    func(events.Item) bool // nil: all events
	runEnded func() bool            // whether the run has ended; nil: unknown
	skipped  string                 // the id of the newest event, if the client did not want that event

	snapshot func(context.Context) (snapshot, error) // for a client whose cursor is unknown
	shows    func(task, kind string) (bool, error)   // of Server.shows
}

// subscriber is the part of events.Subscriber that a stream needs.
type subscriber interface {
	Read(ctx context.Context, give func(events.Item) error) error
	ReadJournal(ctx context.Context, give func(events.Item) error) error
	Changed() <-chan struct{}
	Skip(to events.Cursor)
}

// snapshot is the state with which a stream begins.
type snapshot struct {
	name string // of the document in stream.snapshot
	doc  any
	at   events.Cursor // the events after it follow
	id   string        // the same for the client; "" = there is no event
}

// serve answers with the stream until the client or the server stops, or the stream ends. A client that disconnects is no
// failure: it may continue with its cursor.
func (f *eventStream) serve(a *asked) {
	h := head(f.w)
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

// head sets the headers of a stream.
func head(w http.ResponseWriter) http.Header {
	h := w.Header()
	h.Set("Content-Type", streamMedia)
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no")
	return h
}

func (f *eventStream) write(ctx context.Context) error {
	f.buf = append(f.buf, "retry: 2000\n: connected\n\n"...)
	if f.start != "" {
		// An id without data is no event, but clients store it: a client that is cut off before the first event continues
		// from this id and misses nothing.
		f.writeID(f.start)
	}
	if f.unknown {
		is, err := f.snapshot(ctx)
		if err != nil {
			return err
		}
		body, err := bytesOf(is.doc)
		if err != nil {
			return err
		}
		var o esjson.Object
		o.String("type", "stream.snapshot")
		if f.task != "" {
			o.String("task_id", f.task)
			o.Int("seq", int64(is.at.Seq))
		}
		o.String("at", api.Stamp(f.s.opt.Now().UnixMilli()))
		o.String("reason", "unknown_cursor")
		o.Raw(is.name, bytes.TrimSpace(body))
		f.buf = events.AppendFrame(f.buf, is.id, "stream.snapshot", o.Bytes())
		f.Skip(is.at)
	}
	if err := f.flush(); err != nil {
		return err
	}
	return f.end(f.loop(ctx, f.s.opt.Heartbeat, f.give, func() error {
		if f.runEnded != nil && f.runEnded() {
			// The event that ended the run may be in the journal and not yet in the topic.
			return cmp.Or(f.ReadJournal(ctx, f.give), errRunEnded)
		}
		f.buf = append(f.buf, ": heartbeat\n\n"...)
		if f.skipped != "" { // a client that reconnects need not pass over these events again
			f.writeID(f.skipped)
			f.skipped = ""
		}
		return nil
	}))
}

// loop passes the events of the topic to give as they come, and calls beat at intervals. It ends when one of the two fails,
// a write to the client fails, or the client or the server stops.
func (f *eventStream) loop(ctx context.Context, interval time.Duration, give func(events.Item) error, beat func() error) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		err := f.Read(ctx, give)
		if err := errors.Join(err, f.flush()); err != nil {
			return err
		}
		select {
		case <-f.Changed():
		case <-ctx.Done():
			return ctx.Err()
		case <-f.s.running.Done():
			return events.ErrClosed
		case <-tick.C:
			if err := beat(); err != nil {
				return err
			}
		}
	}
}

// writeID adds an id without an event.
func (f *eventStream) writeID(id string) {
	f.buf = append(append(append(f.buf, "id: "...), id...), '\n', '\n')
}

// give adds an event to the buffer, and sends the buffer once it is full enough for a write.
func (f *eventStream) give(one events.Item) error {
	select {
	case <-f.s.running.Done():
		return events.ErrClosed
	default:
	}
	shown, err := f.shows(cmp.Or(one.Task, one.Of), one.Type)
	if err != nil {
		return err
	}
	if !shown || f.wants != nil && !f.wants(one) {
		if !one.Live {
			f.skipped = one.CursorID()
		}
		return nil
	}
	if !one.Live {
		f.skipped = ""
	}
	f.buf = append(f.buf, one.Frame...)
	if f.run != "" && service.EndsRun(f.run, one) {
		return errRunEnded
	}
	if len(f.buf) >= batchBytes {
		return f.flush()
	}
	return nil
}

// flush sends the buffer. A client that does not read it in time is cut off; it may continue with its cursor.
func (f *eventStream) flush() error {
	if len(f.buf) == 0 {
		return nil
	}
	_ = f.ctl.SetWriteDeadline(time.Now().Add(f.s.opt.WriteTimeout)) // a recorder in tests has no deadline
	_, err := f.w.Write(f.buf)
	if f.buf = f.buf[:0]; cap(f.buf) > 4*batchBytes {
		f.buf = nil // release the memory of a large event
	}
	if err == nil {
		err = f.ctl.Flush()
	}
	return err
}

// end ends the stream, with a reason if the client can use it.
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

// wanted reads the parameter types; nil means all events. The server always sends the events stream.snapshot and stream.end.
func (a *asked) wanted() (func(events.Item) bool, *api.Problem) {
	text, given := a.text["types"]
	if !given {
		return nil, nil
	}
	list := strings.Split(text, ",")
	for _, one := range list {
		if !events.PlainType(strings.TrimSuffix(one, "*")) && one != "*" || len(list) > 64 {
			return nil, api.Invalid(api.Wrong{Parameter: "types",
				Detail: "want types of events such as run.ended or message.*, joined by commas"})
		}
	}
	return func(i events.Item) bool {
		return slices.ContainsFunc(list, func(one string) bool {
			begin, open := strings.CutSuffix(one, "*")
			return one == i.Type || open && strings.HasPrefix(i.Type, begin)
		})
	}, nil
}
