package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace/terminal"
)

// A tool's code meets arbitrary files and servers. A defect in it, or a disk that does not answer, ends the call and
// not the task: otherwise a restart would make the same call again and end in the same place.

const (
	// runLimit bounds the planning of a call, and a call that reads or writes files. Commands and servers' tools have
	// limits of their own.
	runLimit = 10 * time.Minute
	// runGrace is how long a call has to end after it was cancelled.
	runGrace = 2 * time.Second
)

// timeoutError is the cause of a context whose call took too long.
type timeoutError struct{ tool string }

func (e timeoutError) Error() string {
	return fmt.Sprintf("%s did not end within %s and was stopped", e.tool, runLimit)
}

// plannedCall keeps what the plan's Ask returned. planCall calls Ask within its bounds: it is code of the tool, too.
type plannedCall struct {
	tool.Plan
	ask tool.Ask
}

func (p plannedCall) Ask() tool.Ask { return p.ask }

// planCall plans a call. Planning changes nothing, so a plan that does not end is abandoned.
func (a *Agent) planCall(ctx context.Context, t tool.Tool, env tool.Env, input json.RawMessage) (tool.Plan, error) {
	return runBounded(ctx, t.Spec().Name, true, func(ctx context.Context) (tool.Plan, error) {
		p, err := t.Plan(ctx, env, input)
		if err != nil {
			return nil, err
		}
		return plannedCall{p, p.Ask()}, nil
	})
}

// runPlan runs a planned call. A read that does not end is abandoned; a write is not, because it would change files
// unknown to the model.
func (a *Agent) runPlan(ctx context.Context, spec tool.Spec, plan tool.Plan, out tool.Output) (tool.Result, error) {
	run := func(ctx context.Context) (tool.Result, error) { return plan.Run(ctx, out) }
	switch spec.Class {
	case tool.Read, tool.Web:
		// A read shows no output, and an abandoned one must not begin to.
		run = func(ctx context.Context) (tool.Result, error) { return plan.Run(ctx, noOutput{}) }
		return runBounded(ctx, spec.Name, true, run)
	case tool.Write:
		return runBounded(ctx, spec.Name, false, run)
	}
	defer a.stale.Attend(ctx, spec.Name+" runs", attendCommand)()
	return runGuarded(ctx, spec.Name, run)
}

// noOutput shows nothing.
type noOutput struct{}

func (noOutput) Started(tool.Process)        {}
func (noOutput) Write(p []byte) (int, error) { return len(p), nil }

// runBounded runs f for runLimit at most. When f ignores its context, runBounded waits for it, or abandons it if
// abandon is set: nothing can end a read that hangs in the kernel, for example on a file server that has disappeared.
// The result of an abandoned f is dropped.
func runBounded[T any](ctx context.Context, name string, abandon bool, f func(context.Context) (T, error)) (T, error) {
	limited, cancel := context.WithTimeoutCause(ctx, runLimit, timeoutError{name})
	defer cancel()
	type ended struct {
		value T
		err   error
	}
	got := make(chan ended, 1)
	go func() {
		var e ended
		e.err = fmt.Errorf("%s ended without a result", name) // by runtime.Goexit
		defer func() { got <- e }()
		e.value, e.err = runGuarded(limited, name, f)
	}()
	var e ended
	select {
	case e = <-got:
	case <-limited.Done():
		var grace <-chan time.Time
		if abandon {
			grace = time.After(runGrace)
		}
		select {
		case e = <-got:
		case <-grace:
			e.err = context.Cause(limited)
		}
	}
	if e.err != nil && ctx.Err() == nil && limited.Err() != nil {
		e.err = context.Cause(limited)
	}
	return e.value, e.err
}

// runGuarded turns a panic in f into an error that names its time and place.
func runGuarded[T any](ctx context.Context, name string, f func(context.Context) (T, error)) (value T, err error) {
	begun := time.Now()
	defer func() {
		if what := recover(); what != nil {
			err = fmt.Errorf("%s failed inside after %.3f s, which is a defect of Roost: %v (%s). It may have done part of its work",
				name, time.Since(begun).Seconds(), what, panicOrigin())
		}
	}()
	return f(ctx)
}

// panicOrigin returns the line that panicked: the first one on the stack below the runtime's lines. Only a deferred
// function may call it.
func panicOrigin() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for frame, more := frames.Next(); more; frame, more = frames.Next() {
		if !strings.HasPrefix(frame.Function, "runtime.") {
			return fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line)
		}
	}
	return "at an unknown place"
}

// outputRowLimit is how many bytes of a command's output its row for the person keeps. A blob keeps all of it.
const outputRowLimit = 100_000

// output shows what a running command prints and keeps it in its row.
type output struct {
	agent   *Agent
	ctx     context.Context //nolint:containedctx // lives as long as one call
	call    string
	command bool
	server  bool // of an MCP server

	row  streamedRow
	held []byte // an unfinished word
	err  error
}

// Started records the process, so that a resume can find it if it outlives this program.
func (o *output) Started(p tool.Process) {
	if o.err != nil {
		return
	}
	failpoint.Hit("tool.spawned")
	o.err = o.agent.commit(o.ctx, task.ToolProcess{
		Call: o.call, PGID: p.PGID, Started: p.Started, Boot: p.Boot, Mark: p.Mark,
	})
	if o.err == nil {
		o.err = o.agent.Task.Journal.Barrier(context.WithoutCancel(o.ctx))
		if errors.Is(o.err, journal.ErrNotSaved) {
			// The process runs already: killing it for a full disk would lose more than the record, which is kept and
			// saved as soon as that is possible.
			o.err = nil
		}
	}
	failpoint.Hit("tool.process")
}

// Write shows output as it comes. The last word, and a secret of several words, wait until they are whole: a secret may
// span two pieces, and half of one cannot be masked.
func (o *output) Write(p []byte) (int, error) {
	if o.err != nil || !o.command {
		return len(p), o.err
	}
	o.held = append(o.held, p...)
	cut := bytes.LastIndexAny(o.held, " \t\r\n") + 1
	if len(o.held)-cut > heldLimit {
		cut = len(terminal.WholeEnd(o.held)) // not in a character
	}
	if masks := o.agent.Host.Masks; masks != nil {
		cut = masks.Whole(string(o.held[:cut]))
	}
	o.show(o.held[:cut])
	o.held = append(o.held[:0], o.held[cut:]...)
	return len(p), o.err
}

// heldLimit is the longest word that waits, in bytes, unless it is the beginning of a secret.
const heldLimit = 4 << 10

// show shows output that holds whole characters. It replaces bytes that are no character.
func (o *output) show(p []byte) {
	a := o.agent
	text := a.mask(strings.ToValidUTF8(string(p), "\uFFFD"))
	if text == "" {
		return
	}
	row := &o.row
	if row.message == 0 {
		row.kind, row.savedAt = "command_output", a.Host.Now()
		asked := a.stamp()
		row.ts = a.stamp()
		d := a.draft()
		d.addRow(rows.PlainAsk(asked, row.kind, new("")))
		row.message = d.addRow(rows.Stream(row.ts, row.kind, "", true))
		o.err = d.commit(o.ctx)
	}
	a.live(Delta{
		Type: "message.delta", Message: row.message, Call: o.call, TS: row.ts, Offset: row.text.Len(), Text: text,
	})
	if room := outputRowLimit - row.text.Len(); room > 0 {
		if len(text) > room {
			text = strings.ToValidUTF8(text[:room], "") + "\n[... the rest is in the full output ...]"
		}
		row.text.WriteString(text)
	}
	if o.err == nil && row.text.Len() > row.saved && row.due(a.Host.Now()) {
		d := a.draft()
		row.saveText(d, a.Host.Now())
		o.err = d.commit(o.ctx)
	}
	failpoint.Hit("tool.output")
}

// finish returns the events that end the output's row.
func (o *output) finish() []task.Event {
	if len(o.held) > 0 && o.err == nil {
		o.show(o.held)
		o.held = nil
	}
	if o.row.message == 0 {
		return nil
	}
	d := o.agent.draft()
	o.row.end(d)
	return d.events
}
