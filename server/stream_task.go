package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/events"
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
