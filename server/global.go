package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	feedlog "github.com/roost-dev/roost/store/feed"
)

const (
	tapesShared = 64 // open at a time for all who follow all tasks
	tapesAlone  = 8  // for one that reads the past
	healEvery   = time.Second
	healMost    = 64 // tasks at a time
	freshEvery  = 2 * time.Second
)

// feedRoutes are the streams beside those of single tasks.
func feedRoutes() []route {
	return []route{
		{path: "/v1/events", summary: "The events of all tasks, as they became durable", media: streamMedia, fails: []int{400, 429}, serve: (*Server).allEvents,
			params: []param{{name: "after", kind: "text", doc: "0: from the oldest that is kept; the id of an event of this stream: what comes behind it. Last-Event-ID goes before it. Neither: only what comes from now on"}, typesParam}},
		{path: "/v1/runs/{rid}/events", summary: "The events of a run, until it has ended; 204 for who has seen the end", media: streamMedia, fails: []int{429}, serve: (*Server).runEvents,
			params: []param{{name: "after", kind: "text", doc: "the id of an event of the task: what comes behind it; else all of the run. Last-Event-ID goes before it"}, typesParam}},
	}
}

// allEvents streams the events of all tasks.
func (s *Server) allEvents(w http.ResponseWriter, a *asked) *Problem {
	given := a.given()
	var from stand
	if given != "" {
		var ok bool
		if from, ok = readStand(given); !ok {
			return problem(http.StatusBadRequest, "bad_cursor", "The cursor cannot be read", "want the id of an event of this stream, or 0 for the oldest that is kept", "after=0")
		}
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
	one, quit, err := s.feeds.open("", s.followAll)
	if err != nil {
		return s.problemOf(a.Context(), context.Canceled, "")
	}
	defer quit()
	f := &follower{s: s, feed: one, w: w, ctl: http.NewResponseController(w), wants: wants, past: s.allPast, stands: s.allStand(one)}
	g, err := f.wait(a.Context())
	if err == nil && given == "" {
		f.at, f.begin = g.newest, g.id
	} else if err == nil {
		f.at = from.place()
		f.unknown, err = s.unknown(from)
	}
	if err != nil {
		return s.problemOf(a.Context(), err, "")
	}
	f.follow(a)
	return nil
}

// unknown reports whether a place is not in the feed.
func (s *Server) unknown(from stand) (bool, error) {
	if from.line == (feedlog.Place{}) {
		return false, nil
	}
	r, err := feedlog.Open(s.opt.Store.FeedDir(), from.line)
	if errors.Is(err, feedlog.ErrUnknown) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, r.Close()
}

// linePlace and lineStand are what stands behind all of a line, as the server and as a
// client has it.
func linePlace(p feedlog.Place) place  { return stand{line: p}.place() }
func lineStand(p feedlog.Place) string { return stand{line: p}.String() }

// entryItems are the items of one commit of a line.
func entryItems(e feedlog.Entry, events []engine.Event) []item {
	out := make([]item, len(events))
	for i, one := range events {
		at := stand{e.At, one.Seq, i}
		out[i] = itemOf(one, at.place(), at.String())
	}
	return out
}

// followAll fills the feed of all tasks until ctx ends. It tells for owners that were
// killed before they could, and keeps the list of tasks as fresh as the events.
func (s *Server) followAll(ctx context.Context, f *feed) error {
	wake, stop := feedlog.Watch(s.opt.Store.FeedDir())
	defer stop()
	r, head, err := feedlog.OpenEnd(s.opt.Store.FeedDir())
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // it was only read
	var here <-chan engine.Event
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.opt.Engine != nil {
		here = s.opt.Engine.Live(ctx, "")
	}
	v := newVoices(here)
	p := &player{store: s.opt.Store, most: tapesShared}
	defer p.close()
	lists := s.refresher()
	defer lists.stop()
	f.begin(linePlace(head), lineStand(head))
	others := s.newEars(v)
	defer others.wait.Wait()
	defer cancel()
	heal := time.NewTicker(healEvery)
	defer heal.Stop()
	gone := map[feedlog.Task]bool{}
	for {
		for ctx.Err() == nil {
			e, ok, err := r.Next()
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			err = p.play(ctx, e, func(events []engine.Event) error {
				v.durable(f, events, entryItems(e, events))
				return nil
			})
			if err != nil {
				return err
			}
			f.pass(linePlace(e.At), lineStand(e.At))
			if e.End {
				delete(v.read, e.Task)
			}
			lists.note()
		}
		select {
		case <-wake:
		case e, ok := <-v.here:
			if !ok {
				v.here = nil
				break
			}
			v.say(f, e)
		case e := <-v.there:
			v.say(f, e)
		case <-v.due.C:
			v.wake(f)
		case <-heal.C:
			left := r.Left()
			s.heal(ctx, left, gone)
			others.listen(ctx, left)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// heal tells the feed of tasks whose owners died: what they synced last may be told
// nowhere. gone are those that are not there.
func (s *Server) heal(ctx context.Context, left map[feedlog.Task]uint64, gone map[feedlog.Task]bool) {
	n := 0
	for task := range left {
		ref, ok := s.opt.Store.LogRef(task.Source, task.ID)
		if !ok || gone[task] || s.opt.Store.Held(ref) {
			continue
		}
		if n++; n > healMost || ctx.Err() != nil {
			return
		}
		if s.opt.Store.Tell(ctx, ref) != nil {
			gone[task] = true // or it cannot be written, which the next one will know better
		}
	}
}

// allPast reads the feed.
func (s *Server) allPast(ctx context.Context, at place, give func(item) error) (end place, err error) {
	end = at
	r, err := feedlog.OpenAt(s.opt.Store.FeedDir(), at.segment, at.offset)
	if err != nil {
		return end, err
	}
	defer func() { _ = r.Close() }() // it was only read
	p := &player{store: s.opt.Store, most: tapesAlone}
	defer p.close()
	for {
		e, ok, err := r.Next()
		if err != nil || !ok {
			return end, err
		}
		if !at.before(linePlace(e.At)) {
			continue // all of it was given
		}
		err = p.play(ctx, e, func(events []engine.Event) error {
			for _, one := range entryItems(e, events) {
				if err := give(one); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return end, err
		}
		end = linePlace(e.At)
	}
}

// stirring are the states of tasks in which something goes on, or somebody is waited for.
var stirring = []string{"queued", "running", "waiting", "delegated"}

// allStand tells which tasks run or wait, to a client whose cursor is unknown.
func (s *Server) allStand(f *feed) snapshotOf {
	return func(ctx context.Context) ([]byte, place, string, error) {
		g := f.look(place{}, 0, nil)
		l, err := s.opt.Store.List(ctx, store.Filter{}) // behind the place: never older than it
		if err != nil {
			return nil, place{}, "", err
		}
		rows := []byte{'['}
		for _, t := range l.Items {
			if !slices.Contains(stirring, t.Status) {
				continue
			}
			row, err := rowOf(t)
			if err != nil {
				return nil, place{}, "", err
			}
			if len(rows) > 1 {
				rows = append(rows, ',')
			}
			rows = append(rows, row...)
		}
		var o esjson.Object
		o.String("type", "stream.snapshot")
		o.String("at", report.Stamp(s.opt.Now().UnixMilli()))
		o.String("reason", "unknown_cursor")
		o.Raw("tasks", append(rows, ']'))
		return o.Bytes(), g.newest, g.id, nil
	}
}
