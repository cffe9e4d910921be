package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"time"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
)

// batchBytes is about how much is written to a follower at a time.
const batchBytes = 64 << 10

// events streams a task's events: what lies behind the cursor, then what comes.
// Whatever can be refused is refused before the stream's head.
func (s *Server) events(w http.ResponseWriter, a *asked) *Problem {
	given := a.text["after"]
	if last := a.Header.Get("Last-Event-ID"); last != "" {
		given = last // a browser that comes back asks the same address
	}
	from, ok := readWhere(given)
	if !ok {
		return problem(http.StatusBadRequest, "bad_cursor", "The cursor cannot be read", "want the id of an event such as 1.7-0, or 0 for the start", "after=0")
	}
	ref, err := s.opt.Store.Find(a.Context(), a.id)
	if err != nil {
		p := s.problemOf(a.Context(), err, a.id)
		p.Task = a.id
		return p
	}
	if s.stopping.Load() {
		return s.problemOf(a.Context(), context.Canceled, a.id)
	}
	leave, ok := s.streams.enter(addressOf(a.Request))
	if !ok {
		p := problem(http.StatusTooManyRequests, "too_many_streams", "Too many streams are open", "close some, or follow fewer tasks at a time")
		p.Retryable, p.after = true, "5"
		return p
	}
	defer leave()
	one, quit, err := s.feeds.join(ref)
	if err != nil {
		return s.problemOf(a.Context(), context.Canceled, a.id)
	}
	defer quit()
	f := &follower{s: s, ref: ref, feed: one, w: w, ctl: http.NewResponseController(w)}
	if err := f.place(a.Context(), from); err != nil {
		return s.problemOf(a.Context(), err, a.id)
	}
	h := w.Header()
	h.Set("Content-Type", streamMedia)
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no")
	h.Set("Roost-Task-Id", ref.ID)
	w.WriteHeader(http.StatusOK)
	if a.Method == http.MethodHead {
		return nil
	}
	// The end of a follower is no failure: it comes back with its cursor.
	if err := f.follow(a.Context()); err != nil && a.Context().Err() == nil {
		s.opt.Log.Debug("stream ended", "path", a.URL.Path, "request_id", h.Get(requestID), "error", err.Error())
	}
	return nil
}

// follower is one client that follows a task.
type follower struct {
	s    *Server
	ref  store.Ref
	feed *feed
	w    http.ResponseWriter
	ctl  *http.ResponseController
	buf  bytes.Buffer

	at      position
	begin   string // the id of the event that it begins behind, of one that asked for none
	unknown bool   // the cursor names no event of the log
}

// place finds where the follower begins.
func (f *follower) place(ctx context.Context, from where) error {
	for g := f.feed.look(position{}); !g.ready; g = f.feed.look(position{}) {
		select {
		case <-g.change:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	switch {
	case from.live:
		newest, ok, err := engine.Newest(ctx, f.s.opt.Store, f.ref)
		if f.at = (position{seq: newest.Seq}); ok {
			f.begin = newest.String()
		}
		return err
	case from.whole && from.mark.Seq == 0:
		return nil
	case from.whole:
		newest, _, err := engine.Newest(ctx, f.s.opt.Store, f.ref)
		if err != nil {
			return err
		}
		f.at, f.unknown = from.position(), from.mark.Seq > newest.Seq
		return nil
	}
	known, err := engine.Knows(ctx, f.s.opt.Store, f.ref, from.mark)
	f.at, f.unknown = from.position(), !known
	return err
}

// follow writes until the client or the server goes, or the task is gone.
func (f *follower) follow(ctx context.Context) error {
	f.buf.WriteString("retry: 2000\n: connected\n\n")
	if f.begin != "" {
		// An id without data is no event, and is kept all the same: who is cut off before the
		// first event comes back with it, and misses nothing.
		f.buf.WriteString("id: " + f.begin + "\n\n")
	}
	if f.unknown {
		if err := f.snapshot(ctx); err != nil {
			return err
		}
	}
	if err := f.flush(); err != nil {
		return err
	}
	beat := time.NewTicker(f.s.opt.Heartbeat)
	defer beat.Stop()
	for {
		g := f.feed.look(f.at)
		if g.behind {
			if err := f.catchUp(ctx); err != nil {
				return f.over(err)
			}
			continue
		}
		for _, events := range g.events {
			if err := f.write(f.at.take(events)); err != nil {
				return err
			}
		}
		if err := f.flush(); err != nil {
			return err
		}
		if g.ended != nil {
			return f.over(g.ended)
		}
		select {
		case <-g.change:
		case <-ctx.Done():
			return ctx.Err()
		case <-f.s.stop:
			return f.over(errStopping)
		case <-beat.C:
			f.buf.WriteString(": heartbeat\n\n")
			if err := f.flush(); err != nil {
				return err
			}
		}
	}
}

// catchUp reads the log itself, as far as it goes now.
func (f *follower) catchUp(ctx context.Context) error {
	tape, err := engine.OpenTape(ctx, f.s.opt.Store, f.ref, f.at.seq)
	if err != nil {
		return err
	}
	read := f.drain(tape.Read(ctx))
	if read == nil && tape.Seq() > f.at.seq {
		f.at = position{seq: tape.Seq()} // commits that are damaged have no events
	}
	return errors.Join(read, tape.Close())
}

func (f *follower) drain(commits iter.Seq2[[]engine.Event, error]) error {
	for events, err := range commits {
		if err != nil {
			return err
		}
		select {
		case <-f.s.stop:
			return errStopping
		default:
		}
		if err := f.write(f.at.take(events)); err != nil {
			return err
		}
	}
	return f.flush()
}

// write adds events, and sends them when there are enough.
func (f *follower) write(events []engine.Event) error {
	for _, e := range events {
		f.event(e.ID, e.Type, e.Data)
		if f.buf.Len() >= batchBytes {
			if err := f.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// event adds one event. What stands in a log may have been made by anybody: no type
// and no data of it may begin another line.
func (f *follower) event(id, typ string, data []byte) {
	if id != "" {
		f.buf.WriteString("id: " + id + "\n")
	}
	if plain(typ) {
		f.buf.WriteString("event: " + typ + "\n")
	}
	if bytes.ContainsAny(data, "\r\n") {
		var flat bytes.Buffer
		if json.Compact(&flat, data) == nil {
			data = flat.Bytes()
		}
		data = bytes.Map(func(r rune) rune {
			if r == '\r' || r == '\n' {
				return ' '
			}
			return r
		}, data)
	}
	f.buf.WriteString("data: ")
	f.buf.Write(data)
	f.buf.WriteString("\n\n")
}

func plain(typ string) bool {
	for _, c := range []byte(typ) {
		if c < 'a' || c > 'z' {
			if c != '.' && c != '_' {
				return false
			}
		}
	}
	return typ != ""
}

// flush sends what was added. A client that does not take it in time is cut off; it
// comes back with its cursor.
func (f *follower) flush() error {
	if f.buf.Len() == 0 {
		return nil
	}
	_ = f.ctl.SetWriteDeadline(time.Now().Add(f.s.opt.WriteTimeout)) // a recorder in tests has none
	_, err := f.w.Write(f.buf.Bytes())
	f.buf.Reset()
	if f.buf.Cap() > 4*batchBytes {
		f.buf = bytes.Buffer{} // one large event must not hold memory for ever
	}
	if err == nil {
		err = f.ctl.Flush()
	}
	return err
}

// over ends the stream and says why, where the client can do something about it.
func (f *follower) over(why error) error {
	reason := ""
	switch {
	case errors.Is(why, errStopping):
		reason = "server_stopping"
	case errors.Is(why, journal.ErrNotFound):
		reason = "task_gone"
	default:
		return why
	}
	var o esjson.Object
	o.String("type", "stream.end")
	o.String("task_id", f.ref.ID)
	o.String("reason", reason)
	f.event("", "stream.end", o.Bytes())
	return errors.Join(f.flush(), why)
}

// snapshot tells a client whose cursor is unknown how the task stands, and from which
// event on it is told what comes.
func (f *follower) snapshot(ctx context.Context) error {
	newest, ok, err := engine.Newest(ctx, f.s.opt.Store, f.ref)
	if err != nil {
		return err
	}
	v, err := f.s.opt.Store.Read(ctx, f.ref) // behind the mark: never older than it
	if err != nil {
		return err
	}
	var row bytes.Buffer
	enc := json.NewEncoder(&row)
	enc.SetEscapeHTML(false)
	if err := errors.Join(enc.Encode(v.Summary), v.Close()); err != nil {
		return err
	}
	var o esjson.Object
	o.String("type", "stream.snapshot")
	o.String("task_id", f.ref.ID)
	o.Int("seq", int64(newest.Seq))
	o.String("at", report.Stamp(f.s.opt.Now().UnixMilli()))
	o.String("reason", "unknown_cursor")
	o.Raw("task", bytes.TrimSpace(row.Bytes()))
	id := ""
	if ok {
		id = newest.String()
	}
	f.event(id, "stream.snapshot", o.Bytes())
	f.at, f.unknown = position{seq: newest.Seq}, false
	return nil
}
