package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/agent/checkpoints"
	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/agent/stale"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/controltool"
	"github.com/roost-dev/roost/workspace/shell"
)

// runCalls closes every open call of the last reply and commits the user turn with their results. A call that needs a
// person who cannot be asked stops the run as waiting; the calls before it keep their outcomes.
func (a *Agent) runCalls(ctx context.Context) (*Outcome, error) {
	b := &batch{agent: a, wrong: a.loop.malformed}
	a.loop.malformed = false
	open := a.state().OpenCalls()
	for i, c := range open {
		b.last = i == len(open)-1
		if c.Finished == nil {
			out, err := b.closeCall(ctx, c)
			if err != nil || out != nil {
				return out, err
			}
		}
		if f := c.Finished; f != nil {
			b.failed = b.failed || f.Outcome != "ok"
			if f.Outcome == "denied" && f.Approval != nil {
				b.rejected = b.rejected || f.Approval.By == "user"
				if f.Approval.By == "policy" {
					b.refused++
				}
			}
		}
		b.delegated = b.delegated || c.Name == task.SubtaskTool
		b.results = append(b.results, c.ID)
	}
	a.loop.mistakes++
	if !b.wrong {
		a.loop.mistakes = 0
	}
	a.loop.refusals++
	if b.refused < len(b.results) {
		a.loop.refusals = 0
	}
	a.loop.yes = false
	if b.turnCommitted {
		return nil, nil
	}
	d := a.draft()
	d.addUserTurn(b.results, d.takeInputs(ctx, a.queuedInputs()))
	return nil, d.commit(ctx)
}

// closeCall brings one call to an outcome.
func (b *batch) closeCall(ctx context.Context, c *task.Call) (*Outcome, error) {
	a := b.agent
	t := a.findTool(c.Name)
	if b.rejected {
		text := fmt.Sprintf("Skipping tool [%s]: the user rejected a tool before it in the same turn.", c.Name)
		return nil, b.finishCall(ctx, c, callOutcome{state: "denied", text: text, isError: true})
	}
	if b.delegated { // the model wrote the call before it could know the subtask's result
		return nil, b.fail(ctx, c, "This tool was not executed because "+controltool.NewTaskName+
			" was called before it in the same reply. It must be the last call of a reply.")
	}
	if c.Outcome() == task.OutcomeUnknown {
		again, err := b.settleUnknown(ctx, c, t)
		if err != nil || !again {
			return nil, err
		}
	}
	if t == nil {
		return nil, b.failWrong(ctx, c, a.unknownToolText(c.Name))
	}
	if err := a.forbidsCall(t.Spec(), c); err != nil {
		return nil, b.failWrong(ctx, c, err.Error())
	}
	mark := ""
	if t.Spec().Class == tool.Command {
		mark = shell.NewMark()
	}
	plan, err := a.planCall(ctx, t, b.toolEnv(mark), c.Input())
	var wrong *tool.InputError
	var outdated *tool.StaleError
	switch {
	case errors.As(err, &wrong):
		return nil, b.failWrong(ctx, c, wrong.Reason)
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &outdated):
		return nil, b.refuseStale(ctx, c, outdated)
	case err != nil:
		return nil, b.fail(ctx, c, err.Error())
	}
	if t.Spec().Class == tool.Control {
		if done, err := b.stopRepetition(ctx, c, t.Spec()); done || err != nil {
			return nil, err
		}
		return b.runControl(ctx, c, t.Spec(), plan)
	}
	if err := a.mayEdit(t.Spec(), plan.Ask().Paths); err != nil {
		return nil, b.failWrong(ctx, c, err.Error())
	}
	return b.runEffect(ctx, c, t.Spec(), plan, mark)
}

// replacements maps tools that Roost does not have, but histories of other programs use, to what does their work.
// Such tools need a service of theirs, or belong to older versions.
var replacements = map[string]string{
	"codebase_search":            "it needs an index that there is none of here; use search_files, list_files and read_file",
	"generate_image":             "it needs a service that is not available here; no tool makes images, so let the user know",
	"browser_action":             "there is no browser here; web_fetch gets a page, and execute_command does what a command line can do",
	"list_code_definition_names": "use search_files with a pattern for definitions, or read_file",
	"search_and_replace":         "use apply_diff or apply_patch",
	"insert_content":             "use apply_diff or apply_patch",
	"fetch_instructions":         "what can be done is in the system prompt",
	"fetch":                      "use web_fetch",
}

// unknownToolText returns the result of a call to a tool that does not exist.
func (a *Agent) unknownToolText(name string) string {
	if why, known := replacements[name]; known {
		return fmt.Sprintf("there is no tool named %q here: %s", name, why)
	}
	names := api.Each(a.toolSpecs(), func(s llm.ToolSpec) string { return s.Name })
	if mode.GroupOf(name) == "mcp" {
		return fmt.Sprintf("there is no tool named %q: its server is not set up here. There are %s", name, strings.Join(names, ", "))
	}
	return fmt.Sprintf("there is no tool named %q. There are %s", name, strings.Join(names, ", "))
}

// refuseStale closes a call that would have overwritten what something else changed.
func (b *batch) refuseStale(ctx context.Context, c *task.Call, outdated *tool.StaleError) error {
	b.agent.notice(fmt.Sprintf("%s: %s changed since the model saw it and was not overwritten; the model gets to know it now",
		c.Name, tool.SafeName(outdated.Now.Path)))
	return b.finishCall(ctx, c, callOutcome{
		state: "error", text: b.agent.mask("Error: " + outdated.Error()), isError: true,
		after: b.agent.stale.Refused(ctx, outdated),
	})
}

// runEffect runs a call that reads, writes, runs a command or reaches a server or site. It decides, with the user's hooks,
// shows the call, asks if need be, saves the intent, runs the call and commits the outcome.
func (b *batch) runEffect(ctx context.Context, c *task.Call, spec tool.Spec, plan tool.Plan, mark string) (*Outcome, error) {
	a, ask := b.agent, b.agent.maskAsk(plan.Ask())
	decision, ask := a.withModeSwitch(approval.Decide(a.Task.Policy, spec.Class, ask), ask)
	if decision.State != approval.Deny { // refused calls have a limit of their own
		if done, err := b.stopRepetition(ctx, c, spec); done || err != nil {
			return nil, err
		}
	}
	decision, err := a.askHooks(ctx, c, spec, &ask, decision)
	if err != nil {
		return nil, err
	}
	if decision.State == approval.Ask {
		a.checkpoints.Warn(ctx, c.ID, spec, &ask)
	}
	granted, d, row, out, err := b.getConsent(ctx, c, spec, ask, decision)
	if out != nil || err != nil || granted.State == "denied" {
		return out, err
	}
	guard, refused := a.checkpoints.Before(ctx, d, c, spec, ask)
	defer guard.Close()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case refused != "":
		return nil, b.finishCall(ctx, c, callOutcome{
			state: "error", text: a.mask(rows.Failure(refused)), isError: true, approval: granted,
			before: d.events,
		})
	}
	d.Put(task.ToolStarted{
		Call: c.ID, Name: spec.Name, Replay: string(spec.Replay), Message: row, Approval: granted,
		Before: ask.Before,
	})
	if spec.Class == tool.MCP { // Roo's row for a request to a server
		d.addRow(esjson.ObjectOf("ts", a.stamp(), "type", "say", "say", "mcp_server_request_started"))
	}
	if mark != "" {
		// The mark is in the journal before any process carries it: a kill before the process itself is recorded leaves
		// something to find it by.
		d.Put(task.ToolProcess{Call: c.ID, Mark: mark})
	}
	if err := d.commit(ctx); err != nil {
		return nil, err
	}
	check, checked := a.stale.BeforeCall(ctx, checkpoints.ChangesUnnamed(spec.Class)), make(chan struct{})
	go func() {
		defer close(checked)
		check()
	}()
	err = a.saveJournal(ctx) // this goroutine waits for the disk itself, as in requestReply
	<-checked
	if err == nil {
		err = a.Task.Journal.Held(ctx)
	}
	if err != nil {
		return nil, err
	}
	failpoint.Hit("tool.started")
	shown := &output{
		agent: a, ctx: ctx, call: c.ID, command: spec.Class == tool.Command,
		server: spec.Class == tool.MCP,
	}
	result, err := a.runPlan(ctx, spec, plan, shown)
	failpoint.Hit("tool.ran")
	if err == nil {
		// The hooks run before the outcome is committed, because it holds what they write. A kill meanwhile counts as a kill
		// during the call.
		a.hooksAfter(ctx, c, spec, ask, &result)
	}
	return nil, b.commitResult(ctx, c, result, err, shown, granted, guard)
}

// commitResult commits what a call did.
func (b *batch) commitResult(
	ctx context.Context, c *task.Call, r tool.Result, err error, out *output, granted *task.Approval, guard checkpoints.Guard,
) error {
	a := b.agent
	v := callOutcome{
		state: "ok", text: a.mask(r.Text), images: r.Images, isError: r.IsError, approval: granted,
		exit: r.Exit,
	}
	var wrong *tool.InputError
	switch {
	case errors.As(err, &wrong):
		b.wrong = true
		v.state, v.text, v.isError = "error", a.mask(rows.Failure(wrong.Reason)), true
	case err != nil && ctx.Err() != nil:
		v.state, v.isError = "cancelled", true
		v.text = "The user cancelled this tool while it ran. It may have done part of its work.\n" + v.text
	case err != nil:
		v.state, v.text, v.isError = "error", a.mask(rows.Failure(err.Error())), true
	case r.IsError:
		v.state = "error"
	}
	v.text = rows.Approved(granted.Feedback) + v.text
	v.before = out.finish()
	if out.err != nil {
		return out.err
	}
	if r.Full != nil {
		b.keepOutput(ctx, c, r.Full, &v)
	}
	if out.server {
		v.addServerRow(a)
	}
	v.after = append(v.after, api.Each(r.Files, func(f tool.FileTouch) task.Event { return stale.Record(f) })...)
	b.enterCallMode(r.Mode, &v)
	v.changes = a.checkpoints.After(ctx, c, guard)
	if err := b.finishCall(ctx, c, v); err != nil {
		return err
	}
	a.checkpoints.Concluded(guard)
	failpoint.Hit("tool.finished")
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// addServerRow puts Roo's row with a server's answer before the outcome.
func (v *callOutcome) addServerRow(a *Agent) {
	d := a.draft(v.before...)
	var images []string
	for _, block := range v.images {
		source, _ := esjson.Get(block, "source")
		media, _ := esjson.GetString(source, "media_type")
		if data, ok := esjson.GetString(source, "data"); ok {
			images = append(images, "data:"+media+";base64,"+data)
		}
	}
	d.addRow(rows.Say(a.stamp(), "mcp_server_response", v.text, images))
	v.before = d.events
}

// enterCallMode switches to the mode that a successful call leads to, as was agreed.
func (b *batch) enterCallMode(slug string, v *callOutcome) {
	if v.state != "ok" {
		return
	}
	m, moves, err := b.agent.otherMode(slug)
	switch {
	case err != nil:
		v.text += fmt.Sprintf("\n\n[The mode stays as it is: %v.]", err)
	case moves:
		v.after = append(v.after, b.agent.enterMode(m)...)
	}
}

// keepOutput puts a command's whole output into a blob. The command ran, so its outcome is not given up for its
// output: when the output cannot be kept, and the reason is not a disk that refuses for now, the result informs the
// model.
func (b *batch) keepOutput(ctx context.Context, c *task.Call, full *tool.Spool, v *callOutcome) {
	a := b.agent
	path, err := a.maskFile(full.Path)
	if err == nil {
		err = a.retryUntilSaved(ctx, func() (err error) {
			v.output, v.size, err = a.Task.Journal.PutBlobFile(context.WithoutCancel(ctx), path)
			return err
		})
	}
	if err == nil {
		v.artifact = artifactName(b.rowTS)
		return
	}
	v.output, v.size = "", 0
	if ctx.Err() != nil {
		v.text += "\n[The whole output could not be kept: the disk refused, and the run was cancelled.]"
		return
	}
	a.notice(fmt.Sprintf("the whole output of %s could not be kept: %v", c.Name, err))
	v.text += "\n[The whole output could not be kept.]"
}

// settleUnknown decides about a call whose outcome a crash left unknown. It returns true when the call may simply run
// (again).
func (b *batch) settleUnknown(ctx context.Context, c *task.Call, t tool.Tool) (bool, error) {
	a := b.agent
	if c.Foreign {
		if t != nil && t.Spec().Class == tool.Control {
			return true, nil // without effects it can be shown again
		}
		text := "Task was interrupted before this tool call could be completed."
		return false, b.finishCall(ctx, c, callOutcome{state: "unknown", text: text})
	}
	if t == nil {
		text := rows.Failure(fmt.Sprintf("there is no tool named %q any more", c.Name))
		return false, b.finishCall(ctx, c, callOutcome{state: "unknown", text: text, isError: true})
	}
	switch replay := t.Spec().Replay; {
	case replay == tool.Again:
		return true, nil
	case c.Rewound:
		return false, b.settleRewound(ctx, c, t)
	case replay == tool.Inspect:
		return b.inspectWrite(ctx, c, t)
	}
	v := callOutcome{state: "unknown", isError: true, text: "The program was killed while this tool ran. " +
		"It is not known whether, or how far, it took effect. It was not run again. " +
		"Check the state of things before you decide to repeat it."}
	a.notice(fmt.Sprintf("%s was interrupted: its outcome is unknown, and it is not run again", c.Name))
	var guard checkpoints.Guard
	if checkpoints.ChangesUnnamed(t.Spec().Class) {
		var changed string
		guard, v.changes, changed = a.checkpoints.Interrupted(ctx, c)
		defer guard.Close()
		v.text += changed
	}
	err := b.finishCall(ctx, c, v)
	if err == nil {
		a.checkpoints.Concluded(guard)
	}
	return false, err
}

// inspect inspects the files of a call to find out whether the call took place; is is false when the call's tool
// cannot find that out.
func (b *batch) inspect(ctx context.Context, c *task.Call, t tool.Tool) (found tool.Finding, is bool, err error) {
	inspector, is := t.(tool.Inspector)
	if !is || t.Spec().Replay != tool.Inspect {
		return found, false, nil
	}
	found, err = runBounded(ctx, c.Name, true, func(ctx context.Context) (tool.Finding, error) {
		return inspector.Inspect(ctx, b.toolEnv(""), c.Input(), c.Before)
	})
	return found, true, err
}

// inspectWrite inspects the files to find out whether a write took place.
func (b *batch) inspectWrite(ctx context.Context, c *task.Call, t tool.Tool) (bool, error) {
	found, is, err := b.inspect(ctx, c, t)
	v := callOutcome{state: "unknown", isError: true, text: "The program was killed while this tool ran, " +
		"and the file does not show whether the change was made. It was not made again. Read the file before you go on."}
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx) // nothing was decided: the next run inspects again
	case err != nil:
		v.text, v.after = v.text+" "+err.Error(), b.wroteRecords(ctx, c)
	case is && found == tool.NotDone:
		return true, nil
	case is && found == tool.Done:
		text := "The program was killed while this tool ran. The file shows that the change was made; it was not made again."
		v = callOutcome{state: "ok", text: text, after: b.wroteRecords(ctx, c)}
	}
	return false, b.finishCall(ctx, c, v)
}

// wroteRecords returns the records of the files that a call changed, where only the files show that: the program was
// killed before the call could record it.
func (b *batch) wroteRecords(ctx context.Context, c *task.Call) []task.Event {
	var out []task.Event
	for _, path := range slices.Sorted(maps.Keys(c.Before)) {
		_, want, planned := strings.Cut(c.Before[path], " ")
		if !planned || b.agent.Host.Workspace == nil {
			continue
		}
		s, err := b.agent.Host.Workspace.Stat(ctx, path)
		if err != nil || s.Hash != want {
			continue
		}
		out = append(out, stale.RecordOf(path, "roo_edited", s))
	}
	return out
}

// settleRewound settles a call whose outcome a user undid while the reply with the call stays. The call does not run again,
// even where its change was undone: the user undid that as well, and the next input holds what they want now. Later changes
// are not the call's: the call had ended, and its changes were recorded.
func (b *batch) settleRewound(ctx context.Context, c *task.Call, t tool.Tool) error {
	const took = "The user took the history back to before this call had ended. "
	v := callOutcome{state: "unknown", isError: true, text: took + "Its changes may still exist, or may have been undone as well. " +
		"It was not run again. Check the state of things before you decide to repeat it."}
	found, is, err := b.inspect(ctx, c, t)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx) // nothing was decided: the next run inspects again
	case !is:
	case err == nil && found == tool.Done:
		v = callOutcome{state: "ok", text: took + "The file holds its change; it was not made again.", after: b.wroteRecords(ctx, c)}
	case err == nil && found == tool.NotDone:
		v.text = took + "Its change was taken back as well: the file is as it was before. It was not made again."
	default:
		v.text = took + "The file is something else by now, and the change was not made again. Read the file before you go on."
	}
	b.agent.notice(fmt.Sprintf("the outcome of %s was taken back: it is not run again", c.Name))
	return b.finishCall(ctx, c, v)
}

// toolEnv returns what a call may touch. mark goes into the environment of a command. The name of a command's full
// output comes from the row that asked for it, which is written after the call is planned.
func (b *batch) toolEnv(mark string) tool.Env {
	return tool.Env{
		Workspace:  b.agent.Host.Workspace,
		Mode:       cmp.Or(b.agent.Task.Settings.Mode, mode.Default),
		SpoolDir:   b.agent.Host.SpoolDir,
		Mark:       mark,
		ArtifactID: func() string { return artifactName(b.rowTS) },
		Kept: func(artifact string) (io.ReaderAt, int64, bool) {
			k, ok := b.agent.state().Kept(artifact)
			if !ok && b.agent.Tools.Outputs != nil {
				return b.agent.Tools.Outputs(artifact)
			}
			return k, k.Size, ok
		},
		Seen: b.agent.stale.Seen(),
	}
}

// artifactName returns the name of a command's full output under command-output/.
func artifactName(rowTS int64) string { return "cmd-" + strconv.FormatInt(rowTS, 10) + ".txt" }

// maxRepeats limits how often the same call may be made in a row. The agent does not run the next one: a model in a
// loop spends money until a person notices.
//
// The agent counts the calls in the history, so a restart counts the same. After it has asked a person about a repeated
// call, the count restarts, as in Roo. Without a person each further call fails and counts as a mistake of the model, so
// that the run ends; Roo would wait for a person.
const maxRepeats = 3

// largestInput bounds inputs that are compared by their JSON values, in bytes; larger ones are compared byte by byte.
const largestInput = 64 << 10

// countRepeats returns how many calls in a row, up to this one, are the same.
func (a *Agent) countRepeats(c *task.Call) int {
	s := a.state()
	n, reached := 0, false
	for _, before := range slices.Backward(s.Calls()) { // c is near the end of all calls
		reached = reached || before == c
		switch m := s.Message(before.Message); {
		case !reached, m == nil || m.Hidden != "": // a later call; or a rewind took it back
			continue
		case n > maxRepeats || before.Name != c.Name || wasAskedAbout(before) || !sameInput(before.Input(), c.Input()):
			return n
		}
		n++
	}
	return n
}

// wasAskedAbout reports whether a person was asked about a call because it was made too often.
func wasAskedAbout(c *task.Call) bool {
	f := c.Finished
	return f != nil && f.Outcome == "error" && f.Approval != nil && f.Approval.State == "denied"
}

// sameInput reports whether two inputs hold the same values, in any order.
func sameInput(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) || len(a) != len(b) || len(a) > largestInput {
		return bytes.Equal(a, b) // a model repeats itself in the same form, at most in another order
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// stopRepetition closes a call that was made too often; done is false when the call may run.
func (b *batch) stopRepetition(ctx context.Context, c *task.Call, spec tool.Spec) (done bool, err error) {
	switch spec.Name {
	case controltool.QuestionName, controltool.CompletionName:
		return false, nil // a person answers between two of them
	}
	if b.agent.countRepeats(c) <= maxRepeats {
		return false, nil
	}
	v := callOutcome{
		state: "error", isError: true,
		text: rows.Failure(fmt.Sprintf("Tool call repetition limit reached for %s. Please try a different approach.", spec.Name)),
	}
	var answer Answer
	answered := false
	for _, q := range b.agent.state().Answered {
		if q.Call == c.ID && q.Kind == KindMistake { // the answer was acknowledged, and the run ended before its use
			answer, answered = Answer{Text: q.Answer.Text, By: q.Answer.By}, true
		}
	}
	if !answered {
		answer, answered, err = b.agent.askAdvice(ctx, c.ID, fmt.Sprintf("The model made the same call of %s %d times in a "+
			"row, and it was not run again. What should it do instead?", spec.Name, maxRepeats+1))
	}
	if err != nil {
		return true, err
	}
	b.wrong = b.wrong || !answered
	if answered {
		v.approval = &task.Approval{State: "denied", By: "user", Via: answer.By, Feedback: answer.Text}
		if answer.Text != "" {
			v.text += "\n\n" + rows.Guidance(answer.Text)
		}
	}
	return true, b.finishCall(ctx, c, v)
}
