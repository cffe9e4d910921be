package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/agent/shrink"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/task"
)

// defaultReply is the room for a reply of a model whose limit is not known, in tokens. It is Roo's.
const defaultReply = 8192

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

// replyRoom returns how many tokens of the window are kept free for the reply.
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
	events, hidden := shrink.Truncate(a.state(), a.Task.RunID, a.stamp(), d.NextMessage(), tokens)
	if hidden > 0 {
		d.Put(events...)
		a.sending.window = window{}
	}
	return hidden
}

// tryCondense makes a summary, unless one was made or failed a short while ago. It reports whether the request
// became shorter. A failed summary is shown to the person and does not fail the turn: truncation follows
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

// ErrTooShort: nothing in the history is worth a summary.
var ErrTooShort = contextwindow.ErrTooShort

// summaryOptions describe how to ask for a summary.
type summaryOptions struct {
	wish       string // what the person wants the summary to keep or to leave out
	transcript bool   // the request holds the history as a text, because it does not fit as messages
	auto       bool   // the person did not ask for the summary: it ends with the environment
}

// Condense asks the model for a summary of the older part of the history, and sends that instead from now on. words are
// the person's wishes for the summary. Nothing is removed, and the histories are saved when it returns.
func (a *Agent) Condense(ctx context.Context, words string) (api.Condensed, error) {
	a.setUp()
	a.lastTS = a.state().LastTS()
	c, err := a.condense(ctx, summaryOptions{wish: words})
	if err != nil {
		return c, err
	}
	return c, a.saveJournal(ctx)
}

// PlanCondense returns what Condense would do now, and what asking for the summary is expected to cost, uncached.
func (a *Agent) PlanCondense() (api.Condensed, error) {
	a.setUp()
	_, _, c, err := a.planSummary()
	c.DryRun = true
	if micros, known := a.cost(llm.Usage{Input: c.Before}); err == nil && known {
		c.Cost = new(money.USD(micros))
	}
	return c, err
}

// planSummary decides which messages a summary replaces in requests. raws is the visible history.
func (a *Agent) planSummary() (plan contextwindow.Condensation, raws [][]byte, c api.Condensed, err error) {
	if raws, err = a.state().RawAPI(); err == nil {
		plan, err = contextwindow.PlanCondense(raws, shrink.Keep(raws, a.Model.Entry.Context))
	}
	if err != nil {
		return plan, raws, c, err
	}
	c = api.Condensed{Messages: len(plan.Cover), Sent: plan.Sent, Kept: len(raws) - plan.At, Before: a.sizeNow(raws)}
	return plan, raws, c, nil
}

// condense commits the summary in one commit, which is not saved yet when condense returns.
func (a *Agent) condense(ctx context.Context, o summaryOptions) (api.Condensed, error) {
	s := a.state()
	messages := s.API()
	plan, raws, out, err := a.planSummary()
	if err != nil {
		return api.Condensed{}, err
	}
	a.notice(fmt.Sprintf("condensing: %d older messages, about %d tokens in all", out.Sent, out.Before))
	text, line, err := a.askSummary(ctx, o)
	if err != nil {
		if line.Input+line.Output+line.CacheRead+line.CacheWrite > 0 { // it was spent all the same
			err = errors.Join(err, a.commit(ctx, line))
		}
		return api.Condensed{}, err
	}
	failpoint.Hit("condense.asked")
	out.Condense, out.Summary = uuid.NewString(), text
	sum := contextwindow.Summary{ID: out.Condense, Text: text}
	for _, command := range contextwindow.Commands(raws) {
		sum.Reminders = append(sum.Reminders, "The user began this task with a command. Its instructions still apply:\n"+command)
	}
	for _, text := range shrink.Outlines(ctx, a.Host.Workspace, s.Files) {
		sum.Reminders = append(sum.Reminders, a.mask(text))
	}
	if o.auto && plan.At == len(raws) {
		sum.Ending = a.mask(a.environmentText(""))
	}
	summary := plan.Message(raws, sum, a.stamp())
	d := a.draft()
	at := task.MessageAdded{History: task.API, Message: s.NextMessage(), Body: task.Body{Raw: summary}}
	if plan.At < len(messages) {
		at.Before = messages[plan.At].ID
	}
	d.Put(at)
	out.After = max(out.Before*a.requestSize(plan.With(raws, summary))/max(a.requestSize(raws), 1), 1)
	out.Cost = (*money.USD)(line.CostMicros)
	row := d.addRow(condenseRow(a.stamp(), out))
	covered := api.Each(plan.Cover, func(i int) *task.Message { return messages[i] })
	d.Put(line, task.HistoryCondensed{
		Run: a.Task.RunID, Condense: out.Condense, Summary: at.Message, Row: row,
		Covers: s.RunsOf(covered), Messages: out.Messages, Before: out.Before, After: out.After,
	})
	if err := d.commit(ctx); err != nil {
		return api.Condensed{}, err
	}
	a.sending.window = window{}
	failpoint.Hit("condense.committed")
	return out, nil
}

// sizeNow is about how many tokens the next request has.
func (a *Agent) sizeNow(raws [][]byte) int64 {
	if n, _ := shrink.Tokens(a.state()); n > 0 {
		return n
	}
	return contextwindow.EstimateTokens(a.requestSize(raws))
}

// requestSize returns the size of a request with these messages: system prompt, tools and all.
func (a *Agent) requestSize(raws [][]byte) int64 {
	return int64(len(a.systemPrompt())) + a.toolsSize() + shrink.Size(raws)
}

// toolsSize returns the size of the tools in a request.
func (a *Agent) toolsSize() (total int64) {
	for _, t := range a.toolSpecs() {
		total += int64(len(t.Name) + len(t.Description) + len(t.Schema))
	}
	return total
}

// askSummary asks for the summary and returns what that cost, also when no summary came. It sends the history as always,
// with one more text at its end, so the provider has nearly all of it in its cache. Where that brings no text, it sends the
// history as a transcript.
func (a *Agent) askSummary(ctx context.Context, o summaryOptions) (string, task.UsageChanged, error) {
	var spent llm.Usage
	line := func() task.UsageChanged { return (&reply{agent: a, turn: a.state().Turns}).usageRecord(spent) }
	for waits := 0; ; {
		req, err := a.summaryRequest(o)
		if err != nil {
			return "", line(), err
		}
		text, used, retries, err := a.receiveSummary(ctx, req)
		waits += retries
		spent = llm.Usage{
			Input: spent.Input + used.Input, Output: spent.Output + used.Output,
			CacheRead: spent.CacheRead + used.CacheRead, CacheWrite: spent.CacheWrite + used.CacheWrite,
		}
		var refused *llm.Error
		switch {
		case err == nil:
			return text, line(), nil
		case ctx.Err() != nil:
			return "", line(), context.Cause(ctx)
		case !o.transcript && (errors.Is(err, errNoText) || errors.As(err, &refused) &&
			(refused.Kind == llm.ContextOverflow || refused.Kind == llm.Invalid)):
			o.transcript = true
			continue
		case !errors.As(err, &refused) || !refused.Retryable():
			return "", line(), err
		}
		wait := backoff(waits+1, refused.RetryAfterMS)
		if waits++; waits >= refused.Tries(turnAttempts) || wait > longWait {
			return "", line(), err
		}
		if err := a.waitForProvider(ctx, refused, wait, false); err != nil {
			return "", line(), err
		}
	}
}

var (
	errNoText = errors.New("the model answered without a summary")
	errCut    = errors.New("the summary was longer than a reply may be, and is cut off")
)

// receiveSummary receives the text of one answer, and how often the provider tried again by itself.
func (a *Agent) receiveSummary(ctx context.Context, req llm.Request) (text string, used llm.Usage, retries int, err error) {
	for chunk, err := range a.Model.Provider.Stream(ctx, req) {
		if err != nil {
			return "", used, retries, err
		}
		switch c := chunk.(type) {
		case llm.UsageReport:
			used = c.Usage
		case llm.Retrying:
			retries++
			a.notice(fmt.Sprintf("%v; trying again in %.1f s", c.Err, float64(c.WaitMS)/1000))
		case llm.Done:
			used = cmp.Or(c.Usage, used)
			text = strings.TrimSpace(blockText(c.Blocks))
			switch {
			case c.StopReason == "max_tokens":
				return "", used, retries, errCut
			case text == "", c.StopReason == "refusal":
				return "", used, retries, errNoText
			}
			return a.mask(text), used, retries, nil
		}
	}
	return "", used, retries, a.cutError("the stream ended before the summary did")
}

func blockText(blocks []json.RawMessage) string {
	parts := api.Some(blocks, func(b json.RawMessage) (string, bool) {
		return esjson.TextOf(b, "text"), esjson.TextOf(b, "type") == "text"
	})
	return strings.Join(parts, "\n")
}

// summaryRequest builds the request for a summary.
func (a *Agent) summaryRequest(o summaryOptions) (llm.Request, error) {
	s := a.state()
	words := shrink.SummaryWords(o.wish)
	if o.transcript {
		req := shrink.TranscriptRequest(a.sendableMessages(), words, a.Model.Entry.Context)
		req.Model, req.MaxTokens = a.Task.Settings.Model, a.Task.Settings.MaxTokens
		req.Replies, req.Failures, req.Summary = s.Replies, s.Failures, shrink.SummaryNumber(s)
		return req, nil
	}
	req, err := a.buildRequest()
	if err != nil {
		return req, err
	}
	last := len(req.Messages) - 1
	req.Messages = slices.Clone(req.Messages)
	req.Messages[last] = shrink.WithText(req.Messages[last], words)
	req.Summary = shrink.SummaryNumber(s)
	return req, nil
}

// condenseRow returns the row that Roo writes; it has no text.
func condenseRow(ts int64, c api.Condensed) []byte {
	cost := money.USD(0) // also when it is not known
	if c.Cost != nil {
		cost = *c.Cost
	}
	return esjson.ObjectOf("ts", ts, "type", "say", "say", "condense_context",
		"contextCondense", esjson.ObjectOf("summary", c.Summary, "cost", float64(cost)/1e6,
			"newContextTokens", c.After, "prevContextTokens", c.Before, "condenseId", c.Condense))
}

// Context breaks down the next request, in tokens. The parts add up to Used. Where the provider counted the request
// before, its count is shared out by size; otherwise everything is estimated.
func (a *Agent) Context() (api.ContextUse, error) {
	a.setUp()
	raws, err := a.state().RawAPI()
	if err != nil {
		return api.ContextUse{}, err
	}
	size := map[string]int64{"system": int64(len(a.systemPrompt())), "tools": a.toolsSize()}
	sent := contextwindow.Effective(raws)
	for _, raw := range sent {
		a.addSizes(raw, size)
	}
	u := api.ContextUse{Model: a.Task.Settings.Model, Messages: len(sent)}
	total := int64(0)
	for _, n := range size {
		total += n
	}
	_, u.Counted = shrink.Tokens(a.state())
	u.Used = a.sizeNow(raws)
	left := u.Used
	for _, name := range []string{"system", "tools", "summary", "results", "files", "images"} {
		part := api.ContextPart{Name: name, Tokens: u.Used * size[name] / max(total, 1)}
		u.Parts = append(u.Parts, part)
		left -= part.Tokens
	}
	u.Parts = slices.Insert(u.Parts, 3, api.ContextPart{Name: "history", Tokens: left}) // also what rounding leaves
	if window := int64(a.Model.Entry.Context); window > 0 {
		reply := int64(a.replyRoom())
		u.Window, u.Reply, u.Free = &window, &reply, new(max(window-reply-u.Used, 0))
	}
	return u, nil
}

// addSizes adds the parts of a message to the sizes.
func (a *Agent) addSizes(raw []byte, size map[string]int64) {
	name := "history"
	if esjson.IsTrue(raw, "isSummary") {
		name = "summary"
	}
	content, _ := esjson.Get(raw, "content")
	if esjson.TypeOf(content) != esjson.TypeArray {
		size[name] += int64(len(content))
		return
	}
	for b := range esjson.Array(content) {
		bytes, images := contextwindow.Weigh(b)
		size["images"] += int64(images) * shrink.ImageBytes
		typ, _ := esjson.GetString(b, "type")
		text, _ := esjson.GetString(b, "text")
		part := name
		switch {
		case typ == "image":
			continue
		case typ == "tool_result":
			part = "results"
			if c := a.state().Call(esjson.TextOf(b, "tool_use_id")); c != nil && c.Name == "read_file" {
				part = "files"
			}
		case strings.HasPrefix(text, "[read_file for "):
			part = "files"
		}
		size[part] += int64(bytes)
	}
}
