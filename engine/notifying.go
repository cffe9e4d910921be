package engine

import (
	"context"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/notify"
	"github.com/roost-dev/roost/redact"
)

// notifying makes the notifier of the user's settings; nil when they ask for none.
func (e *Engine) notifying() *notify.Notifier {
	var known []redact.Known
	for _, key := range e.opt.Config.Keys {
		known = append(known, redact.Known{Value: key})
	}
	known = append(known, e.opt.Config.CloudSecrets()...)
	masks := redact.New(known...)
	return notify.New(notify.Options{
		Config: e.opt.Config.Notify,
		Base:   e.opt.Page,
		Look:   e.lookAt,
		Mask:   func(text string) string { text, _ = masks.String(text); return text },
		Failed: e.opt.NotifyFailed,
	})
}

// lookAt is the title of a task, and whether a question of it is open.
func (e *Engine) lookAt(ctx context.Context, id, question string) (title string, open bool, err error) {
	ref, err := e.store.Find(ctx, id)
	if err != nil {
		return "", false, err
	}
	t := e.store.SummaryOf(ctx, ref)
	if question == "" {
		return t.Title, false, nil
	}
	asked, err := e.openQuestions(ctx, ref)
	return t.Title, slices.ContainsFunc(asked, func(a Asked) bool { return a.Question == question }), err
}

// Notifications is what the notifier did so far; nil without one.
func (e *Engine) Notifications() *api.Notifications { return e.notifier.State() }
