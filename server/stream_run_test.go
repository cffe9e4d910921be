package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/events"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// The stream of a run that goes on with a task of which a run was killed holds that end, too,
// in one commit with its own beginning. It goes on to the end of its own run.
func TestTheStreamOfARunEndsWithThatRun(t *testing.T) {
	g := newWorkingBench(t)
	first := g.started(`[{tools: [{name: attempt_completion, input: {result: first}}]}]`)
	g.state(first.ID, "completed")
	ref := fixture.Must[refOf](t)(g.store.Find(t.Context(), first.Task))
	var owned *store.Owned
	var busy *journal.BusyError
	for end := time.Now().Add(patience); owned == nil; time.Sleep(5 * time.Millisecond) { // the run lets go of it behind its end
		var err error
		if owned, err = g.store.Own(t.Context(), ref); err != nil && (!errors.As(err, &busy) || time.Now().After(end)) {
			t.Fatal(err)
		}
	}
	if err := owned.Task.Commit(t.Context(), task.RunStarted{Run: "killed", Settings: owned.Task.State().Settings}); err != nil {
		t.Fatal(err)
	}
	if err := owned.Task.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	resp := g.send("POST", "/v1/tasks/"+first.Task+"/runs", `{"message":{"text":"again"}}`, "Accept: "+streamMedia)
	run := resp.Header.Get("Roost-Run-Id")
	s := &stream{t: t, resp: resp, in: bufio.NewReader(resp.Body)}
	var ends []string
	for f, ok := s.next(); ok; f, ok = s.next() {
		if f.Type == "run.ended" {
			of, _ := esjson.GetString([]byte(f.Data), "run_id")
			how, _ := esjson.GetString([]byte(f.Data), "outcome")
			ends = append(ends, of+" "+how)
		}
		if f.Type == "stream.end" {
			break
		}
	}
	if got, want := fmt.Sprint(ends), fmt.Sprint([]string{"killed interrupted", run + " completed"}); got != want {
		t.Errorf("it tells of the ends %s, want %s", got, want)
	}
}

// A heartbeat may find that a run has ended before the events of its end came by: those are
// told first.
func TestTheEndOfARunIsToldBeforeItsStreamEnds(t *testing.T) {
	for name, c := range map[string]struct {
		log  []events.Item
		fail error
		want string
	}{
		"its end stands in the log": {[]events.Item{
			{Cursor: events.AfterCommit(1), Event: events.Event{Type: "turn.ended", Run: "r"}, Frame: []byte("data: turn\n\n")},
			{Cursor: events.AfterCommit(2), Event: events.Event{Type: "run.ended", Run: "r"}, Frame: []byte("data: over\n\n")},
			{Cursor: events.AfterCommit(3), Event: events.Event{Type: "run.started", Run: "r2"}, Frame: []byte("data: next\n\n")},
		}, nil, "data: turn\n\ndata: over\n\n" + `event: stream.end` + "\n" + `data: {"type":"stream.end","task_id":"t","reason":"run_ended"}` + "\n\n"},
		"it was killed, and nobody wrote down that it ended": {nil, nil, "event: stream.end\n" + `data: {"type":"stream.end","task_id":"t","reason":"run_ended"}` + "\n\n"},
		"the task is gone": {nil, journal.ErrNotFound, "event: stream.end\n" + `data: {"type":"stream.end","task_id":"t","reason":"task_gone"}` + "\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			f := &eventStream{
				subscriber: journalOnly{c.log, c.fail},
				s:          &Server{opt: Options{Heartbeat: time.Millisecond}, running: t.Context()},
				task:       "t",
				w:          w,
				ctl:        http.NewResponseController(w),
				run:        "r",
				runEnded:   func() bool { return true },
				shows:      new(Server).shows(t.Context()),
			}
			_ = f.write(t.Context()) // the client gets the reason
			if _, got, _ := strings.Cut(w.Body.String(), ": connected\n\n"); got != c.want {
				t.Errorf("it tells\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// journalOnly is a topic that has no events yet and whose journal has some.
type journalOnly struct {
	log  []events.Item
	fail error
}

func (j journalOnly) Read(context.Context, func(events.Item) error) error { return nil }
func (j journalOnly) Changed() <-chan struct{}                            { return nil }
func (j journalOnly) Skip(events.Cursor)                                  {}

func (j journalOnly) ReadJournal(_ context.Context, give func(events.Item) error) error {
	for _, one := range j.log {
		if err := give(one); err != nil {
			return err
		}
	}
	return j.fail
}
