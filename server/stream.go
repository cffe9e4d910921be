package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/events"
)

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
