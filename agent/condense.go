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

	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/task"
)

// Condensed says what a summary stands for.
type Condensed struct {
	ID        string // the summary's condenseId
	Messages  int    // that it stands for
	Sent      int    // how many of them were sent until now
	Kept      int    // the newest, which stay as they are
	Before    int64  // tokens of the next request, about
	After     int64
	CostMicro int64
	CostKnown bool
	Text      string
}

// ErrTooShort: there is nothing in the history that is worth a summary.
var ErrTooShort = contextwindow.ErrTooShort

// asking is how a summary is asked for.
type asking struct {
	words string // what the person wants the summary to keep or to leave out
	told  bool   // the history is told in a text, because it does not fit
	auto  bool   // nobody asked for it: the environment goes with it
}

// Condense asks the model for a summary of the older part of the history, and sends
// that instead from now on. words say what it is to look to. Nothing is removed, and
// the histories are saved when it returns.
func (a *Agent) Condense(ctx context.Context, words string) (Condensed, error) {
	a.equip()
	a.lastTS = a.state().LastTS()
	c, err := a.condense(ctx, asking{words: words})
	if err != nil {
		return c, err
	}
	return c, a.save(ctx)
}

// PlanCondense says what Condense would do now, and what asking for the summary is
// expected to cost, uncached.
func (a *Agent) PlanCondense() (Condensed, error) {
	a.equip()
	raws, err := a.state().RawAPI()
	if err != nil {
		return Condensed{}, err
	}
	plan, err := contextwindow.PlanCondense(raws, a.keep(raws))
	if err != nil {
		return Condensed{}, err
	}
	c := Condensed{Messages: len(plan.Cover), Sent: plan.Sent, Kept: len(raws) - plan.At, Before: a.sentNow(raws)}
	c.CostMicro, c.CostKnown = a.cost(llm.Usage{Input: c.Before})
	return c, nil
}

// condense is in the log when it returns, in one commit; not saved yet.
func (a *Agent) condense(ctx context.Context, how asking) (Condensed, error) {
	s := a.state()
	api := s.API()
	raws, err := s.RawAPI()
	if err != nil {
		return Condensed{}, err
	}
	plan, err := contextwindow.PlanCondense(raws, a.keep(raws))
	if err != nil {
		return Condensed{}, err
	}
	before := a.sentNow(raws)
	a.notice(fmt.Sprintf("condensing: %d older messages, about %d tokens in all", plan.Sent, before))
	done, line, err := a.summary(ctx, how)
	if err != nil {
		return Condensed{}, errors.Join(err, a.spent(ctx, line))
	}
	failpoint.Hit("condense.asked")
	out := Condensed{
		ID: uuid.NewString(), Messages: len(plan.Cover), Sent: plan.Sent, Kept: len(raws) - plan.At, Before: before, Text: done,
	}
	sum := contextwindow.Summary{ID: out.ID, Text: done}
	for _, command := range contextwindow.Commands(raws) {
		sum.Reminders = append(sum.Reminders, "The user began this task with a command. What it says still holds:\n"+command)
	}
	sum.Reminders = append(sum.Reminders, a.outlines(ctx)...)
	if how.auto && plan.At == len(raws) {
		sum.Ending = a.mask(a.environment(""))
	}
	summary := plan.Message(raws, sum, a.stamp())
	d := a.draft()
	at := task.MessageAdded{History: task.API, Message: s.NextMessage(), Body: task.Body{Raw: summary}}
	if plan.At < len(api) {
		at.Before = api[plan.At].ID
	}
	d.Put(at)
	out.After = a.scaled(before, raws, plan.With(raws, summary))
	if line.CostMicros != nil {
		out.CostMicro, out.CostKnown = *line.CostMicros, true
	}
	row := d.row(condenseRow(a.stamp(), out))
	var covered []*task.Message
	for _, i := range plan.Cover {
		covered = append(covered, api[i])
	}
	d.Put(line, task.HistoryCondensed{
		Run: a.Task.RunID, Condense: out.ID, Summary: at.Message, Row: row, Covers: s.RunsOf(covered),
		Messages: out.Messages, Before: out.Before, After: out.After,
	})
	if err := d.commit(ctx); err != nil {
		return Condensed{}, err
	}
	a.sending.window = window{}
	failpoint.Hit("condense.committed")
	return out, nil
}

// spent keeps what a summary cost that did not come.
func (a *Agent) spent(ctx context.Context, line task.UsageChanged) error {
	if line.Input+line.Output+line.CacheRead+line.CacheWrite == 0 {
		return nil
	}
	return a.commit(ctx, line)
}

// keep is how many bytes of the newest messages stay as they are: about a tenth of
// the model's window, and of a history that is small for it a quarter.
func (a *Agent) keep(raws [][]byte) int {
	const least, most, unknown = 4 << 10, 120 << 10, 40 << 10
	keep := unknown
	if a.Model.Entry.Context > 0 {
		keep = min(max(a.Model.Entry.Context/10*7/2, least), most)
	}
	total := 0
	for _, raw := range contextwindow.Effective(raws) {
		bytes, _ := contextwindow.Weigh(raw)
		total += bytes
	}
	return min(keep, total/4)
}

// sentNow is about how many tokens the next request would have.
func (a *Agent) sentNow(raws [][]byte) int64 {
	if n := a.contextTokens(); n > 0 {
		return n
	}
	return contextwindow.EstimateTokens(a.weigh(raws), contextwindow.Calibration{})
}

// scaled is about how many tokens a request has after a change of the history, by
// what it had before.
func (a *Agent) scaled(before int64, was, now [][]byte) int64 {
	return max(before*a.weigh(now)/max(a.weigh(was), 1), 1)
}

// weigh is how large a request of these messages is: system prompt, tools and all.
func (a *Agent) weigh(raws [][]byte) int64 {
	total := int64(len(a.system()))
	for _, t := range a.toolSpecs() {
		total += int64(len(t.Name) + len(t.Description) + len(t.Schema))
	}
	for _, raw := range contextwindow.Effective(raws) {
		bytes, images := contextwindow.Weigh(raw)
		total += int64(bytes) + int64(images)*imageTokens
	}
	return total
}

// summary asks for the text, and says what that cost, also when none came. The
// history goes out as always, with one more text at its end: so the provider has
// nearly all of it in its cache. Where that brings no text, it is told instead.
func (a *Agent) summary(ctx context.Context, how asking) (string, task.UsageChanged, error) {
	var spent llm.Usage
	line := func() task.UsageChanged { return (&reply{agent: a, turn: a.state().Turns}).ledger(spent) }
	for waits := 0; ; {
		req, err := a.summaryRequest(how)
		if err != nil {
			return "", line(), err
		}
		text, used, retries, err := a.listen(ctx, req)
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
		case !how.told && (errors.Is(err, errNoText) || errors.As(err, &refused) && (refused.Kind == llm.ContextOverflow || refused.Kind == llm.Invalid)):
			how.told = true
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

// listen is one answer's text, and how often the provider tried again by itself.
func (a *Agent) listen(ctx context.Context, req llm.Request) (text string, used llm.Usage, retries int, err error) {
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
			used = orUsage(c.Usage, used)
			text = strings.TrimSpace(textOf(c.Blocks))
			switch {
			case c.StopReason == "max_tokens":
				return "", used, retries, errCut
			case text == "":
				return "", used, retries, errNoText
			}
			return a.mask(text), used, retries, nil
		}
	}
	return "", used, retries, &llm.Error{Provider: a.Model.Provider.Name(), Kind: llm.Cut, Message: "the stream ended before the summary did"}
}

func textOf(blocks []json.RawMessage) string {
	var parts []string
	for _, b := range blocks {
		if typ, _ := esjson.GetString(b, "type"); typ == "text" {
			text, _ := esjson.GetString(b, "text")
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n")
}

// summaryRequest asks for a summary in the one way or the other.
func (a *Agent) summaryRequest(how asking) (llm.Request, error) {
	number := 1
	for _, c := range a.state().Covers {
		if c.Kind == task.Condense {
			number++
		}
	}
	words := summaryWords
	if how.words != "" {
		words += "\n\nThe user asks for this in particular:\n" + how.words
	}
	if how.told {
		raws := contextwindow.Effective(a.sendable())
		text := "This is a conversation between a user and a software engineer who works with tools.\n\n<conversation>\n" +
			contextwindow.Transcript(raws, a.room()) + "\n</conversation>\n\n" + words
		return llm.Request{
			Model: a.Task.Settings.Model, System: "You write summaries of work in progress, for the one who goes on with it.",
			Messages:  []llm.Message{{Role: "user", Content: joinBlocks([]json.RawMessage{textBlock(text)})}},
			MaxTokens: a.Task.Settings.MaxTokens, Replies: a.state().Replies, Failures: a.state().Failures, Summary: number,
		}, nil
	}
	req, err := a.request()
	if err != nil {
		return req, err
	}
	req.Messages = slices.Clone(req.Messages)
	req.Messages[len(req.Messages)-1] = withText(req.Messages[len(req.Messages)-1], words)
	req.Summary = number
	return req, nil
}

// room is how many bytes of a history are told at most.
func (a *Agent) room() int {
	window := a.Model.Entry.Context
	if window <= 0 {
		window = 100_000
	}
	return max(window*3/2, 8<<10) // half of it, at three bytes a token
}

// withText is a user message with one more text at its end.
func withText(m llm.Message, text string) llm.Message {
	var blocks []json.RawMessage
	if esjson.TypeOf(m.Content) == esjson.TypeString {
		said, _ := esjson.Unquote(m.Content)
		blocks = append(blocks, textBlock(said))
	} else {
		for b := range esjson.Array(m.Content) {
			blocks = append(blocks, b)
		}
	}
	m.Content = joinBlocks(append(blocks, textBlock(text)))
	return m
}

// summaryWords is what the model is asked for.
const summaryWords = `The conversation above is about to be replaced by a summary that you write now. Whoever goes on has only your summary and the newest messages. Answer with the summary alone. Call no tool.

Write down, under these headings:
1. What the user wants: every request and every later change of mind, in the user's own words where they matter. Name what was asked for last.
2. What was decided, and why; what the user refused or does not want.
3. Files: each path that was read, made or changed and still matters, with what matters in it (names, signatures, short pieces of code that will be needed again).
4. What went wrong, how it was mended, and what was tried without success.
5. Where the work stands: what is done and was seen to work, what is begun, what is open.
6. The next step, exactly.

Be complete about facts and short about everything else. Do not invent anything.`

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
