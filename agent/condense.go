package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/roost-dev/roost/agent/shrink"
	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/task"
)

// Condensed describes a summary and what it stands for.
type Condensed struct {
	ID        string // the summary's condenseId
	Messages  int    // how many messages it stands for
	Sent      int    // how many of them were sent until now
	Kept      int    // how many of the newest messages stay as they are
	Before    int64  // tokens of the next request, estimated
	After     int64
	CostMicro int64
	CostKnown bool
	Text      string
}

// ErrTooShort: nothing in the history is worth a summary.
var ErrTooShort = contextwindow.ErrTooShort

// summaryOptions describe how to ask for a summary.
type summaryOptions struct {
	wish       string // what the person wants the summary to keep or to leave out
	transcript bool   // the request holds the history as a text, because it does not fit as messages
	auto       bool   // the person did not ask for it: the environment goes with it
}

// Condense asks the model for a summary of the older part of the history, and sends that instead from now on. words are
// the person's wishes for the summary. Nothing is removed, and the histories are saved when it returns.
func (a *Agent) Condense(ctx context.Context, words string) (Condensed, error) {
	a.setUp()
	a.lastTS = a.state().LastTS()
	c, err := a.condense(ctx, summaryOptions{wish: words})
	if err != nil {
		return c, err
	}
	return c, a.saveJournal(ctx)
}

// PlanCondense returns what Condense would do now, and what asking for the summary is expected to cost, uncached.
func (a *Agent) PlanCondense() (Condensed, error) {
	a.setUp()
	raws, err := a.state().RawAPI()
	if err != nil {
		return Condensed{}, err
	}
	plan, err := contextwindow.PlanCondense(raws, shrink.Keep(raws, a.Model.Entry.Context))
	if err != nil {
		return Condensed{}, err
	}
	c := Condensed{
		Messages: len(plan.Cover),
		Sent:     plan.Sent,
		Kept:     len(raws) - plan.At,
		Before:   a.sizeNow(raws),
	}
	c.CostMicro, c.CostKnown = a.cost(llm.Usage{Input: c.Before})
	return c, nil
}

// condense commits the summary in one commit, which is not saved yet when condense returns.
func (a *Agent) condense(ctx context.Context, o summaryOptions) (Condensed, error) {
	s := a.state()
	api := s.API()
	raws, err := s.RawAPI()
	if err != nil {
		return Condensed{}, err
	}
	plan, err := contextwindow.PlanCondense(raws, shrink.Keep(raws, a.Model.Entry.Context))
	if err != nil {
		return Condensed{}, err
	}
	before := a.sizeNow(raws)
	a.notice(fmt.Sprintf("condensing: %d older messages, about %d tokens in all", plan.Sent, before))
	done, line, err := a.askSummary(ctx, o)
	if err != nil {
		return Condensed{}, errors.Join(err, a.recordSpend(ctx, line))
	}
	failpoint.Hit("condense.asked")
	out := Condensed{
		ID:       uuid.NewString(),
		Messages: len(plan.Cover),
		Sent:     plan.Sent,
		Kept:     len(raws) - plan.At,
		Before:   before,
		Text:     done,
	}
	sum := contextwindow.Summary{ID: out.ID, Text: done}
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
	if plan.At < len(api) {
		at.Before = api[plan.At].ID
	}
	d.Put(at)
	out.After = a.scaleTokens(before, raws, plan.With(raws, summary))
	if line.CostMicros != nil {
		out.CostMicro, out.CostKnown = *line.CostMicros, true
	}
	row := d.addRow(condenseRow(a.stamp(), out))
	var covered []*task.Message
	for _, i := range plan.Cover {
		covered = append(covered, api[i])
	}
	d.Put(line, task.HistoryCondensed{
		Run:      a.Task.RunID,
		Condense: out.ID,
		Summary:  at.Message,
		Row:      row,
		Covers:   s.RunsOf(covered),
		Messages: out.Messages,
		Before:   out.Before,
		After:    out.After,
	})
	if err := d.commit(ctx); err != nil {
		return Condensed{}, err
	}
	a.sending.window = window{}
	failpoint.Hit("condense.committed")
	return out, nil
}

// recordSpend records what a failed summary cost.
func (a *Agent) recordSpend(ctx context.Context, line task.UsageChanged) error {
	if line.Input+line.Output+line.CacheRead+line.CacheWrite == 0 {
		return nil
	}
	return a.commit(ctx, line)
}

// sizeNow is about how many tokens the next request has.
func (a *Agent) sizeNow(raws [][]byte) int64 {
	if n, _ := shrink.Tokens(a.state()); n > 0 {
		return n
	}
	return contextwindow.EstimateTokens(a.requestSize(raws), contextwindow.Calibration{})
}

// scaleTokens estimates the tokens of a request after a change of the history, from those before it.
func (a *Agent) scaleTokens(before int64, was, now [][]byte) int64 {
	return max(before*a.requestSize(now)/max(a.requestSize(was), 1), 1)
}

// requestSize is the size of a request with these messages: system prompt, tools and all.
func (a *Agent) requestSize(raws [][]byte) int64 {
	total := int64(len(a.systemPrompt())) + shrink.Size(raws)
	for _, t := range a.toolSpecs() {
		total += int64(len(t.Name) + len(t.Description) + len(t.Schema))
	}
	return total
}

// askSummary asks for the summary and returns what that cost, also when none came. The history is sent as always with
// one more text at its end, so the provider has nearly all of it in its cache. Where that brings no text, the history
// is sent as a transcript.
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
			Input:      spent.Input + used.Input,
			Output:     spent.Output + used.Output,
			CacheRead:  spent.CacheRead + used.CacheRead,
			CacheWrite: spent.CacheWrite + used.CacheWrite,
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
		if waits++; waits >= turnAttempts || wait > longWait {
			return "", line(), err
		}
		a.notice(fmt.Sprintf("%v; trying again in %s", refused, wait.Round(100*time.Millisecond)))
		select {
		case <-ctx.Done():
			return "", line(), context.Cause(ctx)
		case <-time.After(wait):
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
			used = firstUsage(c.Usage, used)
			text = strings.TrimSpace(blockText(c.Blocks))
			switch {
			case c.StopReason == "max_tokens":
				return "", used, retries, errCut
			case text == "":
				return "", used, retries, errNoText
			}
			return a.mask(text), used, retries, nil
		}
	}
	return "", used, retries, a.cutError("the stream ended before the summary did")
}

func blockText(blocks []json.RawMessage) string {
	var parts []string
	for _, b := range blocks {
		if typ, _ := esjson.GetString(b, "type"); typ == "text" {
			text, _ := esjson.GetString(b, "text")
			parts = append(parts, text)
		}
	}
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

// condenseRow is the row that Roo writes; it has no text.
func condenseRow(ts int64, c Condensed) []byte {
	var info, o esjson.Object
	info.String("summary", c.Text)
	info.Float("cost", float64(c.CostMicro)/1e6)
	info.Int("newContextTokens", c.After)
	info.Int("prevContextTokens", c.Before)
	info.String("condenseId", c.ID)
	o.Int("ts", ts)
	o.String("type", "say")
	o.String("say", "condense_context")
	o.Raw("contextCondense", info.Bytes())
	return o.Bytes()
}
