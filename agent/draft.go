package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/internal/sleep"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/task"
)

// Streamed text goes into the journal after saveBytes bytes or saveMS milliseconds, whichever comes first. The
// journal syncs buffered commits by itself, so a kill loses at most what was shown in the last moment.
const (
	saveBytes = 4 << 10
	saveMS    = 150
)

// streamedRow is one row that grows. A row of a reply enters the journal when its text is first saved: most replies are
// complete before that, and their rows are then written once, whole, with the reply.
type streamedRow struct {
	kind    string // reasoning, text, command_output
	message uint64
	ts      int64
	text    strings.Builder // all text that came
	saved   int             // how much of it is in the journal, in bytes
	savedAt int64
}

// due reports whether it is time to save the text that came.
func (s *streamedRow) due(now int64) bool {
	return s.text.Len()-s.saved >= saveBytes || now-s.savedAt >= saveMS
}

// saveText adds the text that is not in the journal yet.
func (s *streamedRow) saveText(d *draft, now int64) {
	if rest := s.text.String()[s.saved:]; rest != "" {
		d.Put(task.MessageTextSaved{Message: s.message, Text: rest})
	}
	s.saved, s.savedAt = s.text.Len(), now
}

// end ends a row that is in the journal. It refers to the saved text instead of writing it again.
func (s *streamedRow) end(d *draft) {
	s.saveText(d, s.savedAt)
	d.Put(task.MessageChanged{Message: s.message, Body: rows.StreamOf(s.ts, s.kind, s.message)})
}

// draft collects the events of one commit. It numbers the messages that it adds, so that events which belong together are
// one commit. Nothing else may be committed between the first message of a draft and its own commit.
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

// Events returns the events so far.
func (d *draft) Events() []task.Event { return d.events }

// NextMessage returns the number of the next message that the draft adds.
func (d *draft) NextMessage() uint64 { return d.agent.state().NextMessage() + d.added }

// Put adds events. Another draft, which was not committed, numbered the messages among them.
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
		if !sleep.For(ctx, saveRetry) {
			return context.Cause(ctx)
		}
	}
}
