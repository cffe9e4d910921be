package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
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
func (s *Server) enter(a *asked) (leave func(), p *Problem) {
	if s.stopping.Load() {
		return nil, s.problemOf(a.Context(), context.Canceled, a.id)
	}
	leave, ok := s.streams.enter(addressOf(a.Request))
	if !ok {
		p = problem(http.StatusTooManyRequests, "too_many_streams", "Too many streams are open", "close some, or follow fewer tasks at a time")
		p.Retryable, p.after = true, "5"
	}
	return leave, p
}

// events streams a task's events: what lies behind the cursor, then what comes.
// Whatever can be refused is refused before the stream's head.
func (s *Server) events(w http.ResponseWriter, a *asked) *Problem {
	from, ok := readWhere(a.given())
	if !ok {
		return problem(http.StatusBadRequest, "bad_cursor", "The cursor cannot be read", "want the id of an event such as 1.7-0, or 0 for the start", "after=0")
	}
	wants, p := a.wanted()
	if p != nil {
		return p
	}
	ref, err := s.opt.Store.Find(a.Context(), a.id)
	if err != nil {
		p := s.problemOf(a.Context(), err, a.id)
		p.Task = a.id
		return p
	}
	return s.followIn(w, a, ref, from, func(f *follower) { f.wants = wants })
}

// followIn streams a task's events from a place on; more says what else holds for the follower.
func (s *Server) followIn(w http.ResponseWriter, a *asked, ref store.Ref, from where, more func(*follower)) *Problem {
	leave, p := s.enter(a)
	if p != nil {
		return p
	}
	defer leave()
	one, quit, err := s.feeds.join(ref)
	if err != nil {
		return s.problemOf(a.Context(), context.Canceled, a.id)
	}
	defer quit()
	f := &follower{s: s, task: ref.ID, feed: one, w: w, ctl: http.NewResponseController(w), past: s.pastOf(ref), stands: s.taskStands(ref)}
	more(f)
	if err := f.place(a.Context(), ref, from); err != nil {
		return s.problemOf(a.Context(), err, ref.ID)
	}
	f.follow(a)
	return nil
}

// place finds where a follower of a task begins.
func (f *follower) place(ctx context.Context, ref store.Ref, from where) error {
	if _, err := f.wait(ctx); err != nil {
		return err
	}
	switch {
	case from.live:
		newest, ok, err := engine.Newest(ctx, f.s.opt.Store, ref)
		if f.at = behind(newest.Seq); ok {
			f.begin = newest.String()
		}
		return err
	case from.whole && from.mark.Seq == 0:
		return nil
	case from.whole:
		newest, _, err := engine.Newest(ctx, f.s.opt.Store, ref)
		if err != nil {
			return err
		}
		f.at, f.unknown = from.place(), from.mark.Seq > newest.Seq
		return nil
	}
	known, err := engine.Knows(ctx, f.s.opt.Store, ref, from.mark)
	f.at, f.unknown = from.place(), !known
	return err
}

// pastOf reads a task's log.
func (s *Server) pastOf(ref store.Ref) readPast {
	return func(ctx context.Context, at place, give func(item) error) (place, error) {
		after := at.seq
		if after > 0 && at.index != behind(0).index {
			after-- // of that commit it has a part
		}
		tape, err := engine.OpenTape(ctx, s.opt.Store, ref, after)
		if err != nil {
			return at, err
		}
		for events, err := range tape.Read(ctx) {
			if err != nil {
				return at, errors.Join(err, tape.Close())
			}
			for _, one := range itemsOf(events) {
				if err := give(one); err != nil {
					return at, errors.Join(err, tape.Close())
				}
			}
		}
		// Commits that are damaged have no events.
		if now := behind(tape.Seq()); at.before(now) {
			at = now
		}
		return at, tape.Close()
	}
}

// taskStands tells how a task stands, to a client whose cursor is unknown.
func (s *Server) taskStands(ref store.Ref) snapshotOf {
	return func(ctx context.Context) (data []byte, at place, id string, err error) {
		newest, ok, err := engine.Newest(ctx, s.opt.Store, ref)
		if err != nil {
			return nil, at, "", err
		}
		v, err := s.opt.Store.Read(ctx, ref) // behind the mark: never older than it
		if err != nil {
			return nil, at, "", err
		}
		row, err := rowOf(v.Summary)
		if err = errors.Join(err, v.Close()); err != nil {
			return nil, at, "", err
		}
		var o esjson.Object
		o.String("type", "stream.snapshot")
		o.String("task_id", ref.ID)
		o.Int("seq", int64(newest.Seq))
		o.String("at", report.Stamp(s.opt.Now().UnixMilli()))
		o.String("reason", "unknown_cursor")
		o.Raw("task", row)
		if ok {
			id = newest.String()
		}
		return o.Bytes(), behind(newest.Seq), id, nil
	}
}

// rowOf is a task's summary as lists have it.
func rowOf(t store.Summary) ([]byte, error) {
	var row bytes.Buffer
	enc := json.NewEncoder(&row)
	enc.SetEscapeHTML(false)
	err := enc.Encode(t)
	return bytes.TrimSpace(row.Bytes()), err
}
