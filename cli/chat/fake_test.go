package chat

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/api"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// desk is a Backend whose runs do what the test says.
type desk struct {
	t       *testing.T
	mu      sync.Mutex
	logs    map[string][]client.Event
	grew    chan struct{}
	calls   []string // in order
	refuse  error    // of the next words
	unknown error    // why nobody can say how a task stands
	cut     error    // of the streams, for good
	open    []api.Question
	prompts []string
	modes   []string
	says    map[string]Said // by the first word of a command of roost
	status  string
	runs    int
	made    int

	facts Facts

	answering func() // while an answer is given
}

func newDesk(t *testing.T) *desk {
	return &desk{t: t, logs: map[string][]client.Event{}, grew: make(chan struct{}), says: map[string]Said{}, status: "completed"}
}

func (d *desk) called(what string, with ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range with {
		data, err := json.Marshal(w)
		if err != nil {
			panic(err)
		}
		what += " " + string(data)
	}
	d.calls = append(d.calls, what)
}

func (d *desk) refused() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.refuse
	d.refuse = nil
	return err
}

func (d *desk) run(id string) api.Run {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.runs++
	return api.Run{ID: fmt.Sprintf("run%d", d.runs), Task: id}
}

func (d *desk) Start(_ context.Context, t api.NewTask) (api.Run, error) {
	d.called("start "+t.Message.Text, t)
	if err := d.refused(); err != nil {
		return api.Run{}, err
	}
	d.mu.Lock()
	d.made++
	id := fmt.Sprintf("t%d", d.made)
	d.mu.Unlock()
	return d.run(id), nil
}

func (d *desk) Resume(_ context.Context, id string, n api.NewRun) (api.Run, error) {
	d.called("resume "+id, n)
	if err := d.refused(); err != nil {
		return api.Run{}, err
	}
	return d.run(id), nil
}

func (d *desk) Send(_ context.Context, id string, m api.Message) (api.Sent, error) {
	d.called("send "+id, m)
	if err := d.refused(); err != nil {
		return api.Sent{}, err
	}
	if m.Delivery == "queue" {
		return api.Sent{Delivered: "queued", Task: id}, nil
	}
	return api.Sent{Delivered: "started", Task: id, Run: d.run(id).ID}, nil
}

func (d *desk) Cancel(_ context.Context, id string) (api.Run, error) {
	d.called("cancel " + id)
	return api.Run{}, d.refused()
}

func (d *desk) Questions(_ context.Context, id string) ([]api.Question, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open, nil
}

func (d *desk) Answer(_ context.Context, q string, a api.Answer) (api.Answered, error) {
	d.called("answer "+q, a)
	d.mu.Lock()
	answering := d.answering
	d.mu.Unlock()
	if answering != nil {
		answering()
	}
	return api.Answered{Run: "run9"}, d.refused()
}

func (d *desk) EditQueued(_ context.Context, id, input string, text *string) error {
	d.called("queue "+id+" "+input, text)
	return nil
}

func (d *desk) Task(_ context.Context, ref string) (api.Summary, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unknown != nil {
		return api.Summary{}, d.unknown
	}
	return api.Summary{ID: strings.TrimPrefix(ref, "own:"), Source: "own", Workspace: "/w", Mode: "code", Model: "m1", Status: d.status}, nil
}

func (d *desk) Command(_ context.Context, args ...string) Said {
	d.called("roost " + strings.Join(args, " "))
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.says[args[0]]
}

// Shell prints what the test wants of a line.
func (d *desk) Shell(ctx context.Context, dir, line string, out io.Writer) (Ran, error) {
	d.called("shell " + dir + " " + line)
	if err := d.refused(); err != nil {
		return Ran{}, err
	}
	said := d.says["!"+line]
	if _, err := io.WriteString(out, said.Out); err != nil {
		return Ran{}, err
	}
	if said.Code < 0 {
		<-ctx.Done()
		return Ran{Cancelled: true, Exit: 143}, nil
	}
	return Ran{Exit: said.Code}, nil
}

func (d *desk) Image(path string) (string, error) {
	if strings.Contains(path, "missing") {
		return "", errNotNow
	}
	return "data:image/png;base64,aaaa", nil
}

func (d *desk) Facts(_ context.Context, task string, n api.NewTask, again api.NewRun) Facts {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.facts
	if f.Mode = cmp.Or(f.Mode, again.Mode, n.Mode); task != "" {
		f.Mode = cmp.Or(f.Mode, "code")
	}
	return f
}

func (d *desk) Mask(text string) string { return strings.ReplaceAll(text, "hunter2", "[REDACTED]") }

func (d *desk) Words(_ context.Context, kind Kind, _, newWorkingChat string) []Word {
	var out []Word
	for _, w := range map[Kind][]string{Prompts: d.prompts, Modes: d.modes, Files: {"main.go", "main_test.go", "my file"}, Tasks: {"0199", "0200"}}[kind] {
		if strings.HasPrefix(w, newWorkingChat) {
			out = append(out, Word{Text: w, About: "about " + w})
		}
	}
	return out
}

func (d *desk) Passes(_ context.Context, _, _, name string) bool {
	return slices.Contains(d.prompts, name)
}

// Events follows as a server does: with a cursor that nobody knows a snapshot comes first.
func (d *desk) Events(ctx context.Context, id, after string) iter.Seq2[client.Event, error] {
	return func(yield func(client.Event, error) bool) {
		at := 0
		if after == nowhere {
			d.mu.Lock()
			at = len(d.logs[id])
			status := d.status
			d.mu.Unlock()
			if !yield(client.Event{Type: "stream.snapshot", Data: fmt.Appendf(nil, `{"task":{"status":%q}}`, status)}, nil) {
				return
			}
		}
		for {
			d.mu.Lock()
			events, grew, cut := d.logs[id][at:], d.grew, d.cut
			d.mu.Unlock()
			for _, e := range events {
				at++
				if !yield(e, nil) {
					return
				}
			}
			if cut != nil {
				yield(client.Event{}, cut)
				return
			}
			select {
			case <-grew:
			case <-ctx.Done():
				yield(client.Event{}, ctx.Err())
				return
			}
		}
	}
}

// emit lets something happen in a task. data is a JSON object's members.
func (d *desk) emit(id, typ, data string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := len(d.logs[id]) + 1
	data = fmt.Sprintf(data, args...)
	if data != "" {
		data = "," + data
	}
	d.logs[id] = append(d.logs[id], client.Event{ID: fmt.Sprintf("1.%d-0", n), Type: typ,
		Data: fmt.Appendf(nil, `{"type":%q,"task_id":%q,"at":"2026-01-02T03:04:%02d.000Z"%s}`, typ, id, n%60, data)})
	close(d.grew)
	d.grew = make(chan struct{})
}

// cuts ends all streams for good, behind what has happened.
func (d *desk) cuts(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cut = err
	close(d.grew)
	d.grew = make(chan struct{})
}

// replies lets a run say something and end.
func (d *desk) replies(id, run, words string) {
	d.emit(id, "run.started", `"run":%q`, run)
	d.emit(id, "message.added", `"history":"ui","message":7,"content":{"ts":1,"type":"say","say":"text","text":%q}`, words)
	d.emit(id, "run.ended", `"run":%q,"outcome":"completed"`, run)
}

// chatting is a chat on a desk, with what it printed.
type chatting struct {
	*Session
	t       *testing.T
	backend *desk
	mu      sync.Mutex
	buf     bytes.Buffer
}

func (c *chatting) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buf.Write(p)
}

func (c *chatting) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buf.String()
}

func talking(t *testing.T, d *desk, change ...func(*Options)) *chatting {
	t.Helper()
	o := Options{Ask: true, New: api.NewTask{Workspace: "/w"}, Display: display.Options{Live: true, Width: 80}}
	for _, f := range change {
		f(&o)
	}
	c := &chatting{t: t, backend: d}
	c.Session = New(context.Background(), d, o)
	c.out.through(c)
	c.Session.mu.Lock()
	c.st.echoes = true
	c.Session.mu.Unlock()
	t.Cleanup(c.Close)
	return c
}

// within polls until ok; it may take long on a busy machine.
func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(4 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never happened: %s", what)
		}
	}
}

// shows waits until all the texts are there, in this order.
func (c *chatting) shows(texts ...string) {
	c.t.Helper()
	ok := false
	defer func() {
		if !ok {
			c.t.Logf("it shows:\n%s", c.text())
		}
	}()
	within(c.t, fmt.Sprintf("%q shown", texts), func() bool {
		rest := c.text()
		for _, text := range texts {
			_, after, found := strings.Cut(rest, text)
			if !found {
				return false
			}
			rest = after
		}
		return true
	})
	ok = true
}

func (c *chatting) when(what string, ok func(state) bool) {
	c.t.Helper()
	within(c.t, what, func() bool { return ok(c.state()) })
}

// idle waits until nothing is being done.
func (c *chatting) idle() {
	c.t.Helper()
	c.when("idle", func(st state) bool { return !st.Busy && !st.Working })
}

// did waits until the desk was asked for something that holds the texts.
func (c *chatting) did(texts ...string) string {
	c.t.Helper()
	found := ""
	within(c.t, fmt.Sprintf("a call with %q; there were %q", texts, c.backend.all()), func() bool {
		for _, call := range c.backend.all() {
			if !slices.ContainsFunc(texts, func(s string) bool { return !strings.Contains(call, s) }) {
				found = call
				return true
			}
		}
		return false
	})
	return found
}

func (d *desk) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.calls)
}

// failure is why the last line failed.
func (c *chatting) failure() error { return c.state().wrong }

// Line types a line: an answer, when one is asked for.
func (c *chatting) Line(text string) {
	if isCommand(text) || isShell(text) || !c.Reply(text) {
		c.Session.Line(text)
	}
}
