package events

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/feed"
	"github.com/roost-dev/roost/store/overlay"
)

// The overlay of the root has the labels of other tools' tasks and the moves of deleted tasks. No task's journal has
// them, and in the stream of all tasks they are events of their tasks.

// readOverlay gives the changes of the overlay that an entry announces.
func (r *entryReader) readOverlay(ctx context.Context, e feed.Entry, ref store.Ref, from uint64, give func([]Event) error) error {
	for tries := (retries{}); ; {
		for c, err := range overlay.Commits(ctx, r.store.OverlayDir(), from) {
			if err != nil {
				return skipUnreadable(ctx, err)
			}
			if c.Seq > e.New.To {
				return nil
			}
			from = c.Seq + 1
			if events := overlayEvents(c); len(events) > 0 {
				if err := give(events); err != nil {
					return err
				}
			}
		}
		if from > e.New.To {
			return nil
		}
		if more, err := r.again(ctx, ref, &tries); err != nil || !more {
			return err
		}
	}
}

// overlayEvents renders a change. Like all events it depends on the journal alone. seq is the newest commit of the
// task's own journal at that time; overlay numbers the changes.
func overlayEvents(c overlay.Commit) []Event {
	out := make([]Event, 0, len(c.Events))
	for _, m := range c.Events {
		var o esjson.Object
		o.String("type", m.Type)
		o.String("task_id", m.Task)
		o.Int("seq", int64(m.Head)) //nolint:gosec // a count of commits
		o.String("at", time.UnixMilli(c.At).UTC().Format("2006-01-02T15:04:05.000Z"))
		o.String("source", m.Source)
		o.Int("overlay", int64(c.Seq)) //nolint:gosec // a count of commits
		if m.Title != nil {
			o.String("title", *m.Title)
		}
		if m.Tags != nil {
			tags, _ := json.Marshal(*m.Tags) // strings always succeed
			o.Raw("tags", tags)
		}
		if m.Pinned != nil {
			o.Bool("pinned", *m.Pinned)
		}
		if m.Deleted != nil {
			o.Bool("deleted", *m.Deleted)
		}
		if m.Type == "task.deleted" {
			o.Bool("hidden", m.Hidden)
			o.Bool("purged", m.Purged)
			if !m.Purged {
				o.String("name", m.Name)
			}
		}
		// The event names no task here: it belongs to no run, so no live event precedes or follows it.
		out = append(out, Event{ID: strconv.FormatUint(c.Epoch, 10) + "." + strconv.FormatUint(c.Seq, 10), Type: m.Type,
			Seq: c.Seq, At: c.At, Data: o.Bytes()})
	}
	return out
}
