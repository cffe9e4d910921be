package agent

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/controltool"
	"github.com/roost-dev/roost/usage"
)

// todoRows is how many steps of a list each turn shows the model.
const todoRows = 100

// todoList is the newest list in the task's rows, as Roo restores it.
func (a *Agent) todoList() []byte {
	ui := a.state().UI()
	if a.todos.seen > len(ui) { // rows were hidden
		a.todos = todos{}
	}
	for i := len(ui) - 1; i >= a.todos.seen; i-- {
		if kind := ui[i].Kind(); kind != "ask:tool" && kind != "say:user_edit_todos" {
			continue
		}
		raw := ui[i].Raw()
		if !bytes.Contains(raw, []byte("updateTodoList")) {
			continue
		}
		if list := usage.LastTodos([][]byte{raw}); list != nil {
			a.todos.list = list
			break
		}
	}
	a.todos.seen = len(ui)
	return a.todos.list
}

// updateTodos shows the model's new list. The row is what keeps it.
func (b *batch) updateTodos(ctx context.Context, c *task.Call, spec tool.Spec, ask tool.Ask, text string) (*Outcome, error) {
	a := b.agent
	items := usage.ParseTodos(text)
	if len(items) == 0 && strings.TrimSpace(text) != "" {
		b.wrong = true
		text := rows.Failure(`no line of "todos" is a step: write each as "[ ] step", "[-] step" or "[x] step"`)
		return nil, b.finishCall(ctx, c, callOutcome{state: "error", text: text, isError: true})
	}
	list := rows.TodoList(items)
	var o esjson.Object
	o.String("tool", "updateTodoList")
	o.Raw("todos", list)
	ask.Text = string(o.Bytes())
	granted, d, _, out, err := b.getConsent(ctx, c, spec, ask, approval.Decide(a.Task.Policy, spec.Class, ask))
	if out != nil || err != nil || granted.State == "denied" {
		return out, err
	}
	a.todoList() // rows before the new one must not count as newer
	a.todos.list = list
	answer := "Todo list updated successfully."
	if granted.Feedback != "" {
		answer = rows.Approved(granted.Feedback) + answer
	}
	return nil, b.finishCall(ctx, c, callOutcome{
		state:    "ok",
		text:     answer,
		approval: granted,
		before:   d.events,
	})
}

// todoReminder is the part of the environment that shows the model its list, in Roo's table; "" when the model has no
// tool for it.
func (a *Agent) todoReminder() string {
	if _, has := a.tools[controltool.TodoListName]; !has {
		return ""
	}
	var b strings.Builder
	n := 0
	for item := range esjson.Array(a.todoList()) {
		content, _ := esjson.GetString(item, "content")
		status, _ := esjson.GetString(item, "status")
		if n++; n > todoRows {
			continue
		}
		if said, known := todoStatus[status]; known {
			status = said
		}
		fmt.Fprintf(&b, "| %d | %s | %s |\n", n, todoCell.Replace(content), todoCell.Replace(status))
	}
	if n == 0 {
		return "You have not created a todo list yet. Create one with `update_todo_list` " +
			"if your task is complicated or involves multiple steps.\n"
	}
	if n > todoRows {
		fmt.Fprintf(&b, "\n(%d more steps are not shown.)\n", n-todoRows)
	}
	return "====\n\nREMINDERS\n\nBelow is your current list of reminders for this task. Keep them updated as you progress.\n\n" +
		"| # | Content | Status |\n|---|---------|--------|\n" + b.String() +
		"\n\nIMPORTANT: When task status changes, remember to call the `update_todo_list` tool to update your progress.\n\n"
}

var todoStatus = map[string]string{usage.Pending: "Pending", usage.InProgress: "In Progress", usage.Completed: "Completed"}

// todoCell escapes a step for its cell.
var todoCell = strings.NewReplacer(`\`, `\\`, "|", `\|`, "\r", " ", "\n", " ")
