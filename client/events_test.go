package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// collect follows a task up to its last event, or an error.
func collect(ctx context.Context, c *Client, task, after, last string) (ids, all []string, err error) {
	for e, err := range c.Events(ctx, task, after) {
		if err != nil {
			return ids, all, err
		}
		if all = append(all, e.Type); e.ID != "" {
			ids = append(ids, e.ID)
		}
		if e.ID == last && last != "" {
			break
		}
	}
	return ids, all, nil
}

// log is a fake task: commits of events, served from behind a cursor. breaks says after
// how many bytes a connection is cut, and how many events are said again.
type log struct {
	ids    []string
	breaks func() (bytes, again int)
}

func newLog(n int) *log {
	l := &log{breaks: func() (int, int) { return 1 << 30, 0 }}
	for seq := 1; len(l.ids) < n; seq++ {
		for i := range 1 + seq%3 {
			l.ids = append(l.ids, fmt.Sprintf("1.%d-%d", seq, i))
		}
	}
	l.ids = l.ids[:n]
	return l
}

func (l *log) serve(w http.ResponseWriter, r *http.Request) {
	after := r.Header.Get("Last-Event-ID")
	if after == "" {
		after = r.URL.Query().Get("after")
	}
	left, again := l.breaks()
	at := max(slices.Index(l.ids, after)+1-again, 0)
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "retry: 1\n: connected\n\n")
	for _, id := range l.ids[at:] {
		text := fmt.Sprintf("id: %s\nevent: message.added\ndata: {\"id\":%q}\n\nevent: message.delta\ndata: {}\n\n", id, id)
		if left -= len(text); left < 0 {
			fmt.Fprint(w, text[:len(text)+max(left, -len(text))])
			_ = http.NewResponseController(w).Flush()
			cut(w)
			return
		}
		fmt.Fprint(w, text)
	}
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// Over any cuts, also inside an event, and whatever is said twice, each durable event
// comes once and in order.
func TestEveryEventOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLog(rapid.IntRange(1, 40).Draw(t, "events"))
		seed := rapid.Uint64().Draw(t, "seed")
		dice := rand.New(rand.NewPCG(seed, 1))
		l.breaks = func() (int, int) { return dice.IntN(1500), dice.IntN(4) }
		from := rapid.IntRange(0, len(l.ids)-1).Draw(t, "from")
		after := "0"
		if from > 0 {
			after = l.ids[from-1]
		}
		c := Local(http.HandlerFunc(l.serve), "")
		c.sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		ids, _, err := collect(ctx, c, "x", after, l.ids[len(l.ids)-1])
		if diff := cmp.Diff(l.ids[from:], ids); diff != "" || err != nil {
			t.Fatal(err, diff)
		}
	})
}

// The same over a network, where a cut comes in the middle of everything.
func TestCutConnections(t *testing.T) {
	l := newLog(200)
	dice := rand.New(rand.NewPCG(1, 2))
	l.breaks = func() (int, int) { return 200 + dice.IntN(2000), dice.IntN(2) }
	var lost counter
	c := served(t, l.serve)
	c.opt.Lost = func(error, time.Duration) { lost.next() }
	ids, all, err := collect(soon(t), c, "x", "0", l.ids[199])
	if diff := cmp.Diff(l.ids, ids); diff != "" || err != nil {
		t.Fatal(err, diff)
	}
	if lost.n.Load() < 5 || !slices.Contains(all, "message.delta") {
		t.Errorf("%d cuts were told of, %d events", lost.n.Load(), len(all))
	}
}

// Who asked for what comes from now on, and is cut off before it came, misses nothing:
// the server said where that is.
func TestLiveOnlyMissesNothing(t *testing.T) {
	var n counter
	c := served(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		switch n.next() {
		case 1:
			fmt.Fprint(w, "retry: 1\n\nid: 1.7-0\n\n")
			_ = http.NewResponseController(w).Flush()
			cut(w)
		default:
			fmt.Fprintf(w, "id: 1.8-0\nevent: x\ndata: %q\n\n", r.Header.Get("Last-Event-ID")+r.URL.RawQuery)
		}
	})
	for e, err := range c.Events(soon(t), "x", "") {
		if err != nil || string(e.Data) != `"1.7-0"` {
			t.Errorf("got %s, %v, want no error and string(e.Data) = `\"1.7-0\"`", e.Data, err)
		}
		break
	}
}

// How streams end, and what is waited for.
func TestEnds(t *testing.T) {
	end := func(reason string) string { return "event: stream.end\ndata: {\"reason\":\"" + reason + "\"}\n\n" }
	for _, tt := range []struct {
		name   string
		answer []any // what each connection gets: a stream, or a refusal
		want   []string
		code   string
	}{
		{"the task is gone", []any{end("task_gone")}, []string{"stream.end"}, ""},
		{"the server stops and comes back", []any{end("server_stopping"), Problem{Status: 503, Code: "stopping"}, "id: 1.1-0\nevent: x\ndata: 1\n\n" + end("task_gone")}, []string{"x", "stream.end"}, ""},
		{"it is not there", []any{Problem{Status: 404, Code: "task_not_found"}}, nil, "task_not_found"},
		{"the token is wrong", []any{Problem{Status: 401, Code: "unauthenticated"}}, nil, "unauthenticated"},
		{"it went away meanwhile", []any{"event: x\ndata: 1\n\n", Problem{Status: 404, Code: "task_not_found"}}, []string{"x"}, "task_not_found"},
		{"too many", []any{Problem{Status: 429, Code: "too_many_streams", Retryable: true}, end("task_gone")}, []string{"stream.end"}, ""},
		{"a run that the caller saw end", []any{"event: x\ndata: 1\n\n", http.StatusNoContent}, []string{"x"}, ""},
		{"a broken server", []any{Problem{Status: 500, Code: "internal"}, end("task_gone")}, []string{"stream.end"}, ""},
		{"an unknown place", []any{"id: 1.9-0\nevent: x\ndata: 1\n\nid: 1.2-0\nevent: stream.snapshot\ndata: {}\n\nid: 1.3-0\nevent: y\ndata: 2\n\n" + end("task_gone")}, []string{"x", "stream.snapshot", "y", "stream.end"}, ""},
		{"what is no JSON is nobody's", []any{"event: x\ndata: {\n\n" + end("task_gone")}, []string{"stream.end"}, ""},
	} {
		var n counter
		c := served(t, func(w http.ResponseWriter, _ *http.Request) {
			switch answer := tt.answer[min(n.next()-1, len(tt.answer)-1)].(type) {
			case string:
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, answer)
			case int:
				w.WriteHeader(answer)
			case Problem:
				say(w, answer.Status, answer)
			}
		})
		_, got, err := collect(soon(t), c, "x", "0", "")
		var p *Problem
		if errors.As(err, &p) != (tt.code != "") || (err == nil) != (tt.code == "") || p != nil && p.Code != tt.code || !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, %v, want errors.As(err, &p) = (tt.code != \"\") and (p = nil or p.Code = tt.code) and slices.Equal(got, tt.want)",
				tt.name, got, err)
		}
	}
}

// A server is left in peace: it says when to come back, and who finds nobody waits longer
// each time.
func TestWaits(t *testing.T) {
	c := newClient(t, "http://127.0.0.1:1")
	var waits []time.Duration
	ctx, cancel := context.WithCancel(soon(t))
	c.sleep = func(ctx context.Context, d time.Duration) error {
		if waits = append(waits, d); len(waits) == 8 {
			cancel()
		}
		return ctx.Err()
	}
	_, _, err := collect(ctx, c, "x", "0", "")
	if !errors.Is(err, context.Canceled) || waits[0] != firstRetry || waits[2] != 4*firstRetry || waits[7] != mostRetry {
		t.Error(waits, err)
	}

	c = served(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "retry: 2500\n\n")
	})
	ctx, cancel = context.WithCancel(soon(t))
	c.sleep = func(_ context.Context, d time.Duration) error {
		waits = []time.Duration{d}
		cancel()
		return ctx.Err()
	}
	if _, _, err := collect(ctx, c, "x", "0", ""); !errors.Is(err, context.Canceled) || waits[0] != 2500*time.Millisecond {
		t.Error(waits, err)
	}
}

// The events of all tasks have cursors that only the server can read: none is taken for
// an earlier one.
func TestAllTasks(t *testing.T) {
	c := served(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/events" {
			t.Error(r.URL.Path)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for i, id := range []string{"c9", "1.5-0", "1.2-0", "1.2-0", "end"} {
			fmt.Fprintf(w, "id: %s\nevent: x\ndata: %d\n\n", id, i)
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	ids, _, err := collect(soon(t), c, "", "0", "end")
	if diff := cmp.Diff([]string{"c9", "1.5-0", "1.2-0", "end"}, ids); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// An event's data are the server's own bytes.
func TestData(t *testing.T) {
	const data = `{"a": 1.0,  "b":"\u00e9"}`
	c := served(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: x\ndata: %s\n\n", data)
	})
	for e, err := range c.Events(soon(t), "x", "0") {
		if err != nil || string(e.Data) != data || !json.Valid(e.Data) {
			t.Errorf("got %s, %v, want no error and string(e.Data) = data and json.Valid(e.Data)", e.Data, err)
		}
		break
	}
}

func TestMarks(t *testing.T) {
	for text, want := range map[string]position{"1.2-3": {2, 3}, "12.34-0": {34, 0}, "": {}, "0": {}, "7": {}, "1.2": {}, "a.b-c": {}, "1.-2": {}} {
		if got := positionOf(text); got != want {
			t.Errorf("%q: got %v, want got = %v", text, got, want)
		}
	}
}
