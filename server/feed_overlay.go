package server

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/roost-dev/roost/store/overlay"

	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	feedlog "github.com/roost-dev/roost/store/feed"
)

// The labels of other tools' tasks, and what becomes of deleted tasks, stand in the overlay
// of the root and in no task's journal. On the stream of all tasks they are events of their
// tasks all the same.

// playOverlay gives the changes of the overlay that an entry makes known.
func (p *player) playOverlay(ctx context.Context, e feedlog.Entry, ref store.Ref, from uint64, give func([]engine.Event) error) error {
	for looks := (look{}); ; {
		for c, err := range overlay.Commits(ctx, p.store.OverlayDir(), from) {
			if err != nil {
				return passOver(ctx, err) // its events are gone with it
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
		if more, err := p.again(ctx, ref, &looks); err != nil || !more {
			return err
		}
	}
}

// overlayEvents renders a change. Like all events it depends on the log alone. seq is the
// newest commit of the task's own journal at that time; overlay numbers the changes.
func overlayEvents(c overlay.Commit) []engine.Event {
	out := make([]engine.Event, 0, len(c.Events))
	for _, m := range c.Events {
		var o esjson.Object
		o.String("type", m.Type)
		o.String("task_id", m.Task)
		o.Int("seq", int64(m.Head)) //nolint:gosec // a count of commits
		o.String("at", report.Stamp(c.At))
		o.String("source", m.Source)
		o.Int("overlay", int64(c.Seq)) //nolint:gosec // a count of commits
		if m.Title != nil {
			o.String("title", *m.Title)
		}
		if m.Tags != nil {
			tags, _ := json.Marshal(*m.Tags) // strings always go
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
		// No live event comes before or behind it: it is not of a run, and names no task here.
		out = append(out, engine.Event{ID: strconv.FormatUint(c.Epoch, 10) + "." + strconv.FormatUint(c.Seq, 10), Type: m.Type, Seq: c.Seq, At: c.At, Data: o.Bytes()})
	}
	return out
}
