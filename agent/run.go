package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/roost-dev/roost/agent/checkpoints"
	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/agent/stale"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
)

// watchFrom is how many known files make a watcher worth its handle; tests lower it.
var watchFrom = stale.WatchFrom

// Run works on the task until it is completed, stopped or waits. The outcome is committed and saved before Run
// returns, unless saving is what failed.
func (a *Agent) Run(ctx context.Context, in Input) Outcome {
	a.setUp()
	defer a.stale.Close()
	a.lastTS, a.loop.first = a.state().LastTS(), true
	return a.endRun(ctx, a.run(ctx, in))
}

// setUp indexes the tools by their names and makes the parts that observe the workspace.
func (a *Agent) setUp() {
	a.stale = stale.New(hooks{a}, stale.Options{
		Workspace:  a.Host.Workspace,
		SpoolDir:   a.Host.SpoolDir,
		OtherTasks: a.Host.OtherTasks,
		WatchFrom:  watchFrom,
		Observed:   a.User.Observer != nil,
	})
	a.checkpoints = checkpoints.New(hooks{a}, a.Host.Checkpoints, a.Task.RunID)
	a.tools = map[string]tool.Tool{}
	for _, t := range a.Tools.List {
		spec := t.Spec()
		a.tools[spec.Name] = t
		for _, alias := range spec.Aliases {
			a.tools[alias] = t
		}
	}
}

func (a *Agent) run(ctx context.Context, in Input) Outcome {
	if out, err := a.start(ctx, in); err != nil {
		return a.outcomeOf(ctx, err)
	} else if out != nil {
		return *out
	}
	failpoint.Hit("input.saved")
	if a.User.Observer != nil {
		a.User.Observer.Accepted()
	}
	for {
		done, err := a.step(ctx)
		if err != nil {
			return a.outcomeOf(ctx, err)
		}
		if done != nil {
			return *done
		}
	}
}

// step takes the next step of the loop. An outcome ends the run.
func (a *Agent) step(ctx context.Context) (*Outcome, error) {
	if err := a.Task.Journal.TakeIn(); err != nil {
		return nil, err
	}
	if out := a.checkLimits(); out != nil {
		return out, nil
	}
	a.connectServers(ctx)
	for _, check := range []func(context.Context) (*Outcome, error){
		a.finishForeignSubtask, a.checkMistakes, a.checkBudget, a.checkAskLimits,
	} {
		if out, err := check(ctx); out != nil || err != nil {
			return out, err
		}
	}
	switch a.next() {
	case doRequest:
		return nil, a.runTurn(ctx)
	case doCalls:
		return a.runCalls(ctx)
	}
	return a.nudgeModel(ctx)
}

// action is what a history calls for.
type action int

const (
	doRequest action = iota // a user turn waits for the model
	doCalls                 // the model's calls wait for results
	doNudge                 // the model's reply called nothing
)

// next derives the next step from the history alone. That is why a restart needs no state of its own.
func (a *Agent) next() action {
	if a.turnIsOpen() {
		return doRequest
	}
	if len(a.state().OpenCalls()) > 0 {
		return doCalls
	}
	return doNudge
}

// nudgeModel answers a reply that leaves no call to close: with the person's words if there are any, else with what
// the model should do.
func (a *Agent) nudgeModel(ctx context.Context) (*Outcome, error) {
	d := a.draft()
	queued := a.queuedInputs()
	switch {
	case len(queued) > 0:
		d.addUserTurn(nil, d.takeInputs(ctx, queued))
	case a.loop.yes:
		d.addUserTurn(nil, []task.Piece{{Literal: string(rows.Text(continueText))}})
	case a.loop.stopReason == "refusal":
		return &Outcome{State: "failed", Code: "refusal", Reason: "the model refused to answer; resume with other words"}, nil
	default:
		a.loop.mistakes++
		d.addUserTurn(nil, []task.Piece{{Literal: string(rows.Text("[ERROR] " + a.nudgeText()))}})
	}
	a.loop.yes = false
	return nil, d.commit(ctx)
}

// nudgeText describes to the model what was wrong with its reply.
func (a *Agent) nudgeText() string {
	api := a.state().API()
	switch {
	case a.loop.stopReason == "max_tokens":
		return "Your last reply was cut off at the limit of its length before it called a tool. " +
			"Write less, and take a smaller step: call the tool first."
	case len(callIDs(api[len(api)-1].Raw())) > 0:
		// Only histories of other programs repeat ids: our own calls get new ones when they are stored.
		return "Your last reply used ids of earlier tool calls again. Its calls were not run. Make them again if you still need them."
	}
	return "Your last reply called no tool. Call attempt_completion when the task is done, " +
		"ask_followup_question when something only the user knows is missing, else the tool for the next step."
}

// outcomeOf turns an error into an outcome.
func (a *Agent) outcomeOf(ctx context.Context, err error) Outcome {
	switch {
	case errors.Is(err, ErrStop):
		return Outcome{State: "cancelled", Code: "stopped", Reason: "stopped by the user"}
	case ctx.Err() != nil:
		cause := context.Cause(ctx)
		switch {
		case errors.Is(cause, ErrParentStopped):
			return Outcome{State: "interrupted", Code: "parent", Reason: cause.Error()}
		case errors.Is(cause, ErrDrained):
			return Outcome{State: "interrupted", Code: "drained", Reason: cause.Error()}
		case errors.Is(cause, ErrTimeout):
			return Outcome{State: "limit", Code: "timeout", Reason: cause.Error()}
		}
		return Outcome{State: "cancelled", Reason: "cancelled"}
	}
	return Outcome{
		State:  "failed",
		Code:   failureCode(err),
		Reason: err.Error(),
		Err:    err,
	}
}

// failureCode names the kind of a failure, for exit codes and events.
func failureCode(err error) string {
	var p *llm.Error
	switch {
	case errors.As(err, &p):
		switch p.Kind {
		case llm.Auth:
			return "auth"
		case llm.ContextOverflow:
			return "context"
		}
		return "provider"
	case errors.Is(err, journal.ErrNotSaved):
		return "save"
	case errors.Is(err, errNoPrompt):
		return "input"
	case errors.Is(err, journal.ErrFenced):
		return "fenced"
	}
	return "internal"
}

// endRun commits the outcome and saves it.
func (a *Agent) endRun(ctx context.Context, out Outcome) Outcome {
	bg := context.WithoutCancel(ctx)
	var event task.Event = task.RunEnded{
		Run:      a.Task.RunID,
		Outcome:  out.State,
		Reason:   out.Reason,
		Code:     out.Code,
		WorkedMS: a.workedMS(),
	}
	if out.State == "waiting" {
		event = task.RunWaiting{
			Run:      a.Task.RunID,
			Question: out.Question,
			Child:    out.Child,
			WorkedMS: a.workedMS(),
		}
	}
	d := a.draft()
	a.checkpoints.AfterCalls(ctx, d)
	d.Put(event)
	err := d.commit(bg)
	if err == nil {
		err = a.Task.Journal.Barrier(bg)
	}
	if err == nil {
		a.checkpoints.Durable()
	}
	failpoint.Hit("run.ended")
	if err != nil && out.Err == nil {
		out.Err = fmt.Errorf("the run's end could not be saved: %w", err)
		out.Code = "save"
	}
	return out
}
