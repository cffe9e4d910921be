package agent

import (
	"context"
	"fmt"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/task"
)

// takeOver goes on with a subtask of another program whose call has a stand-in for its
// result: the child's result takes its place, as it does there. The call itself is closed
// by that turn and stays so; what is one commit is the turn, the row and the end of the
// waiting.
func (a *Agent) takeOver(ctx context.Context) (*Outcome, error) {
	call, child := a.state().HandedOver()
	if child == nil || a.Tools.Subtasks == nil {
		return nil, nil
	}
	id := child.ID
	state, err := a.Tools.Subtasks.Look(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("look for subtask %s: %w", id, err)
	}
	if state.Gone || state.Status == "" {
		a.notice(fmt.Sprintf("subtask %s, which this task waits for, is not there any more: it goes on without it", id))
		return nil, a.commit(ctx, task.SubtaskEnded{Child: id, Outcome: "abandoned"})
	}
	result := state.Result
	if state.Status != "completed" {
		var out *Outcome
		if result, out, err = a.runChild(ctx, Subtask{ID: id, Known: true, Settings: a.Task.Settings}); out != nil || err != nil {
			return out, err
		}
	}
	api := a.state().API()
	turn := api[len(api)-1]
	d := a.draft()
	d.row(rows.Subtask(a.stamp(), result))
	d.change(turn.ID, withResult(turn.Raw(), call.ID, returnedText(id, result)))
	d.Put(task.SubtaskEnded{Child: id, Outcome: "completed", Result: cut(result, summaryBytes)})
	return nil, d.commit(ctx)
}

// withResult is a user turn with another text as the result of a call. Every other byte
// stays.
func withResult(raw []byte, call, text string) []byte {
	content, _ := esjson.Get(raw, "content")
	out := []byte{'['}
	for block := range esjson.Array(content) {
		if id, _ := esjson.GetString(block, "tool_use_id"); id == call {
			block = esjson.Set(esjson.Remove(block, "is_error"), "content", esjson.Quote(nil, text))
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, block...)
	}
	return esjson.Set(raw, "content", append(out, ']'))
}
