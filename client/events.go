package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/esjson"
)

// Event is one event of a task. A durable event has an ID, from which a later call of Events can continue; a delta has none.
type Event struct {
	ID, Type string
	Data     json.RawMessage
}

// Text returns a member of the data that is a string; "" when it is absent.
func (e Event) Text(member string) string { return esjson.TextOf(e.Data, member) }

// Events yields the events of a task, or of all tasks if task is "", that follow the event with the ID after; "0" means from
// the start, "" from now on. Each durable event comes once and in order, even if the connection breaks or the server
// restarts; deltas come only while they are live.
//
// A stream.snapshot means that the server no longer knows the cursor: the events after it follow the state in the snapshot.
// A stream.end ends the iteration, unless the server is stopping: then Events waits for the next server. The answer 204,
// which means that the caller has seen the end of a run, ends it, too. Otherwise the end of ctx ends the iteration, or an
// error: a *Problem if the server refuses for good (401, 404 and the like), an *Unreachable if no server of Roost
// answers.
func (c *Client) Events(ctx context.Context, task, after string) iter.Seq2[Event, error] {
	path := "/v1/events"
	if task != "" {
		path = TaskPath(task, "events")
	}
	return c.Follow(ctx, Request{Path: path}, after)
}

// Follow is Events for the stream at any path that accepts Last-Event-ID and, for the first request, the parameter
// after.
func (c *Client) Follow(ctx context.Context, r Request, after string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f := &following{c: c, ask: r, after: after, retry: firstRetry, yield: yield}
		if positionOf(after) != (position{}) {
			f.last = after
		}
		f.moveTo(f.last)
		f.run(ctx)
	}
}

const (
	firstRetry = time.Second // until the server names another time
	mostRetry  = 30 * time.Second
	// silence bounds how long a stream may send nothing. A server sends a heartbeat every ten seconds.
	silence = 45 * time.Second
)

// following is one iteration of Events.
type following struct {
	c     *Client
	ask   Request
	after string
	yield func(Event, error) bool

	last  string   // the newest id
	at    position // the same, in the stream of one task
	retry time.Duration
	fails int // consecutive failures
	over  bool
}

// position is the position of an event in the order of its task's events. The epoch is no part of it, because the sequence
// of commits grows through all epochs.
type position struct{ seq, index uint64 }

func positionOf(id string) (m position) {
	_, place, _ := strings.Cut(id, ".")
	seq, index, _ := strings.Cut(place, "-")
	var err [2]error
	m.seq, err[0] = strconv.ParseUint(seq, 10, 64)
	m.index, err[1] = strconv.ParseUint(index, 10, 64)
	if errors.Join(err[:]...) != nil {
		return position{}
	}
	return m
}

// moveTo notes the newest event of the stream.
func (f *following) moveTo(id string) {
	f.last, f.at = id, position{}
	if strings.HasSuffix(f.ask.Path, "/events") && f.ask.Path != "/v1/events" {
		f.at = positionOf(id)
	}
}

// had reports whether the caller got a durable event before. A server may send an event twice, but never omits one.
func (f *following) had(id string) bool {
	if id == f.last {
		return true
	}
	m := positionOf(id)
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
			wait = max(wait, after(p))
		case errors.As(err, &un):
			// A proxy may answer while its server restarts.
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

// errEnd is the end of a stream without a reason.
var errEnd = errors.New("the stream ended")

// connect reads events until the connection ends.
func (f *following) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := f.ask
	r.Header = http.Header{}
	maps.Copy(r.Header, f.ask.Header)
	r.Header.Set("Accept", "text/event-stream")
	switch {
	case f.last != "":
		r.Header.Set("Last-Event-ID", f.last)
	case f.after != "":
		r.Query = url.Values{}
		maps.Copy(r.Query, f.ask.Query)
		r.Query.Set("after", f.after)
	}
	quiet := time.AfterFunc(silence, cancel)
	defer quiet.Stop()
	resp, err := f.c.send(ctx, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent { // a run has ended, and the caller has seen that
		f.over = true
		return nil
	}
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media != "text/event-stream" {
		return &Unreachable{f.c.base, errors.New("this is not a server of roost: its answer is not an event stream")}
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
		if !f.yieldFrame(e) {
			f.over = true
			return nil
		}
		if e.event && e.typ == "stream.end" {
			return errEnd
		}
	}
}

// yieldFrame yields the event of a frame; false ends the iteration.
func (f *following) yieldFrame(e frame) bool {
	if !e.event {
		if e.hasID && e.id != "" && !f.had(e.id) {
			f.moveTo(e.id)
		}
		return true
	}
	if !esjson.Valid(e.data) {
		return true // not an event of Roost
	}
	out := Event{ID: e.id, Type: e.typ, Data: e.data}
	switch {
	case e.typ == "stream.snapshot":
		if e.id != "" {
			f.moveTo(e.id) // even if the id is older
		}
	case e.typ == "stream.end":
		if out.Text("reason") == "server_stopping" {
			return true
		}
		f.yield(out, nil)
		return false
	case e.id != "":
		if f.had(e.id) {
			return true
		}
		f.moveTo(e.id)
	}
	return f.yield(out, nil)
}

// awake restarts the timer for a silent stream at each read.
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

// Mark returns the ID of a task's newest durable event, for Events; "0" if the task has none.
func (c *Client) Mark(ctx context.Context, task string) (string, error) {
	head, err := c.Ask(ctx, Request{
		Method: http.MethodHead,
		Path:   TaskPath(task, "events"),
		Header: http.Header{"Accept": {"text/event-stream"}},
	}, nil)
	if _, is := errors.AsType[*Unreachable](err); is { // a refusal without a body: the task document has the reason
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

// frame is the text between two blank lines of an event stream.
type frame struct {
	id    string
	hasID bool
	typ   string
	data  []byte
	event bool          // the frame has data; a frame without data is no event, but its id is valid
	retry time.Duration // 0 = not given
}

// frameBytes bounds one event: a server that never ends an event must not fill the memory.
const frameBytes = 128 << 20

var errFrame = errors.New("an event has too many bytes")

// readFrame reads up to the next blank line, as the EventSource specification requires. A frame that is cut off
// before its blank line is not an event.
func readFrame(in *bufio.Reader) (f frame, err error) {
	size := 0
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if size += len(part); size > frameBytes {
			return frame{}, errFrame
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			if errors.Is(err, io.EOF) && size > 0 {
				err = io.ErrUnexpectedEOF
			}
			return frame{}, err
		}
		text := bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if len(text) == 0 {
			if f.event {
				f.data = bytes.TrimSuffix(f.data, []byte("\n"))
			}
			return f, nil
		}
		f.take(text)
		line = line[:0]
	}
}

func (f *frame) take(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			f.id, f.hasID = string(value), true
		}
	case "event":
		f.typ = string(value)
	case "data":
		f.data, f.event = append(append(f.data, value...), '\n'), true
	case "retry":
		if n, err := strconv.Atoi(string(value)); err == nil && n >= 0 && strings.Trim(string(value), "0123456789") == "" {
			f.retry = time.Duration(min(n, 60_000)) * time.Millisecond
		}
	}
}
