package agent

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/agent/shrink"
	"github.com/roost-dev/roost/llm"
)

// defaultReply is the room for a reply of a model whose limit is not known, in tokens. It is Roo's.
const defaultReply = 8192

// minWithheld is the least size of a block that is worth leaving out, in bytes.
const minWithheld = 4 << 10

// fitWindow shortens the history while the next request is expected not to fit into the model's window: by a summary
// where the settings allow it, else by hiding older messages. A task whose requests were never counted goes out as it
// is, and the provider judges.
func (a *Agent) fitWindow(ctx context.Context) error {
	if a.Model.Entry.Context <= 0 {
		return nil
	}
	allowed := int64(a.Model.Entry.Context)*9/10 - int64(a.replyRoom())
	for {
		tokens, _ := shrink.Tokens(a.state())
		if shrink.SummaryDue(a.state(), tokens, allowed, a.Task.Settings.Condense, a.Model.Entry.Context) {
			shorter, err := a.tryCondense(ctx, summaryOptions{auto: true, transcript: tokens > int64(a.Model.Entry.Context)})
			if err != nil {
				return err
			}
			if shorter {
				continue
			}
		}
		if tokens <= allowed {
			return nil
		}
		d := a.draft()
		hidden := a.truncate(d, tokens)
		if hidden == 0 {
			return nil
		}
		if err := d.commit(ctx); err != nil {
			return err
		}
		a.notice(fmt.Sprintf("the next request would have about %d tokens, and %d are left for it: %s",
			tokens, allowed, hiddenWords(hidden)))
	}
}

func hiddenWords(n int) string {
	return fmt.Sprintf("%d older messages are not sent any more (the task keeps them)", n)
}

// replyRoom is how many tokens of the window are kept free for the reply.
func (a *Agent) replyRoom() int {
	if n := a.Task.Settings.MaxTokens; n > 0 {
		return n
	}
	if n := min(a.Model.Entry.MaxOutput, a.Model.Entry.Context/5); n > 0 {
		return n
	}
	return defaultReply
}

// truncate hides the older half of what is sent. It returns how many messages it hides, 0 when too few are left.
func (a *Agent) truncate(d *draft, tokens int64) int {
	events, hidden := shrink.Truncate(a.state(), shrink.Truncation{
		Run:         a.Task.RunID,
		At:          a.stamp(),
		NextMessage: d.NextMessage(),
		Tokens:      tokens,
	})
	if hidden > 0 {
		d.Put(events...)
		a.sending.window = window{}
	}
	return hidden
}

// tryCondense makes a summary, unless one was made or failed a short while ago. It reports whether the request
// became shorter. A summary that fails is shown to the person and is no error of the turn: truncation follows
// where it must.
func (a *Agent) tryCondense(ctx context.Context, o summaryOptions) (shorter bool, err error) {
	count := len(a.state().API())
	justFailed := a.sending.uncondensed > 0 && count < a.sending.uncondensed+shrink.SummaryRest
	if a.Task.Settings.Condense <= 0 || justFailed || shrink.SummarySinceReply(a.state()) {
		return false, nil
	}
	c, err := a.condense(ctx, o)
	switch {
	case err == nil:
		a.sending.uncondensed = 0
		a.notice(fmt.Sprintf("condensed: a summary stands for %d messages, about %d tokens are %d now; roost undo takes it back",
			c.Messages, c.Before, c.After))
		return c.After < c.Before, nil
	case ctx.Err() != nil:
		return false, err
	}
	a.sending.uncondensed = max(count, 1)
	if errors.Is(err, ErrTooShort) {
		return false, nil
	}
	a.notice(fmt.Sprintf("the history could not be condensed: %v", err))
	d := a.draft()
	d.addRow(rows.Say(a.stamp(), "condense_context_error", err.Error(), nil))
	return false, d.commit(ctx)
}

// shorten makes a request shorter that the provider found too long. When one result or call is more than half of
// it, that block is left out: hiding everything before it would cost the task its memory and not help.
func (a *Agent) shorten(ctx context.Context, d *draft, refused *llm.Error) (*draft, string, bool) {
	at, size, total := shrink.Largest(a.state(), a.sendableMessages())
	if size*2 <= total {
		if shorter, err := a.tryCondense(ctx, summaryOptions{auto: true, transcript: true}); err == nil && shorter {
			return a.draft(), "the older part of the history is a summary now", true
		}
		tokens, _ := shrink.Tokens(a.state())
		if n := a.truncate(d, tokens); n > 0 {
			return d, hiddenWords(n), true
		}
	}
	if size < minWithheld {
		return nil, "", false
	}
	w := a.withhold(at, false, refused.Message)
	if w == nil {
		return nil, "", false
	}
	w.What += " (" + strconv.Itoa(size) + " bytes)"
	d.Put(*w)
	return d, "left out of what is sent: " + w.What, true
}
