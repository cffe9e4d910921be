package agent

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
)

// questionID names the question that a row asks.
func questionID(row uint64) string { return "q" + strconv.FormatUint(row, 10) }

// artifactName is the name of a command's full output under command-output/.
func artifactName(rowTS int64) string { return "cmd-" + strconv.FormatInt(rowTS, 10) + ".txt" }

// ask puts a question to the person: input that came with the run answers it,
// else the Asker, and when nobody can be asked the run waits.
func (b *batch) ask(ctx context.Context, q task.QuestionOpened) (Answer, *Outcome, error) {
	a := b.agent
	if kept, ok := a.state().Answer(q); ok {
		// It was acknowledged, and the run was killed before its call used it.
		return Answer{Approve: kept.Approve, Text: kept.Text, By: kept.By}, nil, nil
	}
	if a.state().Question(q.Question) == nil {
		if err := a.commit(ctx, q); err != nil {
			return Answer{}, nil, err
		}
		if err := a.save(ctx); err != nil {
			return Answer{}, nil, err
		}
	}
	failpoint.Hit("question.opened")
	answer, err := b.answer(ctx, q)
	if errors.Is(err, ErrNobody) {
		return Answer{}, &Outcome{State: "waiting", Question: q.Question, Reason: q.Text}, nil
	}
	if err != nil {
		return Answer{}, nil, err
	}
	err = a.commit(ctx, task.QuestionClosed{
		Question: q.Question, Approve: answer.Approve, Text: answer.Text, By: answer.By,
	})
	if err != nil {
		return Answer{}, nil, err
	}
	err = a.save(ctx) // the answer is input: it is acknowledged now
	failpoint.Hit("question.closed")
	return answer, nil, err
}

func (b *batch) answer(ctx context.Context, q task.QuestionOpened) (Answer, error) {
	if b.in.Given() {
		in := *b.in
		// "Yes" is an answer to an approval only; a question of the model needs words.
		if q.Kind == "approval" || in.Text != "" {
			*b.in = Input{}
			return inputAnswer(q, in), nil
		}
	}
	if b.agent.Asker == nil {
		return Answer{}, ErrNobody
	}
	return b.agent.Asker.Ask(ctx, q)
}

// inputAnswer reads words as an answer. Words that are neither yes nor no refuse
// an approval and tell the model why: silence and doubt are never consent.
func inputAnswer(q task.QuestionOpened, in Input) Answer {
	answer := Answer{Text: in.Text, By: "resume"}
	if q.Kind != "approval" {
		return answer
	}
	yes := false
	switch strings.ToLower(strings.TrimSpace(in.Text)) {
	case "y", "yes", "approve":
		yes, answer.Text = true, ""
	case "n", "no", "deny":
		answer.Text = ""
	case "":
		yes = in.Yes
	}
	answer.Approve = &yes
	return answer
}

// control closes the tools that are about the conversation itself.
func (b *batch) control(ctx context.Context, c *task.Call, plan tool.Plan) (*Outcome, error) {
	result, err := plan.Run(ctx, nil)
	if err != nil {
		return nil, b.finish(ctx, c, verdict{outcome: "error", text: failure(err.Error()), isError: true})
	}
	if result.Completed {
		return b.complete(ctx, c, result)
	}
	return b.followup(ctx, c, plan.Ask(), result)
}

// followup asks the model's question.
func (b *batch) followup(ctx context.Context, c *task.Call, ask tool.Ask, r tool.Result) (*Outcome, error) {
	a := b.agent
	row, rowTS := b.openRow(c)
	if row == 0 {
		if err := b.show(ctx, &row, &rowTS, ask, false); err != nil {
			return nil, err
		}
	}
	var choices []string
	for _, choice := range r.Choices {
		choices = append(choices, choice.Answer)
	}
	answer, out, err := b.ask(ctx, task.QuestionOpened{
		Question: questionID(row), Kind: "followup", Message: row, Call: c.ID, Text: r.Question, Choices: choices,
	})
	if err != nil || out != nil {
		return out, err
	}
	answered := esjson.Set(a.state().Message(row).Raw(), "isAnswered", []byte("true"))
	return nil, b.finish(ctx, c, verdict{
		outcome: "ok", text: "<user_message>\n" + answer.Text + "\n</user_message>",
		before: []task.Event{
			task.MessageChanged{Message: row, Body: task.Body{Raw: answered}},
			a.add(task.UI, 0, sayRow(a.stamp(), "user_feedback", answer.Text, []string{})),
		},
	})
}

// complete shows the result and ends the run; words that came with a resume are
// the person's reply to it and go on instead.
func (b *batch) complete(ctx context.Context, c *task.Call, r tool.Result) (*Outcome, error) {
	a := b.agent
	shown := a.lastAsk() == "completion_result"
	if shown && b.in.Given() {
		text := b.in.Text
		if text == "" {
			text = "Go on."
		}
		extra := imagePieces(b.in.Images)
		*b.in = Input{}
		b.extra = append(b.extra, extra...)
		return nil, b.finish(ctx, c, verdict{outcome: "ok", text: "<user_message>\n" + text + "\n</user_message>"})
	}
	if !shown {
		empty := ""
		err := a.commit(ctx,
			a.add(task.UI, 0, streamRow(a.stamp(), "completion_result", r.Text, false)),
			a.add(task.UI, 1, plainAskRow(a.stamp(), "completion_result", &empty)),
		)
		if err != nil {
			return nil, err
		}
	}
	return &Outcome{State: "completed", Reason: r.Text}, nil
}

// lastAsk is the kind of the newest question row, resume questions and what the
// person said after it aside.
func (a *Agent) lastAsk() string {
	ui := a.state().UI()
	for i := len(ui) - 1; i >= 0; i-- {
		switch kind := ui[i].Kind(); kind {
		case "ask:resume_task", "ask:resume_completed_task", "say:user_feedback":
			continue
		case "ask:completion_result":
			return "completion_result"
		default:
			return ""
		}
	}
	return ""
}

// settle decides what becomes of a call whose outcome a crash left unknown. It
// returns true when the call may simply run (again).
func (b *batch) settle(ctx context.Context, c *task.Call, t tool.Tool) (bool, error) {
	a := b.agent
	if c.Foreign {
		switch {
		case t != nil && t.Spec().Class == tool.Control:
			return true, nil // it has no effects: show it again
		default:
			text := "Task was interrupted before this tool call could be completed."
			return false, b.finish(ctx, c, verdict{outcome: "unknown", text: text})
		}
	}
	if t == nil {
		text := failure(fmt.Sprintf("there is no tool named %q any more", c.Name))
		return false, b.finish(ctx, c, verdict{outcome: "unknown", text: text, isError: true})
	}
	switch t.Spec().Replay {
	case tool.Again:
		return true, nil
	case tool.Inspect:
		return b.inspect(ctx, c, t)
	}
	text := "The program was killed while this tool ran. It is not known whether, or how far, it took effect. " +
		"It was not run again. Check the state of things before you decide to repeat it."
	a.notice(fmt.Sprintf("%s was interrupted: its outcome is unknown, and it is not run again", c.Name))
	return false, b.finish(ctx, c, verdict{outcome: "unknown", text: text, isError: true})
}

// inspect looks at the files to see whether a write took place.
func (b *batch) inspect(ctx context.Context, c *task.Call, t tool.Tool) (bool, error) {
	looker, ok := t.(tool.Inspector)
	if !ok {
		return false, b.finish(ctx, c, verdict{outcome: "unknown", text: unclearWrite, isError: true})
	}
	found, err := looker.Inspect(ctx, b.env(), c.Input, c.Before)
	if err != nil {
		return false, b.finish(ctx, c, verdict{outcome: "unknown", text: unclearWrite + " " + err.Error(), isError: true})
	}
	switch found {
	case tool.NotDone:
		return true, nil
	case tool.Done:
		text := "The program was killed while this tool ran. The file shows that the change was made; it was not made again."
		return false, b.finish(ctx, c, verdict{outcome: "ok", text: text})
	}
	return false, b.finish(ctx, c, verdict{outcome: "unknown", text: unclearWrite, isError: true})
}

const unclearWrite = "The program was killed while this tool ran, and the file does not show whether the change was made. " +
	"It was not made again. Read the file before you go on."

func failure(reason string) string {
	var o esjson.Object
	o.String("status", "error")
	o.String("message", "The tool execution failed")
	o.String("error", reason)
	return string(o.Bytes())
}

func denial(feedback string) string {
	var o esjson.Object
	o.String("status", "denied")
	if feedback == "" {
		o.String("message", "The user denied this operation.")
	} else {
		o.String("feedback", feedback)
	}
	return string(o.Bytes())
}

func approved(feedback string) string {
	var o esjson.Object
	o.String("status", "approved")
	o.String("feedback", feedback)
	return string(o.Bytes()) + "\n\n"
}
