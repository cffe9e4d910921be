package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/internal/sleep"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool/prompttool"
)

// buildRequest builds the next request from the task's history and settings alone.
func (a *Agent) buildRequest() (llm.Request, error) {
	s := a.state()
	messages, notes, err := a.sending.window.messages(s.Sent(), a.windowOptions(), a.withoutWithheld)
	if err != nil {
		return llm.Request{}, fmt.Errorf("build the request: %w", err)
	}
	for _, n := range notes {
		if !a.sending.notes[n] {
			if a.sending.notes == nil {
				a.sending.notes = map[contextwindow.Note]bool{}
			}
			a.sending.notes[n] = true
			where := fmt.Sprintf("message %d: ", n.Index)
			if n.Index < 0 { // it is about no message of its own
				where = ""
			}
			a.notice("not sent as stored: " + where + n.Text)
		}
	}
	return llm.Request{
		Model: a.Task.Settings.Model, MaxTokens: a.Task.Settings.MaxTokens,
		System: a.systemPrompt(), Tools: a.toolSpecs(), Messages: messages,
		Replies: s.Replies, Failures: s.Failures,
	}, nil
}

// windowOptions describe which of the model's own thinking its provider wants back.
func (a *Agent) windowOptions() contextwindow.Options {
	o := contextwindow.ForModel(a.Model.Provider.Name(), a.Task.Settings.Model)
	o.KeepReasoningContent = slices.Contains(a.state().ReasoningTo, a.serverName())
	if a.sending.unthinking {
		o.DropThinking, o.KeepReasoning, o.KeepSignatures, o.KeepDetails, o.KeepReasoningContent = true, false, false, false, false
	}
	return o
}

// serverName names the server and the model that answer, "" where there is only one.
func (a *Agent) serverName() string {
	if at, is := a.Model.Provider.(llm.Addressee); is {
		return at.Server(a.Task.Settings.Model)
	}
	return ""
}

func (a *Agent) toolSpecs() []llm.ToolSpec {
	specs := make([]llm.ToolSpec, 0, len(a.Tools.List))
	for _, t := range a.Tools.List {
		spec := t.Spec()
		if !a.offers(spec) || a.modeLacks(spec) != nil {
			continue
		}
		specs = append(specs, llm.ToolSpec{Name: spec.Name, Description: spec.Description, Schema: spec.Schema})
	}
	return specs
}

// systemPrompt returns the system prompt: the model's role in the task's mode, how to work, the modes, and the user's
// rules. It depends only on what stays the same over a task's turns, so that provider caches keep hitting, and
// changes when the mode does.
func (a *Agent) systemPrompt() string {
	m, modes := a.currentMode()
	if a.prompt.text != "" && a.prompt.slug == m.Slug {
		return a.prompt.text
	}
	role := cmp.Or(m.RoleDefinition,
		"You are a software engineer who works in the user's workspace with the tools given here.")
	parts := []string{role, a.howToWork()}
	if modes {
		parts = append(parts, a.User.Modes.Text())
		if text := a.skillText(m.Slug); text != "" {
			parts = append(parts, text)
		}
		var rules mode.Rules
		if a.User.Setup != nil {
			rules = a.User.Setup.Rules(m.Slug)
		}
		for _, note := range rules.Notes {
			a.notice(note)
		}
		if text := rules.Text(m); text != "" {
			parts = append(parts, text)
		}
	}
	a.prompt = modePrompt{m.Slug, strings.Join(parts, "\n\n")}
	return a.prompt.text
}

// howToWork holds in every mode.
func (a *Agent) howToWork() string {
	root := ""
	if a.Host.Workspace != nil {
		root = a.Host.Workspace.Root()
	}
	return strings.Join([]string{
		"How to work:",
		"- Do what the user asks, in small steps. Look before you change: read a file before you edit it.",
		"- Each reply calls at least one tool. Several calls in one reply run in order; later ones see the effects of earlier ones.",
		"- A tool result is the only proof that something happened. A result with an unknown outcome means: check, do not assume.",
		"- Paths are relative to the workspace unless they are absolute. Files outside it need the user's consent.",
		"- The user may refuse a call. Then do not try the same again in another way; ask, or choose another course.",
		"- When something is missing that only the user knows, call ask_followup_question.",
		"- When the task is done and you have seen that it is, call attempt_completion with the result. Do not end it with a question.",
		"",
		"Text inside <environment_details> comes from the program, not from the user.",
		"",
		"Workspace: " + root,
		"Operating system: " + runtime.GOOS,
	}, "\n")
}

// skillText returns the part of the system prompt that lists the mode's skills, "" without any. The model gets the
// text of a skill with a tool.
func (a *Agent) skillText(slug string) string {
	if _, has := a.tools[prompttool.SkillName]; !has || a.User.Setup == nil {
		return ""
	}
	list, notes := a.User.Setup.Skills(slug)
	for _, note := range notes {
		a.notice(note)
	}
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("====\n\nSKILLS\n\nThe user has written down how these kinds of work are done. " +
		"When the task, or a part of it, is of such a kind, " +
		"get the skill with the tool " +
		prompttool.SkillName + " before you begin, and follow it. Paths in a skill are relative to its folder.\n")
	for _, k := range list {
		fmt.Fprintf(&b, "\n- %s: %s", k.Name, k.Description)
	}
	return b.String()
}

// sendableMessages returns the visible messages as they are sent: withheld blocks are replaced.
func (a *Agent) sendableMessages() [][]byte {
	return api.Each(a.state().API(), a.withoutWithheld)
}

// withoutWithheld returns a stored message as it is sent.
func (a *Agent) withoutWithheld(m *task.Message) []byte {
	raw := []byte(m.Raw())
	for _, w := range a.withheld() {
		if w.Message == m.ID && w.Provider == a.Model.Provider.Name() {
			text := fmt.Sprintf("[Left out here: %s. The model's provider did not take it.]", w.What)
			raw = contextwindow.Withhold(raw, w.Block, w.Images, text)
		}
	}
	return raw
}

// withheld returns the blocks that are left out now, recorded or on trial.
func (a *Agent) withheld() []task.MessageWithheld {
	return append(slices.Clip(a.state().Withheld), a.sending.trial...)
}

// protocol returns the apiProtocol that Roo writes into request rows.
func (a *Agent) protocol() string {
	if maker, _ := catalogue.Maker(a.Model.Provider.Name(), a.Task.Settings.Model); maker == "anthropic" {
		return "anthropic"
	}
	return "openai"
}

// cost returns what usage costs in micro-dollars; false when the price is unknown.
func (a *Agent) cost(u llm.Usage) (int64, bool) {
	if len(a.Model.Entry.IDs) == 0 {
		return 0, false
	}
	return a.Model.Entry.Cost(u)
}

const (
	// turnAttempts is how often one turn is tried before the run gives up.
	turnAttempts = 4
	// longWait is the shortest wait of which the person is notified: a used-up quota. The task then records the time
	// until which it waits, and the wait is no attempt of the turn.
	longWait = 2 * time.Minute
	// quotaWaits bounds the long waits of one turn: a provider that puts a run off more often is given up.
	quotaWaits = 24
)

// backoff doubles from half a second, with full jitter, and honours what the provider asked for.
func backoff(attempt int, askedMS int64) time.Duration {
	if askedMS > 0 {
		return time.Duration(min(askedMS, 24*60*60*1000)) * time.Millisecond
	}
	top := 500 * time.Millisecond << min(attempt-1, 6)
	return top/2 + rand.N(top/2)
}

// waitForProvider waits until the provider may be asked again. A long wait is durable before it begins: after a kill
// the task shows the end of the wait, and a resume before that end asks at once. The wall clock decides, so that a
// machine that slept does not wait longer.
func (a *Agent) waitForProvider(ctx context.Context, refused *llm.Error, wait time.Duration, long bool) error {
	if !long {
		a.notice(fmt.Sprintf("%v; trying again in %s", refused, wait.Round(100*time.Millisecond)))
	} else {
		if err := a.saveJournal(ctx); err != nil {
			return err
		}
		failpoint.Hit("quota.waiting")
		defer a.stale.Attend(ctx, "the run waits", attendQuestion)()
	}
	end := time.Now().Round(0).Add(wait)
	said := wait
	if long {
		a.notice(fmt.Sprintf("%v; waiting until %s (%s); stop it and the task keeps its place, resume it to ask at once",
			refused, end.Format("Jan 2 15:04"), wait.Round(time.Second)))
	}
	for left := wait; left > 0; left = time.Until(end) {
		if long && left > 30*time.Second && said-left >= min(max(said/4, time.Minute), 15*time.Minute) {
			said = left
			a.notice(fmt.Sprintf("still waiting for %s: %s left", refused.Provider, left.Round(time.Minute)))
		}
		if wait >= time.Second {
			a.live(Delta{Type: "wait.delta", TS: end.UnixMilli(), Text: left.Round(time.Second).String()})
		}
		// the last minute is counted down by seconds, an hour by minutes
		if !sleep.For(ctx, min(left, max(left/60, time.Second), time.Minute)) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// runTurn asks the model once, trying again where that can help, and commits the reply.
func (a *Agent) runTurn(ctx context.Context) error {
	var m repair
	defer func() { a.sending.trial = nil }()
	for attempt, waits := 1, 0; ; attempt++ {
		if err := a.fitWindow(ctx); err != nil {
			return err
		}
		retries, err := a.requestReply(ctx)
		// A provider that tried again by itself has used up tries of ours: two layers
		// that each try four times ask a provider in trouble sixteen times.
		attempt += retries
		if err == nil {
			return nil
		}
		var refused *llm.Error
		if !errors.As(err, &refused) || ctx.Err() != nil {
			return err
		}
		failed := a.turnFailed(a.state().Turns, refused)
		if !refused.Retryable() {
			d, did, mended := a.repairRequest(ctx, &m, refused)
			if !mended {
				return a.giveUp(ctx, &m, failed, err)
			}
			attempt--
			// The failure and its repair are one commit: a restart in between would send the refused request again.
			failed.ReasoningTo = m.reasoningTo
			d.Put(failed)
			failpoint.Hit("turn.mending")
			if err := d.commit(ctx); err != nil {
				return err
			}
			failpoint.Hit("turn.mended")
			a.notice(fmt.Sprintf("%v; %s", refused, did))
			continue
		}
		wait := backoff(attempt, refused.RetryAfterMS)
		quota := wait > longWait && waits < quotaWaits
		if quota {
			attempt, waits = 0, waits+1
			failed.Until = a.Host.Now() + wait.Milliseconds()
		} else if attempt >= refused.Tries(turnAttempts) || wait > longWait {
			return a.giveUp(ctx, &m, failed, err)
		}
		failed.WaitMS = wait.Milliseconds()
		if err := a.commit(ctx, failed); err != nil {
			return err
		}
		if err := a.waitForProvider(ctx, refused, wait, quota); err != nil {
			return err
		}
	}
}

// turnFailed returns the record of an attempt that failed.
func (a *Agent) turnFailed(turn int, err *llm.Error) task.TurnFailed {
	return task.TurnFailed{Run: a.Task.RunID, Turn: turn, Kind: string(err.Kind), Status: err.Status, Error: err.Message}
}

// giveUp records the last failure of a turn. Where a guess did not help, it returns the refusal that led to the
// guess.
func (a *Agent) giveUp(ctx context.Context, m *repair, failed task.TurnFailed, err error) error {
	if len(a.sending.trial) > 0 && m.cause != nil {
		a.sending.window, err = window{}, m.cause
	}
	return cmp.Or(a.commit(ctx, failed), err)
}

// requestReply sends one request, whose intent is saved before. It returns how often the provider tried again by
// itself.
func (a *Agent) requestReply(ctx context.Context) (retries int, err error) {
	req, err := a.buildRequest()
	if err != nil {
		return 0, err
	}
	s, d := a.state(), a.draft()
	ts := a.stamp()
	row := d.addRow(rows.Request(ts, rows.RequestInfo{Protocol: a.protocol()}))
	turn := s.Turns + 1
	d.Put(task.TurnStarted{
		Run: a.Task.RunID, Turn: turn, Request: row, Provider: a.Model.Provider.Name(),
		Model: req.Model, Messages: len(req.Messages), Bytes: contentBytes(req.Messages),
	})
	if a.loop.first && a.User.Observer != nil {
		a.User.Observer.Expect(a.planText(req))
	}
	a.loop.first = false
	if err := d.commit(ctx); err != nil {
		return 0, err
	}
	// The request is prepared while the disk takes the intent; nothing is sent before that. This goroutine itself waits for
	// the disk: another one may begin late on busy cores, and the disk takes longer.
	ready, learn := make(chan iter.Seq2[llm.Chunk, error], 1), a.stale.Learn(ctx)
	go func() {
		chunks := a.Model.Provider.Stream(ctx, req)
		learn()
		ready <- chunks
	}()
	err = a.saveJournal(ctx)
	chunks := <-ready
	if err != nil {
		return 0, err
	}
	failpoint.Hit("turn.requested")
	r := &reply{agent: a, turn: turn, request: row, requestTS: ts}
	err = r.receive(ctx, chunks)
	return r.retries, err
}

// planText describes what is about to be sent, and what it is expected to cost, uncached.
func (a *Agent) planText(req llm.Request) string {
	bytes := int64(contentBytes(req.Messages) + len(req.System))
	tokens, provider := contextwindow.EstimateTokens(bytes), a.Model.Provider.Name()
	price := ", at an unknown price"
	if provider == "script" {
		price = "" // it costs nothing
	}
	text := fmt.Sprintf("%d tokens%s", tokens, price)
	if micros, known := a.cost(llm.Usage{Input: tokens}); known {
		text = fmt.Sprintf("$%.4f, %d tokens", float64(micros)/1e6, tokens)
	}
	return fmt.Sprintf("to %s %s: about %s", provider, req.Model, text)
}

func contentBytes(messages []llm.Message) int {
	n := 0
	for _, m := range messages {
		n += len(m.Content) + len(m.ReasoningContent)
	}
	return n
}
