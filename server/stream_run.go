package server

import (
	"context"
	"net/http"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/store"
)

// streamRun answers with the events of a task behind a place, until one of its runs has
// ended; a run that waits for a person has not. Then stream.end says so. Who comes back
// with Last-Event-ID goes on there.
func (s *Server) streamRun(w http.ResponseWriter, a *asked, ref store.Ref, from events.Cursor, run string) *api.Problem {
	if last := a.Header.Get("Last-Event-ID"); last != "" {
		var ok bool
		if from, ok = events.ParseCursor(last); !ok {
			return problem(http.StatusBadRequest, "bad_cursor", "The cursor cannot be read", "want the id of an event such as 1.7-0")
		}
	}
	w.Header().Set("Roost-Run-Id", run)
	return s.streamTask(w, a, ref, func(ctx context.Context, f *eventStream) (events.Cursor, error) {
		f.last, f.runEnded = endOf(run), s.over(run)
		return from, f.check(ctx, ref, from)
	})
}

func endOf(run string) func(events.Item) bool {
	return func(i events.Item) bool { return i.Type == "run.ended" && i.Run == run }
}

// over reports whether a run has ended, also one that was killed.
func (s *Server) over(run string) func() bool {
	return func() bool {
		if s.opt.Engine == nil {
			return false
		}
		info, err := s.opt.Engine.RunByID(context.Background(), run)
		return err == nil && !slices.Contains([]string{"queued", "running", "waiting"}, info.State)
	}
}

// runEvents streams the events of a run alone.
func (s *Server) runEvents(w http.ResponseWriter, a *asked) *api.Problem {
	if s.opt.Engine == nil {
		return problem(http.StatusServiceUnavailable, "read_only", "This server only reads", "it does not know runs", "GET /v1/tasks")
	}
	wants, p := a.wanted()
	if p != nil {
		return p
	}
	run := a.PathValue("rid")
	info, err := s.opt.Engine.RunByID(a.Context(), run)
	if err != nil {
		return s.problemOf(a.Context(), err, run)
	}
	from := events.Cursor{}
	if given := a.given(); given != "" {
		var ok bool
		if from, ok = events.ParseCursor(given); !ok {
			return problem(http.StatusBadRequest, "bad_cursor", "The cursor cannot be read", "want the id of an event such as 1.7-0")
		}
		seen, err := s.seen(a.Context(), info, from)
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
	return s.streamTask(w, a, info.Ref, func(ctx context.Context, f *eventStream) (events.Cursor, error) {
		f.last, f.runEnded = endOf(run), s.over(run)
		f.wants = func(i events.Item) bool { return i.Run == run && (wants == nil || wants(i)) }
		return from, f.check(ctx, info.Ref, from)
	})
}

// seen reports whether a run has ended, and its end is not behind a cursor.
func (s *Server) seen(ctx context.Context, info engine.RunInfo, from events.Cursor) (bool, error) {
	if info.Ended == 0 {
		return false, nil
	}
	more := false
	err := events.ReadJournal(ctx, s.opt.Store, info.Ref, from, func(i events.Item) error {
		more = more || endOf(info.ID)(i)
		return nil
	})
	return !more, err
}
