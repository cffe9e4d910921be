package agent

import (
	"context"
	"slices"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
)

// runControl closes calls of the tools that are about the conversation itself.
func (b *batch) runControl(ctx context.Context, c *task.Call, spec tool.Spec, plan tool.Plan) (*Outcome, error) {
	if done, err := b.stopRepetition(ctx, c, spec); done || err != nil {
		return nil, err
	}
	result, err := b.agent.runPlan(ctx, spec, plan, nil)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, b.finishCall(ctx, c, callOutcome{state: "error", text: rows.Failure(err.Error()), isError: true})
	case result.Completed:
		return b.completeTask(ctx, c, result)
	case result.Todos != nil:
		return b.updateTodos(ctx, c, spec, plan.Ask(), *result.Todos)
	case result.Subtask != nil:
		return b.delegateSubtask(ctx, c, spec, plan.Ask(), *result.Subtask)
	case result.Mode != "":
		return b.switchMode(ctx, c, spec, plan.Ask(), result)
	}
	return b.askFollowup(ctx, c, plan.Ask(), result)
}

// askFollowup asks the model's question.
func (b *batch) askFollowup(ctx context.Context, c *task.Call, ask tool.Ask, r tool.Result) (*Outcome, error) {
	a := b.agent
	d := a.draft()
	row := b.callRow(d, c, ask, false)
	var choices, modes []string
	for _, choice := range r.Choices {
		choices = append(choices, choice.Answer)
		modes = append(modes, a.otherModeSlug(choice.Mode))
	}
	if !slices.ContainsFunc(modes, func(slug string) bool { return slug != "" }) {
		modes = nil
	}
	answer, out, err := b.askPerson(ctx, d, api.QuestionOpened{
		Question: questionID(row),
		Kind:     "followup",
		Message:  row,
		Call:     c.ID,
		Text:     r.Question,
		Choices:  choices,
		Modes:    modes,
	}, nil)
	if err != nil || out != nil {
		return out, err
	}
	d = a.draft()
	d.changeMessage(row, esjson.Set(a.state().Message(row).Raw(), "isAnswered", []byte("true")))
	d.enterChosenMode(r.Choices, answer.Text)
	text, rest := splitResult(d.expandWords(ctx, answer.Text))
	return nil, b.finishCall(ctx, c, callOutcome{
		state:  "ok",
		text:   text,
		images: rest,
		before: d.events,
	})
}

// completeTask shows the result and ends the run. Words that came with a resume are the person's reply to the result,
// and the run continues with them. A completion in the same reply as a failed call is refused: the model wrote it
// before it could know of the failure.
func (b *batch) completeTask(ctx context.Context, c *task.Call, r tool.Result) (*Outcome, error) {
	a := b.agent
	shown := a.lastQuestionKind() == "completion_result"
	if shown {
		if done, err := b.replyToCompletion(ctx, c); done || err != nil {
			return nil, err
		}
	}
	if shown && a.loop.yes {
		return nil, b.finishCall(ctx, c, callOutcome{state: "ok", text: continueText})
	}
	if b.failed && !shown {
		text := rows.Failure("the task was not completed: a call before this one in the same reply did not succeed. " +
			"Look at its result first")
		return nil, b.finishCall(ctx, c, callOutcome{state: "error", text: text, isError: true})
	}
	if !shown {
		empty := ""
		d := a.draft()
		d.addRow(rows.Stream(a.stamp(), "completion_result", r.Text, false))
		d.addRow(rows.PlainAsk(a.stamp(), "completion_result", &empty))
		if err := d.commit(ctx); err != nil {
			return nil, err
		}
		if done, err := b.replyToCompletion(ctx, c); done || err != nil {
			return nil, err
		}
	}
	return &Outcome{State: "completed", Reason: r.Text}, nil
}

// replyToCompletion gives the person's words to a completion that was shown; false when there are none.
func (b *batch) replyToCompletion(ctx context.Context, c *task.Call) (bool, error) {
	a := b.agent
	d := a.draft()
	text, rest := splitResult(d.takeBlocks(ctx, a.queuedInputs()))
	if len(d.events) == 0 {
		return false, nil
	}
	return true, b.finishCall(ctx, c, callOutcome{
		state:  "ok",
		text:   text,
		images: rest,
		before: d.events,
	})
}
