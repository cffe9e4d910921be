package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/events"
)

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
