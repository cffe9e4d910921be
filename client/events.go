package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Event is one event of a task. A durable one has an ID, by which following goes on
// behind it; a delta has none.
type Event struct {
	ID, Type string
	Data     json.RawMessage
}

// Events follows a task, all tasks when task is "", from behind an event on: after is
// an event's ID, "0" for the start, "" for what comes from now on. Over any cut of the
// connection, and any restart of the server, each durable event comes once and in
// order; deltas come as they come.
//
// A stream.snapshot says that the place is not known to the server any more: what comes
// behind it follows what the snapshot holds. A stream.end ends the iteration, but for that
// of a server that stops, which is waited for. Else only ctx ends it, or an error: a
// *Problem when the server refuses for good (401, 404 and the like), an *Unreachable when
// what answers is no server of Roost.
func (c *Client) Events(ctx context.Context, task, after string) iter.Seq2[Event, error] {
	path := "/v1/events"
	if task != "" {
		path = taskPath(task, "events")
	}
	return c.Follow(ctx, Request{Path: path}, after)
}

// Follow is Events for a stream at any path: one that takes Last-Event-ID, and after
// where a stream is begun.
func (c *Client) Follow(ctx context.Context, r Request, after string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f := &following{c: c, ask: r, after: after, retry: firstRetry, yield: yield}
		if readMark(after) != (mark{}) {
			f.last = after
		}
		f.place(f.last)
		f.run(ctx)
	}
}

const (
	firstRetry = time.Second // until the server says
	mostRetry  = 30 * time.Second
	// silence is how long a stream may say nothing, not even that it lives, which it does
	// every ten seconds.
	silence = 45 * time.Second
)

// following is one iteration of Events.
type following struct {
	c     *Client
	ask   Request
	after string
	yield func(Event, error) bool

	last  string // the newest id
	at    mark   // the same, where it is one of a task's
	retry time.Duration
	fails int // in a row
	over  bool
}

// mark is the place of an event of one task. A log is one line of commits: whatever the
// epoch, what was behind a commit stays behind it.
type mark struct{ seq, index uint64 }

func readMark(id string) (m mark) {
	_, rest, ok := strings.Cut(id, ".")
	seq, index, ok2 := strings.Cut(rest, "-")
	if !ok || !ok2 {
		return mark{}
	}
	var err, err2 error
	m.seq, err = strconv.ParseUint(seq, 10, 63)
	m.index, err2 = strconv.ParseUint(index, 10, 63)
	if err != nil || err2 != nil {
		return mark{}
	}
	return m
}

// place notes where the stream is.
func (f *following) place(id string) {
	f.last, f.at = id, mark{}
	if strings.HasSuffix(f.ask.Path, "/events") && f.ask.Path != "/v1/events" {
		f.at = readMark(id)
	}
}

// had reports whether a durable event came before: a server may say one twice, rather
// than not at all.
func (f *following) had(id string) bool {
	if id == f.last {
		return true
	}
	m := readMark(id)
	return f.at.seq > 0 && m.seq > 0 && (m.seq < f.at.seq || m.seq == f.at.seq && m.index <= f.at.index)
}

func (f *following) run(ctx context.Context) {
	for {
		err := f.connect(ctx)
		if f.over {
			return
		}
		if ctx.Err() != nil {
			f.yield(Event{}, fmt.Errorf("follow %s: %w", f.c.base, context.Cause(ctx)))
			return
		}
		wait := f.retry
		var p *Problem
		var un *Unreachable
		switch {
		case errors.As(err, &p):
			if p.Status != http.StatusTooManyRequests && p.Status < 500 {
				f.yield(Event{}, p)
				return
			}
			f.fails++
			wait = max(wait, p.after)
		case errors.As(err, &un):
			// What stands in front of a server that starts again answers for it.
			if f.fails++; f.fails > 20 {
				f.yield(Event{}, un)
				return
			}
		case err != nil && unsent(err):
			f.fails++
		}
		if f.fails > 1 {
			wait = min(wait<<min(f.fails-1, 10), mostRetry)
		}
		if f.c.opt.Lost != nil {
			f.c.opt.Lost(plainly(err), wait)
		}
		if err := f.c.sleep(ctx, wait); err != nil {
			f.yield(Event{}, fmt.Errorf("follow %s: %w", f.c.base, err))
			return
		}
	}
}

// errEnd is the end of a stream that says no more than that.
var errEnd = errors.New("the stream ended")

// connect follows until the connection ends.
func (f *following) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := f.ask
	r.Header = r.Header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set("Accept", "text/event-stream")
	switch {
	case f.last != "":
		r.Header.Set("Last-Event-ID", f.last)
	case f.after != "":
		r.Query = clone(r.Query)
		r.Query.Set("after", f.after)
	}
	quiet := time.AfterFunc(silence, cancel)
	defer quiet.Stop()
	resp, err := f.c.send(ctx, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media != "text/event-stream" {
		return &Unreachable{f.c.base, errors.New("what answers there is no server of roost: its answer is no event stream")}
	}
	in := bufio.NewReaderSize(&awake{resp.Body, quiet}, 64<<10)
	for {
		e, err := readFrame(in)
		if errors.Is(err, io.EOF) {
			return errEnd
		}
		if err != nil {
			return err
		}
		f.fails = 0
		if e.retry > 0 {
			f.retry = e.retry
		}
		if !f.take(e) {
			f.over = true
			return nil
		}
		if e.event && e.typ == "stream.end" {
			return errEnd
		}
	}
}

// take gives what a frame holds to the caller; false ends the iteration.
func (f *following) take(e frame) bool {
	if !e.event {
		if e.hasID && e.id != "" && !f.had(e.id) {
			f.place(e.id)
		}
		return true
	}
	if !json.Valid(e.data) {
		return true // nothing of ours
	}
	out := Event{ID: e.id, Type: e.typ, Data: e.data}
	switch {
	case e.typ == "stream.snapshot":
		if e.id != "" {
			f.place(e.id) // wherever that is
		}
	case e.typ == "stream.end":
		var why struct {
			Reason string `json:"reason"`
		}
		_ = json.Unmarshal(e.data, &why) // it is valid; another type has no reason
		if why.Reason == "server_stopping" || why.Reason == "slow_reader" {
			return true
		}
		f.yield(out, nil)
		return false
	case e.id != "":
		if f.had(e.id) {
			return true
		}
		f.place(e.id)
	}
	return f.yield(out, nil)
}

// awake notes that a stream lives.
type awake struct {
	io.Reader
	quiet *time.Timer
}

func (a *awake) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if n > 0 {
		a.quiet.Reset(silence)
	}
	return n, err
}

func clone(v url.Values) url.Values {
	out := url.Values{}
	for name, values := range v {
		out[name] = values
	}
	return out
}

// Mark is the newest durable event of a task, as Events takes it; "0" when it has none.
func (c *Client) Mark(ctx context.Context, task string) (string, error) {
	head, err := c.Ask(ctx, Request{Method: http.MethodHead, Path: taskPath(task, "events"), Header: http.Header{"Accept": {"text/event-stream"}}}, nil)
	var silent *Unreachable
	if errors.As(err, &silent) { // a refusal without a body: the task itself says why
		if _, why := c.Task(ctx, task); why != nil {
			err = why
		}
	}
	if err != nil {
		return "", err
	}
	if id := head.Get("Roost-Event-Id"); id != "" {
		return id, nil
	}
	return "0", nil
}
