package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strconv"

	"github.com/roost-dev/roost/agent/checkpoints"
	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
)

// batch is the calls of one reply while they are being closed. What it knows of earlier calls comes from their
// outcomes, so a restart in the middle knows the same.
type batch struct {
	agent         *Agent
	results       []string // the closed calls
	last          bool     // no call comes after the current one
	turnCommitted bool     // the user turn with the results is committed
	delegated     bool     // this reply asked for a subtask: the calls after that are not run
	rejected      bool     // the person refused a call of this reply
	failed        bool     // a call of this reply failed
	refused       int      // calls that the policy refused
	wrong         bool     // the model called wrongly
	rowTS         int64    // of the row that shows the current call
}

// noteOutcome takes a closed call into account for those after it.
func (b *batch) noteOutcome(f *task.ToolFinished) {
	if f == nil {
		return
	}
	b.failed = b.failed || f.Outcome != "ok"
	if f.Outcome == "denied" && f.Approval != nil {
		switch f.Approval.By {
		case "user":
			b.rejected = true
		case "policy":
			b.refused++
		}
	}
}

// callOutcome is a call's outcome on its way into the journal.
type callOutcome struct {
	state    string
	text     string
	images   []json.RawMessage
	isError  bool
	approval *task.Approval
	exit     *int
	output   string
	size     int64
	artifact string
	before   []task.Event // rows that belong before the outcome
	after    []task.Event
	changes  checkpoints.Attribution // of files, by a command
}

func (b *batch) finishCall(ctx context.Context, c *task.Call, v callOutcome) error {
	if v.text == "" {
		v.text = "(tool did not return anything)"
	}
	a := b.agent
	d := a.draft(slices.Clone(v.before)...)
	d.Put(task.ToolFinished{
		Call:     c.ID,
		Name:     c.Name,
		Outcome:  v.state,
		Exit:     v.exit,
		Approval: v.approval,
		Output:   v.output,
		Size:     v.size,
		Artifact: v.artifact,
		Result:   rows.Result(c.ID, v.text, v.images, v.isError),
	})
	for _, q := range a.state().Questions {
		if q.Call == c.ID { // a run that ended while it asked left the question open
			d.Put(api.QuestionClosed{Question: q.Question, By: "roost", Reason: "superseded"})
		}
	}
	d.Put(v.after...)
	for _, f := range v.changes.Doubt {
		a.stale.Doubt(f.Path)
	}
	a.checkpoints.Record(ctx, d, c.ID, v.changes)
	if queued := a.queuedInputs(); b.last && ctx.Err() == nil && (a.Host.Mentions == nil || len(queued) == 0) {
		// The turn with the results follows the last outcome at once, unless the person's words come in between:
		// resolving their mentions takes time, and an outcome does not wait for that.
		d.addUserTurn(append(b.results, c.ID), d.takeInputs(ctx, queued))
		b.turnCommitted = true
	}
	return d.commit(ctx)
}

// toolEnv is what a call may touch. mark goes into the environment of a command. The name of a command's full output
// comes from the row that asked for it, which is written after the call is planned.
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

// artifactName is the name of a command's full output under command-output/.
func artifactName(rowTS int64) string { return "cmd-" + strconv.FormatInt(rowTS, 10) + ".txt" }

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
