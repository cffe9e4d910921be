package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/agent/stale"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/mention"
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

// takeInputs uses up queued words that the draft has not used up yet, and returns their blocks for the user turn of the
// same commit.
func (d *draft) takeInputs(ctx context.Context, items []task.InputQueued) []task.Piece {
	return literalPieces(d.takeBlocks(ctx, items))
}

// takeBlocks does that for a result that is no user turn.
func (d *draft) takeBlocks(ctx context.Context, items []task.InputQueued) []json.RawMessage {
	var blocks []json.RawMessage
	for _, item := range items {
		if slices.Contains(d.events, task.Event(task.InputTaken{Input: item.Input})) {
			continue
		}
		if !d.queuesInput(item.Input) {
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

// queuesInput reports whether this draft is what adds an input to the queue.
func (d *draft) queuesInput(input string) bool {
	return slices.ContainsFunc(d.events, func(e task.Event) bool {
		q, ok := e.(task.InputQueued)
		return ok && q.Input == input
	})
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

func literalPieces(blocks []json.RawMessage) []task.Piece {
	var out []task.Piece
	for _, b := range blocks {
		out = append(out, task.Piece{Literal: string(b)})
	}
	return out
}

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
