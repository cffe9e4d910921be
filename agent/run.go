package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/resume"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/usage"
	"github.com/roost-dev/roost/workspace/shell"
)

// Run works on the task until it is completed, stopped or waits. The outcome is committed and saved before Run
// returns, unless saving is what failed.
func (a *Agent) Run(ctx context.Context, in Input) Outcome {
	a.setUp()
	a.lastTS, a.loop.first = a.state().LastTS(), true
	return a.endRun(ctx, a.run(ctx, in))
}

func (a *Agent) run(ctx context.Context, in Input) Outcome {
	out, err := a.start(ctx, in)
	if out == nil && err == nil {
		failpoint.Hit("input.saved")
		if a.User.Observer != nil {
			a.User.Observer.Accepted()
		}
		out, err = a.startHooks(ctx)
	}
	for out == nil && err == nil {
		out, err = a.step(ctx)
	}
	if err != nil {
		return a.outcomeOf(ctx, err)
	}
	return *out
}

// step takes the next step of the loop, which follows from the history alone: that is why a restart needs no state of
// its own. An outcome ends the run.
func (a *Agent) step(ctx context.Context) (*Outcome, error) {
	if err := a.Task.Journal.TakeIn(); err != nil {
		return nil, err
	}
	if out := a.checkLimits(); out != nil {
		return out, nil
	}
	a.connectServers(ctx)
	for _, check := range []func(context.Context) (*Outcome, error){
		a.finishForeignSubtask, a.checkMistakes, a.checkBudget, a.checkAskLimits,
	} {
		if out, err := check(ctx); out != nil || err != nil {
			return out, err
		}
	}
	switch {
	case a.turnIsOpen():
		return nil, a.runTurn(ctx)
	case len(a.state().OpenCalls()) > 0:
		return a.runCalls(ctx)
	}
	return a.nudgeModel(ctx)
}

// nudgeModel answers a reply that leaves no call to close: with the person's words if there are any, else with what
// the model should do.
func (a *Agent) nudgeModel(ctx context.Context) (*Outcome, error) {
	d := a.draft()
	queued := a.queuedInputs()
	switch {
	case len(queued) > 0:
		d.addUserTurn(nil, d.takeInputs(ctx, queued))
	case a.loop.yes:
		d.addUserTurn(nil, []json.RawMessage{rows.Text(continueText)})
	case a.loop.stopReason == "refusal":
		return &Outcome{State: "failed", Code: "refusal", Reason: "the model refused to answer; resume with other words"}, nil
	default:
		a.loop.mistakes++
		d.addUserTurn(nil, []json.RawMessage{rows.Text("[ERROR] " + a.nudgeText())})
	}
	a.loop.yes = false
	return nil, d.commit(ctx)
}

// nudgeText describes to the model what was wrong with its reply.
func (a *Agent) nudgeText() string {
	api := a.state().API()
	switch {
	case a.loop.stopReason == "max_tokens":
		return "Your last reply was cut off at the limit of its length before it called a tool. " +
			"Write less, and take a smaller step: call the tool first."
	case len(api[len(api)-1].Uses()) > 0:
		// Only histories of other programs repeat ids: our own calls get new ones when they are stored.
		return "Your last reply used ids of earlier tool calls again. Its calls were not run. Make them again if you still need them."
	}
	return "Your last reply called no tool. Call attempt_completion when the task is done, " +
		"ask_followup_question when something only the user knows is missing, else the tool for the next step."
}

// outcomeOf turns an error into an outcome.
func (a *Agent) outcomeOf(ctx context.Context, err error) Outcome {
	switch {
	case ctx.Err() != nil:
		cause := context.Cause(ctx)
		switch {
		case errors.Is(cause, ErrParentStopped):
			return Outcome{State: "interrupted", Code: "parent", Reason: cause.Error()}
		case errors.Is(cause, ErrDrained):
			return Outcome{State: "interrupted", Code: "drained", Reason: cause.Error()}
		case errors.Is(cause, ErrTimeout):
			return Outcome{State: "limit", Code: "timeout", Reason: cause.Error()}
		}
		return Outcome{State: "cancelled", Reason: "cancelled"}
	}
	return Outcome{State: "failed", Code: failureCode(err), Reason: err.Error(), Err: err}
}

// failureCode names the kind of a failure, for exit codes and events.
func failureCode(err error) string {
	var p *llm.Error
	switch {
	case errors.As(err, &p):
		switch p.Kind {
		case llm.Auth:
			return "auth"
		case llm.ContextOverflow:
			return "context"
		}
		return "provider"
	case errors.Is(err, journal.ErrNotSaved):
		return "save"
	case errors.Is(err, errNoPrompt):
		return "input"
	case errors.Is(err, journal.ErrFenced):
		return "fenced"
	}
	return "internal"
}

// endRun commits the outcome and saves it.
func (a *Agent) endRun(ctx context.Context, out Outcome) Outcome {
	bg := context.WithoutCancel(ctx)
	var event task.Event = task.RunEnded{
		Run: a.Task.RunID, Outcome: out.State, Reason: out.Reason, Code: out.Code,
		WorkedMS: a.workedMS(),
	}
	if out.State == "waiting" {
		event = task.RunWaiting{
			Run: a.Task.RunID, Question: out.Question, Child: out.Child, WorkedMS: a.workedMS(),
		}
	}
	d := a.draft()
	a.checkpoints.AfterCalls(ctx, d)
	d.Put(event)
	err := d.commit(bg)
	if err == nil {
		err = a.Task.Journal.Barrier(bg)
	}
	if err == nil {
		a.checkpoints.Durable()
	}
	failpoint.Hit("run.ended")
	if err != nil && out.Err == nil {
		out.Err = fmt.Errorf("the run's end could not be saved: %w", err)
		out.Code = "save"
	}
	return out
}

// errNoPrompt: a task without any words of a person cannot continue by itself.
var errNoPrompt = errors.New("continue the task: it has no messages yet; add a prompt")

// start begins a run. On a task without messages it puts the person's prompt into both histories; on any other it
// repairs what an interrupted run left behind. The input is durable when start returns: that acknowledges it. A task
// whose journal is damaged needs a person's consent first; without it start returns how the run ends.
func (a *Agent) start(ctx context.Context, in Input) (*Outcome, error) {
	s := a.state()
	d := a.draft()
	before := s.Run
	switch {
	case before == nil:
	case before.ID == a.Task.RunID && before.Waits():
		in.Yes = in.Yes || before.Yes
		in.Queued = in.Queued || slices.Contains(slices.Collect(maps.Values(s.Runs.Inputs)), before.ID)
		before = before.Predecessor()
	case before.ID != a.Task.RunID && before.Outcome == "":
		d.Put(task.RunEnded{Run: before.ID, Outcome: "interrupted", Reason: "the program ended"})
	}
	d.Put(task.RunStarted{Run: a.Task.RunID, Settings: a.Task.Settings, Head: a.Task.Head, RunChoice: a.Task.Choice})
	if lost := a.unconfirmedDamage(); len(lost) > 0 {
		out, err := a.confirmDamage(ctx, d, lost, &in)
		if out != nil || err != nil {
			return out, err
		}
		d = a.draft()
	}
	for _, q := range s.Questions {
		// The question is about damage that was repaired or is named in other words, or about a model that went wrong:
		// the person's new words answer it.
		if q.Kind == KindDamage || q.Kind == KindMistake {
			d.Put(superseded(q.Question))
		}
	}
	if len(s.UI()) == 0 && len(s.API()) == 0 {
		return nil, a.startNew(ctx, d, in)
	}
	return nil, a.restart(ctx, d, in, before)
}

// startNew starts a new conversation.
func (a *Agent) startNew(ctx context.Context, d *draft, in Input) error {
	queued, first := a.queuedInputs(), task.InputQueued{Text: in.Text, Images: in.Images}
	if in.Text == "" && len(in.Images) == 0 {
		if len(queued) == 0 {
			return errors.Join(errNoPrompt, d.commit(ctx))
		}
		var ok bool
		if first, ok = a.Task.Journal.Claim(queued[0].Input); !ok {
			return errors.Join(errNoPrompt, d.commit(ctx))
		}
		d.Put(task.InputTaken{Input: first.Input})
		queued = queued[1:]
	}
	d.addRow(rows.Words(a.stamp(), "text", first.Text, first.Images))
	if first.Todos != "" {
		d.addRow(rows.Todos(a.stamp(), first.Todos))
		a.todos.list = rows.TodoList(usage.ParseTodos(first.Todos)) // the row is not in the history yet
	}
	a.loop.listFiles = true
	blocks := append(d.expandWords(ctx, first.Text), d.imageBlocks(first)...)
	d.addUserTurn(nil, append(blocks, d.takeInputs(ctx, queued)...))
	return d.save(ctx)
}

// restart repairs the visible histories and asks how to continue. Roo's rules decide which rows disappear and which
// question comes; nothing is removed from the journal.
func (a *Agent) restart(ctx context.Context, d *draft, in Input, before *task.Run) error {
	s := a.state()
	ui, err := s.RawUI()
	if err != nil {
		return err
	}
	plan := resume.Rows(ui)
	gone := api.Each(plan.Hidden, func(i int) uint64 { return s.UI()[i].ID })
	if len(gone) > 0 {
		d.Put(task.MessageHidden{Messages: gone, Reason: "resume"})
	}
	if row, raw := a.interruptedRequest(); row != 0 {
		d.changeMessage(row, raw)
	}
	for _, change := range plan.Changed {
		d.changeMessage(s.UI()[change.Index].ID, change.Row)
	}
	a.endLeftovers(ctx)
	a.loop.listFiles = true
	api := s.API()
	// Words for a history that ends in a user turn join it, as Roo does; for one that ends in the model's reply they
	// wait until its calls are closed.
	now := a.turnIsOpen()
	pending := a.queuedInputs()
	if d.showCompletion() {
		plan.Ask = resume.AskCompleted
	}
	answered := false
	if q := a.openQuestion(); q == nil {
		d.addRow(rows.PlainAsk(a.stamp(), plan.Ask, nil))
	} else {
		answered = a.answerWithInput(d, *q, &in)
	}
	if in.Text != "" || len(in.Images) > 0 {
		d.queueInput(in)
		in.Queued = true
	}
	a.loop.words = in.Queued
	for _, e := range d.events {
		if words, is := e.(task.InputQueued); is {
			pending = append(pending, words)
		}
	}
	// A completed task continues when the person wants that. One that was killed before its end was shown has nothing
	// to continue with: it completes.
	a.loop.yes = in.Yes && !now && (before == nil || before.Outcome != "" || !a.showsCompletion())
	switch {
	case len(api) == 0:
		d.addUserTurn(nil, append(resume.FirstWords(ui), d.takeInputs(ctx, pending)...))
	case now && len(pending) > 0, now && len(a.stale.Changed(ctx)) > 0:
		d.addUserTurn(nil, d.takeInputs(ctx, pending))
	}
	if err := d.save(ctx); err != nil {
		return err
	}
	if answered {
		failpoint.Hit("question.closed")
	}
	return nil
}

// leftoverWait bounds the wait for the end of a command that outlived its run.
const leftoverWait = 5 * time.Second

// endLeftovers ends commands that outlived a killed run, and notifies the person. Their output is lost and their
// effects cannot be followed: left alone they would change files unknown to the model. A recorded process is found by
// its record. A process that was killed between its start and that record is found by its mark, which is in the journal
// before any process carries it.
func (a *Agent) endLeftovers(ctx context.Context) {
	for _, c := range a.state().Calls() {
		if c.Process == nil || c.Finished != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, leftoverWait)
		err := a.endLeftover(ctx, c.ID, *c.Process)
		cancel()
		if err != nil {
			a.notice(fmt.Sprintf("a command of this task from before could not be ended: %v; end it by hand", err))
		}
	}
}

func (a *Agent) endLeftover(ctx context.Context, call string, r task.ToolProcess) error {
	p := shell.Process{PGID: r.PGID, Started: r.Started, Boot: r.Boot, Mark: r.Mark}
	if shell.Find(p) {
		a.checkpoints.Outlived(call)
		a.notice(fmt.Sprintf("a command of this task still runs from before (process group %d): ending it", p.PGID))
		if err := shell.End(ctx, p); err != nil {
			return err
		}
	}
	found, err := shell.EndMarked(ctx, r.Mark)
	for _, m := range found {
		a.checkpoints.Outlived(call)
		a.notice(fmt.Sprintf("a process of this task still ran from before (%d, %s): it was ended", m.PID, m.Name))
	}
	return err
}

// showCompletion adds the rows of a completion that another program began to show when it last saved its files, so
// that the rows precede the person's reply. It returns false unless such a completion is open.
func (d *draft) showCompletion() bool {
	s := d.agent.state()
	open := s.OpenCalls()
	if !s.Completes() || len(open) != 1 {
		return false
	}
	ui := slices.DeleteFunc(slices.Clone(s.UI()), func(m *task.Message) bool {
		return m.Kind() == "ask:"+resume.AskTask || m.Kind() == "ask:"+resume.AskCompleted
	})
	if len(ui) == 0 || ui[len(ui)-1].Kind() != "say:completion_result" {
		return false
	}
	result, ok := esjson.GetString(open[0].Input(), "result")
	if !ok {
		return false
	}
	if esjson.TextOf(ui[len(ui)-1].Raw(), "text") != result {
		d.addRow(rows.Stream(d.agent.stamp(), "completion_result", result, false))
	}
	d.addRow(rows.PlainAsk(d.agent.stamp(), "completion_result", new("")))
	return true
}

// openQuestion returns the open question of a call of the task; nil when there is none.
func (a *Agent) openQuestion() *api.QuestionOpened {
	for _, q := range a.state().Questions {
		if q.Kind != KindDamage && q.Kind != KindMistake {
			return &q.QuestionOpened
		}
	}
	return nil
}

// answerWithInput answers the question that was open when the input came. It never answers a question that the person has
// not seen yet.
func (a *Agent) answerWithInput(d *draft, q api.QuestionOpened, in *Input) bool {
	answer, ok := inputAnswer(q, *in)
	if !ok {
		return false
	}
	a.loop.halt = q.Kind == KindLimit && !*answer.Approve
	if answer.Always {
		a.loop.always = q.Question
	}
	d.closeQuestion(q, answer)
	*in = Input{}
	return true
}

// mistakeLimit is how many turns in a row may go wrong, and refusalLimit how many replies in a row may ask only for
// what the policy refuses, before the run ends. Without the second one a model that accepts no refusal would spend
// money until a person notices.
const (
	mistakeLimit = 3
	refusalLimit = 3
)

// checkLimits ends a run that has used up its own limits.
func (a *Agent) checkLimits() *Outcome {
	l, run := a.Task.Settings.Limits, a.state().Run
	switch {
	case l.MaxTurns > 0 && run.Turns >= l.MaxTurns && a.turnIsOpen():
		return &Outcome{State: "limit", Code: "turns", Reason: "the run reached its limit of " + api.Plural(l.MaxTurns, "turn")}
	case l.MaxCostMicros > 0 && run.CostMicros >= l.MaxCostMicros && a.turnIsOpen():
		spent, limit := float64(run.CostMicros)/1e6, float64(l.MaxCostMicros)/1e6
		return &Outcome{State: "limit", Code: "cost", Reason: fmt.Sprintf("the run spent $%.2f of the $%.2f that it may", spent, limit)}
	case a.loop.refusals >= refusalLimit:
		reason := fmt.Sprintf("%d replies in a row asked only for what the policy refuses", a.loop.refusals)
		return &Outcome{State: "denied", Code: "policy", Reason: reason}
	}
	return nil
}

// checkMistakes asks what a model that went wrong too often should do instead. Without a person, or when the person
// refuses to continue, the run ends.
func (a *Agent) checkMistakes(ctx context.Context) (*Outcome, error) {
	if a.loop.mistakes < mistakeLimit || !a.turnIsOpen() {
		return nil, nil
	}
	end := &Outcome{State: "limit", Code: "mistakes", Reason: fmt.Sprintf("the model went wrong %d times in a row", a.loop.mistakes)}
	text := fmt.Sprintf("The model went wrong %d times in a row: it called tools wrongly, or none. What should it do?", a.loop.mistakes)
	answer, answered, err := a.askAdvice(ctx, "", text)
	if err != nil || !answered || answer.Approve != nil && !*answer.Approve {
		return end, err
	}
	a.loop.mistakes = 0
	if answer.Text == "" {
		return nil, nil
	}
	d := a.draft()
	d.addUserTurn(nil, []json.RawMessage{rows.Text(rows.Guidance(answer.Text))})
	return nil, d.commit(ctx)
}

// checkBudget ends the run when a limit that it shares with other tasks is used up.
func (a *Agent) checkBudget(ctx context.Context) (*Outcome, error) {
	if a.Host.Reached == nil || !a.turnIsOpen() {
		return nil, nil
	}
	code, reason, err := a.Host.Reached(ctx)
	if err != nil || code == "" {
		return nil, err
	}
	return &Outcome{State: "limit", Code: code, Reason: reason}, nil
}

// checkAskLimits asks the person whether to continue when the run has reached a limit on continuing without a
// question. Requests and cost are counted in the journal, from the last yes on: neither a kill nor a new run restarts
// the count.
func (a *Agent) checkAskLimits(ctx context.Context) (*Outcome, error) {
	if a.loop.halt {
		return refusedLimit(), nil
	}
	l := a.Task.Settings.Limits
	if l.AskRequests <= 0 && l.AskCostMicros <= 0 || !a.turnIsOpen() {
		return nil, nil
	}
	s := a.state()
	since := uint64(0) // the row of the last question of this kind that was answered with yes
	for _, q := range s.Answered {
		if q.Kind == KindLimit && isYes(q.Answer.Approve) {
			row, _ := strconv.ParseUint(strings.TrimPrefix(q.Call, limitCall), 10, 64)
			since = max(since, row)
		}
	}
	requests, micros := 0, int64(0)
	for _, m := range s.UI() {
		if m.ID <= since || m.Kind() != "say:api_req_started" {
			continue
		}
		requests++
		if spent, ok := m.Spent(); ok {
			var t usage.Tokens
			spent.AddTo(&t)
			micros += int64(money.FromFloat(t.Cost))
		}
	}
	row := approval.Reached(l.AskRequests, l.AskCostMicros, requests, micros)
	if row == "" {
		return nil, nil
	}
	d := a.draft()
	q := a.limitQuestion(d, row, requests, micros)
	answer, out, err := a.ask(ctx, d, q, nil)
	switch {
	case out != nil || err != nil:
		return out, err
	case !isYes(answer.Approve):
		return refusedLimit(), nil
	}
	d = a.draft()
	if queued := a.queuedInputs(); len(queued) > 0 {
		d.addUserTurn(nil, d.takeInputs(ctx, queued))
	}
	return nil, d.commit(ctx)
}

func refusedLimit() *Outcome {
	return &Outcome{State: "limit", Code: "asked", Reason: "a person was asked whether to continue, and refused"}
}

// limitQuestion returns the open question, or a new one with its row.
func (a *Agent) limitQuestion(d *draft, row string, requests int, micros int64) api.QuestionOpened {
	for _, q := range a.state().Questions {
		if q.Kind == KindLimit {
			return q.QuestionOpened
		}
	}
	id := d.addRow(rows.PlainAsk(a.stamp(), limitRow, &row))
	text := fmt.Sprintf("%d requests went to the model", requests)
	if requests == 1 {
		text = "One request went to the model"
	}
	text += fmt.Sprintf(" and cost $%.2f since the last permission to continue. Continue?", float64(micros)/1e6)
	return api.QuestionOpened{
		Question: questionID(id), Kind: KindLimit, Message: id,
		Call: limitCall + strconv.FormatUint(id, 10), Text: text,
	}
}
