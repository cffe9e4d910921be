package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/roost-dev/roost/tool"
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

// plannedCall keeps what a plan asks for: Ask is the tool's code, too.
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
	case tool.Read:
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
			timer := time.NewTimer(runGrace)
			defer timer.Stop()
			grace = timer.C
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
				name, time.Since(begun).Seconds(), what, panicOrigin(debug.Stack()))
		}
	}()
	return f(ctx)
}

// panicOrigin is the line of a stack that panicked: the first one after the runtime's.
func panicOrigin(stack []byte) string {
	_, rest, found := strings.Cut(string(stack), "\npanic(")
	if !found {
		rest = string(stack)
	}
	lines := strings.Split(rest, "\n")
	for i := 2; i < len(lines); i++ {
		at, isPlace := strings.CutPrefix(lines[i], "\t")
		if !isPlace || strings.HasPrefix(lines[i-1], "runtime.") || strings.HasPrefix(lines[i-1], "panic(") {
			continue
		}
		at, _, _ = strings.Cut(at, " +0x")
		if cut := strings.LastIndexByte(at, '/'); cut >= 0 {
			at = at[cut+1:]
		}
		return at
	}
	return "at an unknown place"
}
