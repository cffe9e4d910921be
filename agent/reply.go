package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/task"
)

// reply receives one reply and keeps what was shown.
type reply struct {
	agent     *Agent
	turn      int
	request   uint64 // the api_req_started row
	requestTS int64

	rows      []*streamedRow // reasoning and text rows, in order
	saved     int            // how many of the rows are in the journal; they are added in order
	usage     llm.Usage      // what the provider reported until now
	recorded  llm.Usage      // the part of it that is recorded
	hasRecord bool           // a usage record of this request exists
	retries   int            // attempts that the provider repeated by itself
}

func (r *reply) receive(ctx context.Context, chunks iter.Seq2[llm.Chunk, error]) error {
	for chunk, err := range chunks {
		if err != nil {
			return r.abort(ctx, err)
		}
		switch c := chunk.(type) {
		case llm.TextDelta:
			err = r.appendText(ctx, "text", c.Text)
		case llm.ReasoningDelta:
			err = r.appendText(ctx, "reasoning", c.Text)
		case llm.ToolDelta:
			r.agent.live(Delta{Type: "tool.delta", Call: c.ID, Text: c.Input})
			if r.hasUnrecordedCost() {
				err = r.saveProgress(ctx)
			}
		case llm.UsageReport:
			r.usage = c.Usage
		case llm.Retrying:
			r.retries++
			failed := r.agent.turnFailed(r.turn, c.Err)
			failed.WaitMS = c.WaitMS
			err = r.agent.commit(ctx, failed)
			r.agent.notice(fmt.Sprintf("%v; trying again in %.1f s", c.Err, float64(c.WaitMS)/1000))
		case llm.Done:
			return r.finish(ctx, c)
		}
		if err != nil {
			return r.abort(ctx, err)
		}
	}
	if ctx.Err() != nil {
		return r.abort(ctx, context.Cause(ctx))
	}
	return r.abort(ctx, r.agent.cutError("the stream ended before the reply did"))
}

// appendText appends streamed text to the row of its kind.
func (r *reply) appendText(ctx context.Context, kind, text string) error {
	if text == "" {
		return nil
	}
	a := r.agent
	var row *streamedRow // one per kind and reply
	if i := slices.IndexFunc(r.rows, func(row *streamedRow) bool { return row.kind == kind }); i >= 0 {
		row = r.rows[i]
	} else {
		row = &streamedRow{kind: kind, ts: a.stamp(), savedAt: a.Host.Now()}
		// Nothing else adds a message while a reply is received.
		row.message = a.state().NextMessage() + uint64(len(r.rows)-r.saved)
		r.rows = append(r.rows, row)
	}
	typ := "message.delta"
	if kind == "reasoning" {
		typ = "reasoning.delta"
	}
	r.agent.live(Delta{Type: typ, Message: row.message, TS: row.ts, Offset: row.text.Len(), Text: text})
	row.text.WriteString(text)
	if r.hasUnrecordedCost() || row.due(a.Host.Now()) {
		if err := r.saveProgress(ctx); err != nil {
			return err
		}
	}
	failpoint.Hit("reply.streaming")
	return nil
}

// saveProgress puts all that came into the journal. That includes rows that have ended, such as the thinking before the
// words: without it they would wait for the end of the reply.
func (r *reply) saveProgress(ctx context.Context) error {
	d := r.agent.draft()
	for i, row := range r.rows {
		if i >= r.saved {
			d.addRow(rows.Stream(row.ts, row.kind, "", true))
		}
		row.saveText(d, r.agent.Host.Now())
	}
	r.saved = len(r.rows)
	if r.usage != r.recorded {
		d.changeMessage(r.request, rows.Request(r.requestTS, r.agent.usageInfo(r.usage)))
		d.Put(r.usageRecord(r.usage))
	}
	return d.commit(ctx)
}

// finishRows ends the streamed rows. It refers to saved text instead of writing it again.
func (r *reply) finishRows() *draft {
	d := r.agent.draft()
	for i, row := range r.rows {
		if i >= r.saved {
			d.addRow(rows.Stream(row.ts, row.kind, row.text.String(), false))
			continue
		}
		row.end(d)
	}
	return d
}

// finish commits the whole reply in one commit: rows, request row, usage record and the assistant message.
func (r *reply) finish(ctx context.Context, d llm.Done) error {
	a := r.agent
	d.Usage = cmp.Or(d.Usage, r.usage)
	out := r.finishRows()
	out.changeMessage(r.request, rows.Request(r.requestTS, a.usageInfo(d.Usage)))
	if !r.hasRecord || d.Usage != r.recorded {
		out.Put(r.usageRecord(d.Usage))
	}
	out.Put(task.TurnEnded{
		Run: a.Task.RunID, Turn: r.turn, StopReason: d.StopReason, ReasoningFrom: d.ReasoningFrom,
		WorkedMS: a.workedMS(),
	})
	blocks, wrong := uniqueCallIDs(d.Blocks, d.Malformed, func(id string) bool { return a.state().Call(id) != nil })
	if len(blocks) == 0 {
		blocks = []json.RawMessage{rows.Text("Failure: I did not provide a response.")}
	}
	out.addMessage(task.API, task.Body{Raw: rows.Assistant(a.stamp(), d.ID, blocks, d.ReasoningDetails)})
	out.Put(closeMalformed(blocks, wrong)...)
	for _, w := range a.sending.trial { // the guess was right
		out.Put(w)
	}
	a.sending.trial = nil
	a.loop.malformed, a.loop.stopReason = len(wrong) > 0, d.StopReason
	if err := out.commit(ctx); err != nil {
		return err
	}
	failpoint.Hit("reply.committed")
	return nil
}

// abort ends an incomplete reply. What was shown stays for the person; the model's history has nothing of it, as with
// Roo.
func (r *reply) abort(ctx context.Context, cause error) error {
	a := r.agent
	out := r.finishRows()
	info := rows.RequestInfo{Protocol: a.protocol()}
	if r.usage != (llm.Usage{}) {
		// The provider counted tokens for the part it sent: they were spent.
		info = a.usageInfo(r.usage)
		if r.usage != r.recorded {
			out.Put(r.usageRecord(r.usage))
		}
	}
	info.CancelReason, info.FailedWhy = cutReason, cause.Error()
	if ctx.Err() != nil {
		info.CancelReason, info.FailedWhy = "user_cancelled", ""
	}
	out.changeMessage(r.request, rows.Request(r.requestTS, info))
	if err := out.commit(ctx); err != nil {
		return fmt.Errorf("%w (and: %w)", cause, err)
	}
	return cause
}

// closeMalformed closes the calls whose input was not JSON, in the commit of the reply itself: in the history their
// input is {}, and a restart must not run them with that.
func closeMalformed(blocks []json.RawMessage, wrong map[string]string) []task.Event {
	var events []task.Event
	for _, block := range blocks {
		id, _ := esjson.GetString(block, "id")
		sent, is := wrong[id]
		if esjson.TextOf(block, "type") != "tool_use" || !is {
			continue
		}
		name, _ := esjson.GetString(block, "name")
		text := rows.Failure("the call's input is not complete JSON, and the tool was not run; this was sent: " + sent)
		events = append(events, task.ToolFinished{
			Call: id, Name: name, Outcome: "error", Result: rows.Result(id, text, nil, true),
		})
	}
	return events
}

// cutReason is Roo's reason for a request whose reply is incomplete.
const cutReason = "streaming_failed"

// hasUnrecordedCost reports whether the provider sent what the request costs and the journal does not hold it yet:
// the request costs money even if the program is killed now.
func (r *reply) hasUnrecordedCost() bool { return !r.hasRecord && r.usage != (llm.Usage{}) }

// usageRecord returns the usage record for the part of this reply's usage that no record holds yet.
func (r *reply) usageRecord(u llm.Usage) task.UsageChanged {
	a, was := r.agent, r.recorded
	line := task.UsageChanged{
		Turn: r.turn, Request: r.request, Provider: a.Model.Provider.Name(), Model: a.Task.Settings.Model,
		Input: u.Input - was.Input, Output: u.Output - was.Output,
		CacheRead: u.CacheRead - was.CacheRead, CacheWrite: u.CacheWrite - was.CacheWrite,
		Prices: catalogue.Date(), More: r.hasRecord,
	}
	if micros, ok := a.cost(u); ok && u != (llm.Usage{}) { // no request is free: the provider counted nothing
		if before, known := a.cost(was); r.hasRecord && known {
			micros -= before
		}
		line.CostMicros = &micros
	}
	r.recorded, r.hasRecord = u, true
	return line
}

// usageInfo returns the text of a request row with the request's usage.
func (a *Agent) usageInfo(u llm.Usage) rows.RequestInfo {
	info := rows.RequestInfo{
		Protocol: a.protocol(), Done: true, In: u.Input + u.CacheRead + u.CacheWrite, Out: u.Output,
		Write: u.CacheWrite, Read: u.CacheRead,
	}
	if micros, ok := a.cost(u); ok {
		info.Cost = float64(micros) / 1e6
	}
	return info
}

// interruptedRequest returns the last request row, marked as incomplete, when the program was killed during its
// reply; 0 when it was not. Roo takes a row without such a reason for a request that was answered.
func (a *Agent) interruptedRequest() (row uint64, raw json.RawMessage) {
	s := a.state()
	api := s.API()
	for _, m := range slices.Backward(s.UI()) {
		if m.Kind() != "say:api_req_started" {
			continue
		}
		text := []byte(m.Text())
		_, cost := esjson.Get(text, "cost")
		_, cut := esjson.Get(text, "cancelReason")
		answered := slices.ContainsFunc(api, func(r *task.Message) bool { return r.ID > m.ID && r.Kind() == "assistant" })
		if m.Foreign || !cost || cut || answered {
			return 0, nil
		}
		text = esjson.Set(text, "cancelReason", esjson.Quote(nil, cutReason))
		text = esjson.Set(text, "streamingFailedMessage", esjson.Quote(nil, "the program was killed"))
		return m.ID, esjson.Set(m.Raw(), "text", esjson.Quote(nil, string(text)))
	}
	return 0, nil
}

// cutError is the error of a stream that ended too early.
func (a *Agent) cutError(message string) error {
	return &llm.Error{Provider: a.Model.Provider.Name(), Kind: llm.Cut, Message: message}
}

// uniqueCallIDs gives new ids to calls whose ids are taken or missing, so that each call has its own outcome and each
// result finds its call. It runs before the reply is stored: the stored reply is what is sent, and the model only needs
// its ids to come back. A new id depends on nothing but the reply and the taken ids.
//
// Providers do repeat ids: some count from zero in each reply. wrong are the calls whose input was not JSON; the reply
// holds them with the input {}, which distinguishes them when several calls have one id.
func uniqueCallIDs(blocks []json.RawMessage, wrong map[string]string, taken func(id string) bool) ([]json.RawMessage, map[string]string) {
	out := make([]json.RawMessage, len(blocks))
	renamed := map[string]string{}
	mine := map[string]bool{}
	for i, block := range blocks {
		out[i] = block
		if esjson.TextOf(block, "type") != "tool_use" {
			continue
		}
		old, _ := esjson.GetString(block, "id")
		id := cmp.Or(old, "call_"+strconv.Itoa(i+1))
		for base, n := id, 2; mine[id] || taken(id); n++ {
			id = base + "_" + strconv.Itoa(n)
		}
		mine[id] = true
		if id != old {
			out[i] = esjson.Set(block, "id", esjson.Quote(nil, id))
		}
		input, _ := esjson.Get(block, "input")
		if sent, is := wrong[old]; is && (input == nil || string(input) == "{}") {
			renamed[id] = sent
		}
	}
	return out, renamed
}
