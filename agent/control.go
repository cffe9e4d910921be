package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/usage"
)

// runControl closes calls of the tools that are about the conversation itself.
func (b *batch) runControl(ctx context.Context, c *task.Call, spec tool.Spec, plan tool.Plan) (*Outcome, error) {
	result, err := b.agent.runPlan(ctx, spec, plan, nil)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, b.fail(ctx, c, err.Error())
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

// switchMode switches to another mode. A mode is a right, so it needs a consent unless everything is allowed. The new
// mode and the call's outcome are one commit.
func (b *batch) switchMode(ctx context.Context, c *task.Call, spec tool.Spec, ask tool.Ask, r tool.Result) (*Outcome, error) {
	a := b.agent
	now, ok := a.currentMode()
	if !ok {
		return nil, b.fail(ctx, c, "there are no modes here")
	}
	m, err := a.User.Modes.Lookup(r.Mode)
	if err != nil {
		return nil, b.failWrong(ctx, c, a.unknownModeText(r.Mode))
	}
	if m.Slug == now.Slug {
		return nil, b.finishCall(ctx, c, callOutcome{state: "ok", text: fmt.Sprintf("Already in %s mode.", m.Name)})
	}
	granted, d, _, out, err := b.getConsent(ctx, c, spec, ask, a.maySwitch(ask))
	if out != nil || err != nil || granted.State == "denied" {
		return out, err
	}
	d.Put(a.enterMode(m)...)
	text := fmt.Sprintf("Successfully switched from %s mode to %s mode", now.Name, m.Name)
	if r.Text != "" {
		text += " because: " + r.Text
	}
	text += "."
	text = rows.Approved(granted.Feedback) + text
	return nil, b.finishCall(ctx, c, callOutcome{state: "ok", text: text, approval: granted, before: d.events})
}

// askFollowup asks the model's question.
func (b *batch) askFollowup(ctx context.Context, c *task.Call, ask tool.Ask, r tool.Result) (*Outcome, error) {
	a := b.agent
	d := a.draft()
	row := b.callRow(d, c, ask, false)
	var choices, modes []string
	leads := false // to another mode
	for _, choice := range r.Choices {
		choices = append(choices, choice.Answer)
		slug := ""
		if m, moves, _ := a.otherMode(choice.Mode); moves {
			slug, leads = m.Slug, true
		}
		modes = append(modes, slug)
	}
	if !leads {
		modes = nil
	}
	answer, out, err := b.askPerson(ctx, d, api.QuestionOpened{
		Question: questionID(row), Kind: "followup", Message: row, Call: c.ID, Text: r.Question,
		Choices: choices, Modes: modes,
	}, nil)
	if err != nil || out != nil {
		return out, err
	}
	d = a.draft()
	d.changeMessage(row, esjson.Set(a.state().Message(row).Raw(), "isAnswered", []byte("true")))
	d.enterChosenMode(r.Choices, answer.Text)
	text, rest := splitResult(d.expandWords(ctx, answer.Text))
	return nil, b.finishCall(ctx, c, callOutcome{state: "ok", text: text, images: rest, before: d.events})
}

// completeTask shows the result and ends the run. Words that came with a resume are the person's reply to the result,
// and the run continues with them. A completion in the same reply as a failed call is refused: the model wrote it
// before it could know of the failure.
func (b *batch) completeTask(ctx context.Context, c *task.Call, r tool.Result) (*Outcome, error) {
	a := b.agent
	shown := a.showsCompletion()
	if b.failed && !shown {
		return nil, b.fail(ctx, c, "the task was not completed: a call before this one in the same reply did not succeed. "+
			"Look at its result first")
	}
	if !shown {
		d := a.draft()
		d.addRow(rows.Stream(a.stamp(), "completion_result", r.Text, false))
		d.addRow(rows.PlainAsk(a.stamp(), "completion_result", new("")))
		if err := d.commit(ctx); err != nil {
			return nil, err
		}
	}
	if done, err := b.replyToCompletion(ctx, c); done || err != nil {
		return nil, err
	}
	if shown && a.loop.yes {
		return nil, b.finishCall(ctx, c, callOutcome{state: "ok", text: continueText})
	}
	return &Outcome{State: "completed", Reason: r.Text}, nil
}

// replyToCompletion closes the call of a completion with the person's words about it; false when there are none.
func (b *batch) replyToCompletion(ctx context.Context, c *task.Call) (bool, error) {
	a := b.agent
	d := a.draft()
	text, rest := splitResult(d.takeInputs(ctx, a.queuedInputs()))
	if len(d.events) == 0 {
		return false, nil
	}
	return true, b.finishCall(ctx, c, callOutcome{state: "ok", text: text, images: rest, before: d.events})
}

// splitResult splits blocks for a call's result: the text that it begins with, and the rest.
func splitResult(blocks []json.RawMessage) (text string, rest []json.RawMessage) {
	if len(blocks) == 0 {
		return "", nil
	}
	text, ok := esjson.GetString(blocks[0], "text")
	if !ok {
		return "", blocks
	}
	return text, blocks[1:]
}

// A subtask is a task of its own with a journal of its own; the parent's call of new_task stays open while it runs. The
// intent to start the child is saved before the child is created, under an id that follows from the call. So after a
// kill the child is found, or created if it never was. The child's result is the outcome of the call: one commit in the
// parent's journal, by the process that owns the parent. So the result is delivered exactly once, and a restart needs
// no state but the open call.

// maxDepth bounds how deep subtasks nest: otherwise a model that delegates instead of working would never end.
const maxDepth = 8

// delegateSubtask starts or continues the child that a call asks for, and closes the call with the child's result.
func (b *batch) delegateSubtask(ctx context.Context, c *task.Call, spec tool.Spec, ask tool.Ask, want tool.Subtask) (*Outcome, error) {
	a := b.agent
	if a.Tools.Subtasks == nil {
		return nil, b.fail(ctx, c, "there are no subtasks here")
	}
	child := a.state().ChildOf(c)
	if child != nil {
		if done, err := b.settleKnownSubtask(ctx, c, *child); done || err != nil {
			return nil, err
		}
	} else {
		out, err := b.proposeSubtask(ctx, c, spec, ask, want)
		if out != nil || err != nil || c.Finished != nil {
			return out, err
		}
		failpoint.Hit("subtask.started")
		child = a.state().ChildOf(c)
	}
	message := want.Message
	if child.Remark != "" {
		message += "\n\nThe user's remark on it: " + child.Remark
	}
	result, out, err := a.runChild(ctx, Subtask{
		ID: child.ID, Mode: cmp.Or(child.Mode, want.Mode), Message: message, Todos: want.Todos,
		Known: child.Call == "", Settings: a.Task.Settings,
	})
	if out != nil || err != nil {
		return out, err
	}
	return nil, b.finishSubtask(ctx, c, child.ID, result)
}

// runChild runs a child and returns its result, or how the parent's run ends because there is none.
func (a *Agent) runChild(ctx context.Context, s Subtask) (result string, _ *Outcome, err error) {
	out, err := a.Tools.Subtasks.Run(ctx, s)
	switch {
	case err != nil && ctx.Err() != nil:
		return "", nil, context.Cause(ctx)
	case err != nil:
		return "", nil, fmt.Errorf("run subtask %s: %w", s.ID, err)
	case out.State == "completed" && out.Err == nil:
		failpoint.Hit("subtask.untold")
		return out.Reason, nil, nil
	case ctx.Err() != nil:
		return "", nil, context.Cause(ctx)
	}
	why := out.Reason
	if why == "" && out.Err != nil {
		why = out.Err.Error()
	}
	out.Reason, out.Child = fmt.Sprintf("subtask %s (%s): %s", s.ID, out.State, why), s.ID
	return "", &out, nil
}

// proposeSubtask shows the subtask, asks if need be, and saves the intent. A refused call is finished.
func (b *batch) proposeSubtask(ctx context.Context, c *task.Call, spec tool.Spec, ask tool.Ask, want tool.Subtask) (*Outcome, error) {
	a := b.agent
	wrong := func(reason string) (*Outcome, error) { return nil, b.failWrong(ctx, c, reason) }
	if a.state().Number >= maxDepth {
		return wrong(fmt.Sprintf("this is a subtask %d levels down, and it cannot start another one: do the work yourself", maxDepth))
	}
	slug, name := want.Mode, want.Mode
	if a.User.Modes != nil {
		m, err := a.User.Modes.Lookup(want.Mode)
		if err != nil {
			return wrong(a.unknownModeText(want.Mode))
		}
		slug, name = m.Slug, m.Name
	}
	items := usage.ParseTodos(want.Todos)
	if len(items) == 0 && strings.TrimSpace(want.Todos) != "" {
		return wrong(noSteps)
	}
	ask.Text = string(esjson.ObjectOf("tool", "newTask", "mode", name, "content", want.Message,
		"todos", rows.TodoList(items)))
	decision := a.decideStrictly(spec.Class, ask) // the cost of a subtask is unknown beforehand
	granted, d, row, out, err := b.getConsent(ctx, c, spec, ask, decision)
	if out != nil || err != nil || granted.State == "denied" {
		return out, err
	}
	d.Put(
		task.ToolStarted{
			Call: c.ID, Name: spec.Name, Replay: string(spec.Replay), Message: row,
			Approval: granted,
		},
		task.SubtaskStarted{
			Child:   task.ChildID(a.state(), c),
			Call:    c.ID,
			Message: c.Message,
			Mode:    slug,
			Title:   api.Shorten(tool.OneLine(strings.TrimSpace(want.Message)), 120),
			Remark:  granted.Feedback,
		},
	)
	return nil, d.save(ctx)
}

// settleKnownSubtask closes the call of an existing child when there is nothing to run: the child has completed, it is
// gone, or the person continues without it. It returns false when the child must run.
func (b *batch) settleKnownSubtask(ctx context.Context, c *task.Call, child task.Child) (done bool, err error) {
	a := b.agent
	state, err := a.Tools.Subtasks.State(ctx, child.ID)
	switch {
	case err != nil:
		return true, fmt.Errorf("look for subtask %s: %w", child.ID, err)
	case state.Status == "completed":
		return true, b.finishSubtask(ctx, c, child.ID, state.Result)
	case state.Gone, child.Call == "" && state.Status == "":
		return true, b.abandonSubtask(ctx, c, child.ID, fmt.Sprintf("Subtask %s is not there any more. There is no result.", child.ID))
	case a.loop.words && len(a.queuedInputs()) > 0:
		about := fmt.Sprintf("%s is not finished (%s)", child.ID, cmp.Or(state.Status, "not started"))
		a.notice("subtask " + about + "; this task continues without it because of your message")
		text := "Subtask " + about + "; the user continues without it:"
		return true, b.abandonSubtask(ctx, c, child.ID, text)
	}
	return false, nil
}

// finishSubtask closes the call with the child's result: the outcome, the row for the person and the end of the waiting
// are one commit.
func (b *batch) finishSubtask(ctx context.Context, c *task.Call, child, result string) error {
	d := b.agent.draft()
	d.addRow(rows.Subtask(b.agent.stamp(), result))
	err := b.finishCall(ctx, c, callOutcome{
		state: "ok", text: subtaskResultText(child, result), before: d.events,
		after: []task.Event{task.SubtaskEnded{Child: child, Outcome: "completed", Result: api.Shorten(result, summaryBytes)}},
	})
	failpoint.Hit("subtask.ended")
	return err
}

// subtaskResultText returns a child's result as a text for the model, in Roo's words.
func subtaskResultText(child, result string) string {
	return "Subtask " + child + " completed.\n\nResult:\n" + result
}

// abandonSubtask closes the call of a child that the task no longer waits for.
func (b *batch) abandonSubtask(ctx context.Context, c *task.Call, child, text string) error {
	return b.finishCall(ctx, c, callOutcome{
		state: "error", text: text, isError: true,
		after: []task.Event{task.SubtaskEnded{Child: child, Outcome: "abandoned"}},
	})
}

// summaryBytes bounds the child's result in the history row; the call's outcome has all of it.
const summaryBytes = 32 << 10

// finishForeignSubtask continues with a subtask of another program whose call has a placeholder as its result: the child's
// result replaces the placeholder, as it does in that program. The turn with the placeholder closed the call, and the call
// stays closed. The changed turn, the row and the end of the waiting are one commit.
func (a *Agent) finishForeignSubtask(ctx context.Context) (*Outcome, error) {
	call, child := a.state().HandedOver()
	if child == nil || a.Tools.Subtasks == nil {
		return nil, nil
	}
	id := child.ID
	state, err := a.Tools.Subtasks.State(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("look for subtask %s: %w", id, err)
	}
	if state.Gone || state.Status == "" {
		a.notice(fmt.Sprintf("subtask %s, which this task waits for, does not exist any more: it continues without it", id))
		return nil, a.commit(ctx, task.SubtaskEnded{Child: id, Outcome: "abandoned"})
	}
	result := state.Result
	if state.Status != "completed" {
		var out *Outcome
		if result, out, err = a.runChild(ctx, Subtask{ID: id, Known: true, Settings: a.Task.Settings}); out != nil || err != nil {
			return out, err
		}
	}
	messages := a.state().API()
	turn := messages[len(messages)-1]
	d := a.draft()
	d.addRow(rows.Subtask(a.stamp(), result))
	d.changeMessage(turn.ID, withResult(turn.Raw(), call.ID, subtaskResultText(id, result)))
	d.Put(task.SubtaskEnded{Child: id, Outcome: "completed", Result: api.Shorten(result, summaryBytes)})
	return nil, d.commit(ctx)
}

// withResult returns a user turn with the result of one call replaced by another text. Every other byte stays.
func withResult(raw []byte, call, text string) []byte {
	var blocks [][]byte
	for block := range esjson.Array(esjson.Member(raw, "content")) {
		if esjson.TextOf(block, "tool_use_id") == call {
			block = esjson.Set(esjson.Remove(block, "is_error"), "content", esjson.Quote(nil, text))
		}
		blocks = append(blocks, block)
	}
	return esjson.Set(raw, "content", esjson.List(blocks))
}

// noSteps is the error for a todo list that cannot be read.
const noSteps = `no line of "todos" is a step: write each as "[ ] step", "[-] step" or "[x] step"`

// updateTodos shows the model's new list. The row is what keeps it.
func (b *batch) updateTodos(ctx context.Context, c *task.Call, spec tool.Spec, ask tool.Ask, text string) (*Outcome, error) {
	a := b.agent
	items := usage.ParseTodos(text)
	if len(items) == 0 && strings.TrimSpace(text) != "" {
		return nil, b.failWrong(ctx, c, noSteps)
	}
	list := rows.TodoList(items)
	ask.Text = string(esjson.ObjectOf("tool", "updateTodoList", "todos", list))
	granted, d, _, out, err := b.getConsent(ctx, c, spec, ask, approval.Decide(a.Task.Policy, spec.Class, ask))
	if out != nil || err != nil || granted.State == "denied" {
		return out, err
	}
	a.todoList() // rows before the new one must not count as newer
	a.todos.list = list
	answer := rows.Approved(granted.Feedback) + "Todo list updated successfully."
	return nil, b.finishCall(ctx, c, callOutcome{
		state: "ok", text: answer, approval: granted, before: d.events,
	})
}
