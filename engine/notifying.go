package engine

import (
	"context"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine/notify"
	"github.com/roost-dev/roost/redact"
)

// notifying makes the notifier, which follows the user's settings.
func (e *Engine) notifying() *notify.Notifier {
	return notify.New(notify.Options{
		Settings: func() notify.Config { return e.resolver().Config.Notify },
		Base:     e.opt.Page,
		Look:     e.lookAt,
		Mask:     e.masked,
		Failed:   e.opt.NotifyFailed,
	})
}

// masked hides the keys of the user's settings in a text.
func (e *Engine) masked(text string) string {
	text, _ = redact.New(e.resolver().Config.KnownKeys()...).String(text)
	return text
}

// lookAt returns the title of a task, and whether a question of it is open.
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

// Notifications returns what the notifier did so far; nil when the settings ask for none and it did nothing.
func (e *Engine) Notifications() *api.Notifications { return e.notifier.State() }
