package agent

import (
	"context"
	"errors"
	"slices"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/resume"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/usage"
)

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
		before = before.Predecessor()
	case before.ID != a.Task.RunID && before.Outcome == "":
		d.Put(task.RunEnded{Run: before.ID, Outcome: "interrupted", Reason: "the program ended"})
	}
	d.Put(task.RunStarted{Run: a.Task.RunID, Settings: a.Task.Settings, Head: a.Task.Head})
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
		if q.Kind == damageKind || q.Kind == mistakeKind {
			d.Put(api.QuestionClosed{Question: q.Question, By: "roost", Reason: "superseded"})
		}
	}
	if len(s.UI()) == 0 && len(s.API()) == 0 {
		return nil, a.startNew(ctx, d, in)
	}
	return nil, a.restart(ctx, d, in, before)
}

// startNew starts a new conversation.
func (a *Agent) startNew(ctx context.Context, d *draft, in Input) error {
	queued, todos, lost := a.queuedInputs(), "", ""
	if in.Text == "" && len(in.Images) == 0 {
		if len(queued) == 0 {
			return errors.Join(errNoPrompt, d.commit(ctx))
		}
		first, ok := a.Task.Journal.Claim(queued[0].Input)
		if !ok {
			return errors.Join(errNoPrompt, d.commit(ctx))
		}
		in.Text, in.Images, todos, lost = first.Text, first.Images, first.Todos, lostImages(first)
		d.Put(task.InputTaken{Input: first.Input})
		queued = queued[1:]
	}
	d.addRow(rows.Say(a.stamp(), "text", in.Text, nonNil(in.Images)))
	if todos != "" {
		d.addRow(rows.Todos(a.stamp(), todos))
		a.todos.list = rows.TodoList(usage.ParseTodos(todos)) // the row is not in the history yet
	}
	a.loop.listFiles = true
	said := d.expandWords(ctx, in.Text)
	if lost != "" {
		d.addRow(rows.Say(a.stamp(), "error", lost, nil))
		said = append(said, rows.Text(lost))
	}
	blocks := literalPieces(append(said, rows.Images(in.Images)...))
	d.addUserTurn(nil, append(blocks, d.takeInputs(ctx, queued)...))
	if err := d.commit(ctx); err != nil {
		return err
	}
	return a.saveJournal(ctx)
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
	var gone []uint64
	for _, i := range plan.Hidden {
		gone = append(gone, s.UI()[i].ID)
	}
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
		pending = append(pending, d.queueInput(in))
	}
	// A completed task continues when the person wants that. One that was killed before its end was shown has nothing
	// to continue with: it completes.
	a.loop.yes = in.Yes && !now && (before == nil || before.Outcome != "" || a.lastQuestionKind() != "completion_result")
	switch {
	case len(api) == 0:
		d.addUserTurn(nil, append(firstPieces(resume.FirstWords(ui)), d.takeInputs(ctx, pending)...))
	case now && len(pending) > 0, now && len(a.stale.Changed(ctx, nil)) > 0:
		d.addUserTurn(nil, d.takeInputs(ctx, pending))
	}
	if err := d.commit(ctx); err != nil {
		return err
	}
	if err := a.saveJournal(ctx); err != nil {
		return err
	}
	if answered {
		failpoint.Hit("question.closed")
	}
	return nil
}

// showCompletion adds the rows of a completion that another program began to show when it saved its files last, so that
// they precede the person's reply. It returns false unless exactly that is open.
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
	if shown, _ := esjson.GetString(ui[len(ui)-1].Raw(), "text"); shown != result {
		d.addRow(rows.Stream(d.agent.stamp(), "completion_result", result, false))
	}
	empty := ""
	d.addRow(rows.PlainAsk(d.agent.stamp(), "completion_result", &empty))
	return true
}

// openQuestion is the question that a call of the task waits with; nil when none does.
func (a *Agent) openQuestion() *api.QuestionOpened {
	for _, q := range a.state().Questions {
		if q.Kind != damageKind && q.Kind != mistakeKind {
			return &q.QuestionOpened
		}
	}
	return nil
}

// answerWithInput gives the input to the question that was open when it came. It never answers a question that the
// person has not seen yet.
func (a *Agent) answerWithInput(d *draft, q api.QuestionOpened, in *Input) bool {
	answer, ok := inputAnswer(q, *in)
	if !ok {
		return false
	}
	// Words are for the model, and giving them means to continue.
	if q.Kind == limitKind && answer.Text != "" && (in.Answer == nil || *answer.Approve) {
		yes := true
		d.closeQuestion(q, Answer{Approve: &yes, By: answer.By, Input: answer.Input})
		in.Text, in.Answer = answer.Text, nil
		return true
	}
	a.loop.halt = q.Kind == limitKind && !*answer.Approve
	if answer.Always {
		a.loop.always = q.Question
	}
	d.closeQuestion(q, answer)
	*in = Input{Images: in.Images}
	return true
}

// firstPieces replaces a history whose model side is lost: the task's first words, as the resume plan took them from
// the person's side.
func firstPieces(content []byte) []task.Piece {
	var out []task.Piece
	for b := range esjson.Array(content) {
		out = append(out, task.Piece{Literal: string(b)})
	}
	return out
}
