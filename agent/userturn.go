package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/agent/stale"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/mention"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool/controltool"
	"github.com/roost-dev/roost/tool/search"
	"github.com/roost-dev/roost/usage"
)

// What a person writes to a task as a whole waits in the task's queue until a user turn takes it. The queue is in the
// journal, so acknowledged words survive a kill between the restart that took them and the turn that sends them.

// continueText is what the model gets when the person agreed to continue and added no words. It is not marked as the
// user's words, because the user did not write it.
const continueText = "The user has seen this and wants you to go on."

// queueInput shows the person's words and keeps them for the next user turn.
func (d *draft) queueInput(in Input) {
	d.queueShown(d.addRow(rows.Words(d.agent.stamp(), "user_feedback", in.Text, in.Images)), in)
}

// queueShown keeps what a row shows for the next user turn.
func (d *draft) queueShown(row uint64, in Input) {
	d.Put(task.InputQueued{Input: fmt.Sprintf("%s.%d", d.agent.Task.RunID, row), Text: in.Text, Images: in.Images})
}

// queuedInputs returns the task's queue, with what others added to it since. When the queue cannot be read now, the
// loop tries again and reports the error.
func (a *Agent) queuedInputs() []task.InputQueued {
	if a.Task.Journal.TakeIn() != nil {
		return nil
	}
	return slices.Clone(a.state().Queue)
}

// takeInputs uses up queued words that the draft has not used up yet, and returns their blocks for the user turn or the
// result in the same commit.
func (d *draft) takeInputs(ctx context.Context, items []task.InputQueued) []json.RawMessage {
	var blocks []json.RawMessage
	for _, item := range items {
		if slices.Contains(d.events, task.Event(task.InputTaken{Input: item.Input})) {
			continue
		}
		queued := func(e task.Event) bool {
			q, is := e.(task.InputQueued)
			return is && q.Input == item.Input
		}
		if !slices.ContainsFunc(d.events, queued) { // else this draft adds it to the queue
			var ok bool
			if item, ok = d.agent.Task.Journal.Claim(item.Input); !ok {
				continue // the person took them back
			}
		}
		if item.By != "" { // it came during the run: no row shows it yet
			d.addRow(rows.Words(d.agent.stamp(), "user_feedback", item.Text, item.Images))
		}
		if item.Text != "" {
			blocks = append(blocks, d.expandWords(ctx, item.Text)...)
		}
		blocks = append(blocks, d.imageBlocks(item)...)
		d.Put(task.InputTaken{Input: item.Input})
	}
	return blocks
}

// imageBlocks returns the images of an input, and shows which of them are lost.
func (d *draft) imageBlocks(item task.InputQueued) (blocks []json.RawMessage) {
	if lost := lostImages(item); lost != "" {
		d.addRow(rows.Say(d.agent.stamp(), "error", lost, nil))
		blocks = append(blocks, rows.Text(lost))
	}
	return append(blocks, rows.Images(item.Images)...)
}

// lostImages names the images of a queued input that cannot be read; "" = none is lost.
func lostImages(q task.InputQueued) string {
	if q.ImagesBlob == "" {
		return ""
	}
	return fmt.Sprintf("[%d image(s) that came with these words cannot be read any more: "+
		"their file beside the journal is damaged or gone.]", q.ImageCount)
}

func userMessage(text string) string { return "<user_message>\n" + text + "\n</user_message>" }

// mentionTime bounds the time for resolving everything that one message mentions: a linter may take a minute, and the
// person waits.
const mentionTime = 90 * time.Second

var errMentionTime = fmt.Errorf("looking up what was mentioned took more than %s", mentionTime)

// expandWords returns what the model gets for a person's words: the words as a block, and a block for each file,
// folder and slash command that they mention. Mentions are resolved once, when the words become a turn, and stored
// with it: a restart sends the same. The person's own row keeps the words as typed.
//
// Secrets in resolved content are hidden as in tool output. The person's own words are sent as they are.
func (d *draft) expandWords(ctx context.Context, words string) []json.RawMessage {
	a := d.agent
	if a.Host.Mentions == nil {
		return []json.RawMessage{rows.Text(userMessage(words))}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, mentionTime, errMentionTime)
	defer cancel()
	e := mention.Expand(ctx, userMessage(words), a.Host.Mentions)
	blocks := []json.RawMessage{rows.Text(e.Text + a.mask(e.Appended))}
	for _, b := range e.Blocks {
		blocks = append(append(blocks, rows.Text(a.mask(b.Text))), b.Images...)
		for _, f := range b.Files {
			d.Put(stale.Record(f))
		}
	}
	if e.Commands != "" {
		blocks = append(blocks, rows.Text(a.mask(e.Commands)))
	}
	for _, note := range e.Notes {
		a.notice(note)
	}
	d.enterUserMode(e.Mode, "the slash command")
	return blocks
}

// addUserTurn adds the next user message: results of calls first, then the other blocks, then the environment.
func (d *draft) addUserTurn(results []string, blocks []json.RawMessage) {
	a := d.agent
	delegated := slices.ContainsFunc(results, func(id string) bool {
		c := a.state().Call(id)
		return c != nil && c.Name == task.SubtaskTool
	})
	changed, records := a.stale.Report(stale.Turn{
		Pending: d.events, Delegated: delegated, Reread: a.Task.Settings.Stale == api.StaleRead,
	})
	d.Put(records...)
	calls := api.Each(results, a.state().Call)
	a.checkpoints.AfterTurn(context.Background(), d, calls) // AfterTurn bounds its own time
	var pieces []task.Piece
	literal := `{"role":"user","content":[`
	for _, call := range results {
		pieces = append(pieces, task.Piece{Literal: literal}, task.Piece{Result: call})
		literal = ","
	}
	blocks = append(slices.Clip(blocks), rows.Text(a.mask(a.environmentText(changed))))
	literal += string(esjson.List(blocks)[1:]) + `,"ts":` + strconv.FormatInt(a.stamp(), 10) + `}`
	body := task.Body{Compose: append(pieces, task.Piece{Literal: literal})}
	if len(results) == 0 {
		// What a person shows may be large: as one literal, it can go into a blob.
		body = task.Body{Raw: json.RawMessage(literal)}
	}
	d.addMessage(task.API, body)
}

// listTime bounds the listing of the workspace at the start of a run.
const listTime = 5 * time.Second

// environmentText returns the block that ends every user turn: what the model cannot know from the history. Its
// section names are Roo's. changed is the section of stale files, "" for none.
func (a *Agent) environmentText(changed string) string {
	var b strings.Builder
	b.WriteString("<environment_details>\n")
	if changed != "" {
		b.WriteString(changed + "\n")
	}
	now := time.UnixMilli(a.Host.Now()).UTC()
	fmt.Fprintf(&b, "# Current Time\nCurrent time in ISO 8601 UTC format: %s\n", now.Format("2006-01-02T15:04:05.000Z"))
	if a.User.Zone != "" {
		fmt.Fprintf(&b, "User time zone: %s\n", a.User.Zone)
	}
	fmt.Fprintf(&b, "\n# Current Cost\n$%.2f\n", float64(a.state().Usage.CostMicros)/1e6)
	slug, name := cmp.Or(a.Task.Settings.Mode, mode.Default), ""
	if m, ok := a.currentMode(); ok {
		name = "<name>" + m.Name + "</name>\n"
	}
	fmt.Fprintf(&b, "\n# Current Mode\n<slug>%s</slug>\n%s<model>%s</model>\n", slug, name, a.Task.Settings.Model)
	if a.loop.listFiles && a.Host.Workspace != nil {
		a.loop.listFiles = false
		root := a.Host.Workspace.Root()
		ctx, cancel := context.WithTimeout(context.Background(), listTime)
		listing, _ := search.List(ctx, a.Host.Workspace, root, true) // none where it is not known what is hidden
		cancel()
		fmt.Fprintf(&b, "\n# Current Workspace Directory (%s) Files\n%s\n", root, listing)
	}
	if reminder := a.todoReminder(); reminder != "" {
		b.WriteString("\n" + reminder)
	}
	b.WriteString("</environment_details>")
	return b.String()
}

// todoRows is how many steps of a list each turn shows the model.
const todoRows = 100

// todoReminder returns the part of the environment that shows the model its list, in Roo's table; "" when the model
// has no tool for it.
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
		status = cmp.Or(todoStatus[status], status)
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

// todoList returns the newest list in the task's rows, as Roo restores it.
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
