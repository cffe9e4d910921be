package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
)

// batchBytes is about how much is written to a follower at a time.
const batchBytes = 64 << 10

// errOver: there is nothing more to follow.
var errOver = errors.New("the run has ended")

// follower is one client that follows a feed.
type follower struct {
	s    *Server
	feed *feed
	w    http.ResponseWriter
	ctl  *http.ResponseController
	buf  []byte
	room []item

	task    string          // "" = all
	at      place           // how far it is
	next    uint64          // where it goes on in the feed; 0 = not there yet
	begin   string          // the id that it begins behind, of one that asked for none
	unknown bool            // the cursor names nothing that is there
	wants   func(item) bool // nil: all
	last    func(item) bool // whether an event ends the stream; nil: none does
	dead    func() bool     // whether nothing more can come; nil: that is not known
	past    readPast        // reads the logs
	stands  snapshotOf      // how things stand
	skipped string          // the id of the newest event that it did not want
}

// readPast gives the durable events behind a place, as far as the logs go now, and how far that is.
type readPast func(ctx context.Context, at place, give func(item) error) (place, error)

// snapshotOf gives the data of stream.snapshot, and the place and id behind which what comes is told.
type snapshotOf func(ctx context.Context) (data []byte, at place, id string, err error)

// wait waits until the feed knows from where on it has events.
func (f *follower) wait(ctx context.Context) (glance, error) {
	for {
		g := f.feed.look(place{}, 0, nil)
		if g.ready {
			return g, nil
		}
		select {
		case <-g.change:
		case <-ctx.Done():
			return g, ctx.Err()
		}
	}
}

// follow answers with the stream, until the client or the server goes, or what it follows
// is over. The end of a follower is no failure: it comes back with its cursor.
func (f *follower) follow(a *asked) {
	h := f.w.Header()
	h.Set("Content-Type", streamMedia)
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no")
	if f.task != "" {
		h.Set("Roost-Task-Id", f.task)
	}
	if f.begin != "" {
		h.Set("Roost-Event-Id", f.begin) // what HEAD is for: where a follower would begin
	}
	f.w.WriteHeader(http.StatusOK)
	if a.Method == http.MethodHead {
		return
	}
	if err := f.stream(a.Context()); err != nil && a.Context().Err() == nil {
		f.s.opt.Log.Debug("stream ended", "path", a.URL.Path, "request_id", h.Get(requestID), "error", err.Error())
	}
}

func (f *follower) stream(ctx context.Context) error {
	f.buf = append(f.buf, "retry: 2000\n: connected\n\n"...)
	if f.begin != "" {
		// An id without data is no event, and is kept all the same: who is cut off before the
		// first event comes back with it, and misses nothing.
		f.bare(f.begin)
	}
	if f.unknown {
		data, at, id, err := f.stands(ctx)
		if err != nil {
			return err
		}
		f.buf = wire(f.buf, id, "stream.snapshot", data)
		f.at = at
	}
	if err := f.flush(); err != nil {
		return err
	}
	beat := time.NewTicker(f.s.opt.Heartbeat)
	defer beat.Stop()
	for {
		g := f.feed.look(f.at, f.next, f.room[:0])
		f.room, f.next = g.events, g.next
		if g.behind {
			at, err := f.past(ctx, f.at, f.give)
			if err = errors.Join(err, f.flush()); err != nil {
				return f.over(err)
			}
			f.at = at
			continue
		}
		for _, one := range g.events {
			if err := f.give(one); err != nil {
				return f.over(err)
			}
		}
		clear(f.room) // events are not held for those who wait
		if err := f.flush(); err != nil {
			return err
		}
		if g.ended != nil && !g.more {
			return f.over(g.ended)
		}
		if g.more {
			continue
		}
		select {
		case <-g.change:
		case <-ctx.Done():
			return ctx.Err()
		case <-f.s.stop:
			return f.over(errStopping)
		case <-beat.C:
			if f.dead != nil && f.dead() {
				// What ended it may stand in the log, and be on its way here.
				_, err := f.past(ctx, f.at, f.give)
				if err == nil {
					err = errOver
				}
				return f.over(err)
			}
			f.buf = append(f.buf, ": heartbeat\n\n"...)
			if f.skipped != "" { // what it did not want need not be looked at again
				f.bare(f.skipped)
				f.skipped = ""
			}
			if err := f.flush(); err != nil {
				return err
			}
		}
	}
}

// bare sends an id without an event.
func (f *follower) bare(id string) {
	f.buf = append(append(append(f.buf, "id: "...), id...), '\n', '\n')
}

// give adds an event, and sends what there is when it is enough.
func (f *follower) give(one item) error {
	select {
	case <-f.s.stop:
		return errStopping
	default:
	}
	if !one.live {
		if !f.at.before(one.at) {
			return nil // it has it
		}
		f.at = one.at
	}
	if f.wants != nil && !f.wants(one) {
		if !one.live {
			f.skipped = one.id
		}
		return nil
	}
	if !one.live {
		f.skipped = ""
	}
	f.buf = append(f.buf, one.text...)
	if f.last != nil && f.last(one) {
		return errOver
	}
	if len(f.buf) >= batchBytes {
		return f.flush()
	}
	return nil
}

// flush sends what was added. A client that does not take it in time is cut off; it
// comes back with its cursor.
func (f *follower) flush() error {
	if len(f.buf) == 0 {
		return nil
	}
	_ = f.ctl.SetWriteDeadline(time.Now().Add(f.s.opt.WriteTimeout)) // a recorder in tests has none
	_, err := f.w.Write(f.buf)
	if f.buf = f.buf[:0]; cap(f.buf) > 4*batchBytes {
		f.buf = nil // one large event must not hold memory for ever
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
	case errors.Is(why, errOver):
		reason = "run_ended"
	case errors.Is(why, journal.ErrNotFound):
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
	f.buf = wire(f.buf, "", "stream.end", o.Bytes())
	return errors.Join(f.flush(), why)
}

// typesParam narrows a stream.
var typesParam = param{name: "types", kind: "text", doc: "only events of these types, joined by commas: run.ended, or message.* for all that begin so"}

// wanted reads the parameter types; nil is all of them. What ends a stream, and how
// things stand, is always told.
func (a *asked) wanted() (func(item) bool, *Problem) {
	text, given := a.text["types"]
	if !given {
		return nil, nil
	}
	list := strings.Split(text, ",")
	for _, one := range list {
		if !plain(strings.TrimSuffix(one, "*")) && one != "*" || len(list) > 64 {
			p := problem(http.StatusUnprocessableEntity, "validation_failed", "A parameter is wrong", "types: want types of events such as run.ended or message.*, joined by commas")
			p.Errors = []Wrong{{"types", "want types of events such as run.ended or message.*, joined by commas"}}
			return nil, p
		}
	}
	return func(i item) bool {
		return slices.ContainsFunc(list, func(one string) bool {
			begin, open := strings.CutSuffix(one, "*")
			return one == i.typ || open && strings.HasPrefix(i.typ, begin)
		})
	}, nil
}
