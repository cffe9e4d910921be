package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/agent/stale"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/mention"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/task"
)

// What a person writes to a task as a whole waits in the task's queue until a user turn takes it. The queue is in the
// journal, so acknowledged words survive a kill between the restart that took them and the turn that sends them.

// continueText is what the model gets when the person agreed to continue and added no words. It is not marked as the
// user's words, because it is not.
const continueText = "The user has seen this and wants you to go on."

// queueInput shows the person's words and keeps them for the next user turn.
func (d *draft) queueInput(in Input) task.InputQueued {
	d.addRow(rows.Say(d.agent.stamp(), "user_feedback", in.Text, nonNil(in.Images)))
	item := task.InputQueued{Input: d.agent.Task.RunID, Text: in.Text, Images: in.Images}
	d.Put(item)
	return item
}

// queuedInputs is the task's queue, with what others added to it since. When the queue cannot be read now, the loop
// tries again and reports the error.
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
		lost := lostImages(item)
		if item.By != "" { // it came during the run: no row shows it yet
			d.addRow(rows.Say(d.agent.stamp(), "user_feedback", item.Text, nonNil(item.Images)))
		}
		if item.Text != "" {
			blocks = append(blocks, d.expandWords(ctx, item.Text)...)
		}
		if lost != "" {
			d.addRow(rows.Say(d.agent.stamp(), "error", lost, nil))
			blocks = append(blocks, rows.Text(lost))
		}
		blocks = append(blocks, rows.Images(item.Images)...)
		d.Put(task.InputTaken{Input: item.Input})
	}
	return blocks
}

// lostImages describes what is missing of words whose images cannot be read; "" = nothing.
func lostImages(q task.InputQueued) string {
	if q.ImagesBlob == "" {
		return ""
	}
	return fmt.Sprintf("[%d image(s) that came with these words cannot be read any more: "+
		"their file beside the journal is damaged or gone.]", q.ImageCount)
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

func userMessage(text string) string { return "<user_message>\n" + text + "\n</user_message>" }

func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// mentionTime bounds how long everything that one message mentions is resolved: a linter may take a minute, and the
// person waits.
const mentionTime = 90 * time.Second

var errMentionTime = fmt.Errorf("looking up what was mentioned took more than %s", mentionTime)

// expandWords is what the model gets of a person's words: the words as a block, and a block for each file, folder and
// slash command that they mention. Mentions are resolved once, when the words become a turn, and stored with it: a
// restart sends the same. The person's own row keeps the words as typed.
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

// environmentFiles is how many of the workspace's files the model sees at the start of a run.
const environmentFiles = 200

// environmentText is the block that ends every user turn: what the model cannot know from the history. Its section
// names are Roo's. changed is the section of stale files, "" for none.
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
		listing, more := a.Host.Workspace.Overview(environmentFiles)
		fmt.Fprintf(&b, "\n# Current Workspace Directory (%s) Files\n%s\n", a.Host.Workspace.Root(), listing)
		if more {
			b.WriteString("\n(File list truncated. Use list_files to see more.)\n")
		}
	}
	if reminder := a.todoReminder(); reminder != "" {
		b.WriteString("\n" + reminder)
	}
	b.WriteString("</environment_details>")
	return b.String()
}

// addUserTurn adds the next user message: results of calls first, then the other blocks, then the environment.
func (d *draft) addUserTurn(results []string, blocks []json.RawMessage) {
	a := d.agent
	delegated := slices.ContainsFunc(results, func(id string) bool {
		c := a.state().Call(id)
		return c != nil && c.Name == task.SubtaskTool
	})
	changed, records := a.stale.Report(stale.Turn{
		Pending:   d.events,
		Delegated: delegated,
		Reread:    a.Task.Settings.Stale == api.StaleRead,
	})
	d.Put(records...)
	var calls []*task.Call
	for _, id := range results {
		calls = append(calls, a.state().Call(id))
	}
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

// Streamed text goes into the journal after saveBytes bytes or saveMS milliseconds, whichever comes first. The
// journal syncs buffered commits by itself, so a kill loses at most what was shown in the last moment.
const (
	saveBytes = 4 << 10
	saveMS    = 150
)

// draft is one commit in the making. It numbers the messages that it adds, so
// that related events are always one commit. Nothing else
// may be committed between the first message of a draft and its own commit.
type draft struct {
	agent  *Agent
	events []task.Event
	added  uint64
}

func (a *Agent) draft(events ...task.Event) *draft {
	d := &draft{agent: a}
	d.Put(events...)
	return d
}

// Events are the events so far.
func (d *draft) Events() []task.Event { return d.events }

// NextMessage is the number of the next message that the draft adds.
func (d *draft) NextMessage() uint64 { return d.agent.state().NextMessage() + d.added }

// Put adds events. Messages among them were numbered by another draft that was not
// committed.
func (d *draft) Put(events ...task.Event) {
	for _, e := range events {
		if _, is := e.(task.MessageAdded); is {
			d.added++
		}
	}
	d.events = append(d.events, events...)
}

// addMessage adds a message at the end of a history and returns its number.
func (d *draft) addMessage(h task.History, body task.Body) uint64 {
	id := d.NextMessage()
	d.Put(task.MessageAdded{History: h, Message: id, Body: body})
	return id
}

// addRow adds a row for the person.
func (d *draft) addRow(raw []byte) uint64 { return d.addMessage(task.UI, task.Body{Raw: raw}) }

// changeMessage gives a message new content.
func (d *draft) changeMessage(id uint64, raw []byte) {
	d.Put(task.MessageChanged{Message: id, Body: task.Body{Raw: raw}})
}

// commit commits the events; without events it does nothing.
func (d *draft) commit(ctx context.Context) error {
	if len(d.events) == 0 {
		return nil
	}
	return d.agent.commit(ctx, d.events...)
}

// save commits the events and waits until they are on disk.
func (d *draft) save(ctx context.Context) error {
	if err := d.commit(ctx); err != nil {
		return err
	}
	return d.agent.saveJournal(ctx)
}

// saveRetry is how long the agent waits between tries while the disk refuses.
const saveRetry = time.Second

// saveJournal returns when everything committed so far is durable. While the disk refuses, it notifies the person and
// waits: no request goes out and no tool starts until the task is saved. It gives up only when the run is cancelled or
// another process took the task over.
func (a *Agent) saveJournal(ctx context.Context) error {
	err := a.retryUntilSaved(ctx, func() error { return a.Task.Journal.Barrier(ctx) })
	if err == nil {
		a.checkpoints.Durable()
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("save the task: %w", err)
	}
	return err
}

// retryUntilSaved tries again for as long as only the disk refuses.
func (a *Agent) retryUntilSaved(ctx context.Context, try func() error) error {
	notified := false
	for {
		err := try()
		if err == nil {
			if notified {
				a.notice("saved again; the run continues")
			}
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !errors.Is(err, journal.ErrNotSaved) {
			return err
		}
		if !notified {
			a.notice(fmt.Sprintf("%v; the run waits until the task can be saved, then continues by itself", err))
			notified = true
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(saveRetry):
		}
	}
}
