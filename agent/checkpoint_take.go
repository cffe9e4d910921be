package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/approval"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/filetool"
)

// Who takes checkpoints: a call that writes, before it does; a command, when it ended;
// and the turn, when its results are told.

const (
	// lateCheckpoint is how long a checkpoint may take once the run was told to end: a
	// cancel is over within two seconds.
	lateCheckpoint = 1500 * time.Millisecond
	// turnCheckpoint bounds the one after a turn, whose files are few and known.
	turnCheckpoint = time.Minute
)

// changesUnnamed reports whether calls of a class may change what their input does not name.
func changesUnnamed(class tool.Class) bool { return class == tool.Command || class == tool.MCP }

// guard is what one call's changes are found, and taken back, by.
type guard struct {
	survey Survey // of before a command; nil = there is none
}

func (g guard) close() {
	if g.survey != nil {
		g.survey.Close()
	}
}

// over notes that a call's outcome is committed: once it is durable, too, no kill needs
// the survey any more.
func (a *Agent) over(g guard) {
	if g.survey != nil {
		a.keeping.over = append(a.keeping.over, g.survey)
	}
}

// saved is told that all commits so far are durable.
func (a *Agent) saved() {
	for _, s := range a.keeping.over {
		s.Done()
	}
	a.keeping.over = nil
}

// warn looks, before a person is asked about a call, what of it could not be brought
// back, and adds that to what is asked. It changes nothing else: the answer may take
// days, and what stands there then is looked at then.
func (b *batch) warn(ctx context.Context, c *task.Call, spec tool.Spec, ask *tool.Ask, decision approval.Decision) {
	if !b.agent.keeps() || decision.State != approval.Ask {
		return
	}
	var lost string
	switch {
	case changesUnnamed(spec.Class):
		if s := b.survey(ctx, ""); s != nil {
			lost = s.Unheld()
			b.agent.tellHidden(spec, s)
			s.Close()
		} else if b.agent.keeps() && ctx.Err() == nil {
			lost = "any file, and none could be brought back: the workspace could not be looked at"
		}
		if lost != "" {
			lost = "it may change " + lost
		}
	case spec.Class == tool.Write:
		held, err := b.agent.Host.Checkpoints.Hold(ctx, paths(*ask))
		if err != nil {
			return // said when it counts
		}
		if lost = unheld(held, *ask); lost != "" {
			lost = "it changes what no checkpoint brings back: " + lost
		}
	}
	title := ask.Title
	if lost != "" {
		ask.Title += "\n" + lost
	}
	// A question that was asked, and perhaps answered, in other words about the same:
	// which files are lost is not what it asks.
	for _, text := range b.askedBefore(c) {
		if text == title || strings.HasPrefix(text, title+"\n") {
			ask.Title = text
		}
	}
}

// tellHidden says before a command, once in a run, what of the workspace it may change
// that nothing looks at. Once, as commands make and remove such things all the time.
func (a *Agent) tellHidden(spec tool.Spec, s Survey) {
	if hidden := s.Hidden(); hidden != "" && !a.keeping.hidden {
		a.keeping.hidden = true
		a.notice(fmt.Sprintf("%s may change what .gitignore hides, which no checkpoint keeps: %s", spec.Name, hidden))
	}
}

// askedBefore are the texts of questions about a call.
func (b *batch) askedBefore(c *task.Call) (texts []string) {
	s := b.agent.state()
	for _, q := range s.Questions {
		if q.Call == c.ID && q.Kind == "approval" {
			texts = append(texts, q.Text)
		}
	}
	for _, q := range s.Answered {
		if q.Call == c.ID && q.Kind == "approval" {
			texts = append(texts, q.Text)
		}
	}
	return texts
}

func paths(ask tool.Ask) []string { return slices.Sorted(maps.Keys(ask.Before)) }

// unheld says which files of a write are not kept, as they are too large or lie outside
// the workspace.
func unheld(held map[string]task.FileVersion, ask tool.Ask) string {
	var lost []string
	for _, path := range slices.Sorted(maps.Keys(held)) {
		if v := held[path]; v.Kind == task.KindFile && v.Blob == "" {
			lost = append(lost, fmt.Sprintf("%s (%s)", filetool.Name(path), sizeText(v.Size)))
		}
	}
	if more := len(lost) - 8; more > 0 {
		lost = append(lost[:8], countFiles(more)+" more")
	}
	if ask.Outside {
		lost = append(lost, "what lies outside the workspace")
	}
	return strings.Join(lost, ", ")
}

// before is what is done before a call's effects: the state of the files that a write
// names is made durable, and goes with the commit that begins the call; before a command
// the whole workspace is looked at. refused says why a write must not be made.
func (b *batch) before(ctx context.Context, d *draft, c *task.Call, spec tool.Spec, ask tool.Ask) (g guard, refused string) {
	a := b.agent
	switch {
	case !a.keeps():
	case changesUnnamed(spec.Class):
		// What calls before it wrote is told apart from what it changes.
		d.afterTurn(ctx, a.untold())
		if g.survey = b.survey(ctx, c.ID); g.survey == nil {
			break
		}
		if lost := g.survey.Unheld(); lost != "" {
			a.noticeOnce(fmt.Sprintf("%s may change %s", spec.Name, lost))
		}
		a.tellHidden(spec, g.survey)
	case spec.Class == tool.Write:
		fresh := b.fresh(c, ask)
		if len(fresh) < len(ask.Before) {
			// A call before it in this reply wrote one of its files: what that left is what this one
			// is taken back to.
			d.between(ctx, c)
		}
		if len(fresh) == 0 {
			break
		}
		held, err := a.Host.Checkpoints.Hold(ctx, fresh)
		if err == nil {
			if lost := unheld(held, ask); lost != "" {
				a.noticeOnce(fmt.Sprintf("%s changes what no checkpoint brings back: %s", spec.Name, lost))
			}
			err = d.checkpoint(ctx, task.ReasonBefore, c.ID, versions(held))
		}
		if err != nil && !a.trouble(err) && ctx.Err() == nil {
			refused = fmt.Sprintf("the file was not changed: what it holds now could not be kept, so the change could not be taken back (%v). Tell the user; room on the disk helps, or the setting checkpoints = off", err)
			a.notice(fmt.Sprintf("%s was refused: what the file holds could not be kept: %v", spec.Name, err))
		}
	}
	return g, refused
}

func versions(held map[string]task.FileVersion) []task.CheckpointFile {
	out := make([]task.CheckpointFile, 0, len(held))
	for path, v := range held {
		out = append(out, task.CheckpointFile{Path: path, Now: v})
	}
	return out
}

// survey looks at the workspace; nil when that did not work, and then it was told.
func (b *batch) survey(ctx context.Context, call string) Survey {
	a := b.agent
	s, err := a.Host.Checkpoints.Survey(ctx, slices.Sorted(maps.Keys(a.standing())), call)
	if err != nil {
		if !a.trouble(err) && ctx.Err() == nil {
			a.noticeOnce(fmt.Sprintf("what commands change cannot be put back: the workspace could not be looked at: %v", err))
		}
		return nil
	}
	return s
}

// fresh are the files of a write whose state is not recorded in this turn: those that no
// call of the same reply was to change, and those that somebody else changed since one
// did.
func (b *batch) fresh(c *task.Call, ask tool.Ask) []string {
	s := b.agent.state()
	own := map[string]bool{}
	for _, o := range slices.Backward(s.Calls()) {
		if o.Message < c.Message {
			break
		}
		if o.Message == c.Message && o.Started && o.ID != c.ID {
			for path := range o.Before {
				own[path] = true
			}
		}
	}
	return slices.DeleteFunc(paths(ask), func(path string) bool {
		if !own[path] {
			return false
		}
		hash, _, _ := strings.Cut(ask.Before[path], " ")
		for _, f := range slices.Backward(s.Files) {
			if f.Path == path {
				return f.Hash == hash
			}
		}
		return false
	})
}

// changes are what a command changed. It was not for nothing that it ran: what cannot be
// recorded of it is told, and its outcome stands.
func (b *batch) changes(ctx context.Context, g guard) []task.CheckpointFile {
	a := b.agent
	if g.survey == nil || !a.keeps() {
		return nil
	}
	ctx, cancel := late(ctx)
	defer cancel()
	files, err := g.survey.Changes(ctx)
	switch {
	case err == nil || a.trouble(err):
	case files != nil:
		a.notice(fmt.Sprintf("a part of what the command changed could not be kept, and no checkpoint brings it back: %v", err))
	default:
		a.notice(fmt.Sprintf("what the command changed could not be recorded, and no checkpoint brings it back: %v", err))
		return b.looked(ctx)
	}
	return files
}

// late is a context for what is still to be done when the run was told to end.
func late(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() == nil {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(context.WithoutCancel(ctx), lateCheckpoint)
}

// looked are the files that the task had to do with, where they are not what was last
// recorded: all that can be told of a command that no survey is there of.
func (b *batch) looked(ctx context.Context) []task.CheckpointFile {
	a := b.agent
	if !a.keeps() {
		return nil
	}
	known := a.standing()
	if len(known) == 0 {
		return nil
	}
	ctx, cancel := late(ctx)
	defer cancel()
	held, err := a.Host.Checkpoints.Hold(ctx, slices.Sorted(maps.Keys(known)))
	if err != nil {
		if !a.trouble(err) {
			a.notice(fmt.Sprintf("what stands in the files of the task could not be recorded: %v", err))
		}
		return nil
	}
	var out []task.CheckpointFile
	for path, now := range held {
		if was, is := known[path]; is && !was.Same(now) {
			out = append(out, task.CheckpointFile{Path: path, Was: &was, Now: now})
		}
	}
	return out
}

// attribute adds to a verdict what is different after a command, by the evidence of who
// changed it. ran says that an interrupted one ran on until now.
func (b *batch) attribute(ctx context.Context, c *task.Call, g guard, ran bool, v *verdict) {
	changes := b.changes(ctx, g)
	if len(changes) == 0 {
		return
	}
	v.changes, v.doubt, v.since = g.survey.Whose(changes, ran)
	for _, f := range v.doubt {
		b.agent.stale.Doubt(f.Path)
	}
}

// afterCommand adds the checkpoint of what is different after a call to the commit of its
// outcome. Only that of ReasonCommand counts as the call's change. The others only look, so
// that a restore keeps these files unless it is told otherwise, and what stood there before
// can be brought back.
func (d *draft) afterCommand(ctx context.Context, reason, call string, files []task.CheckpointFile) {
	if len(files) == 0 || !d.agent.keeps() {
		return
	}
	ctx, cancel := late(ctx)
	defer cancel()
	if err := d.checkpoint(ctx, reason, call, slices.Clone(files)); err != nil && !d.agent.trouble(err) {
		d.agent.notice(fmt.Sprintf("a checkpoint of what changed with the command could not be saved, and it cannot be put back: %v", err))
	}
}

// afterTurn adds the checkpoint of what the turn's calls wrote to the commit that tells
// their results.
func (d *draft) afterTurn(ctx context.Context, calls []*task.Call) { d.written(ctx, "", calls) }

// between is that within a reply, before a call that changes a file again.
func (d *draft) between(ctx context.Context, c *task.Call) { d.written(ctx, c.ID, d.agent.untold()) }

// written adds the checkpoint of what calls wrote. before is the call that comes next, ""
// after the turn.
func (d *draft) written(ctx context.Context, before string, calls []*task.Call) {
	a := d.agent
	if !a.keeps() {
		return
	}
	touched := a.made(calls)
	if len(touched) == 0 {
		return
	}
	limit := turnCheckpoint
	if ctx.Err() != nil {
		limit = lateCheckpoint
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	held, err := a.Host.Checkpoints.Hold(ctx, slices.Sorted(maps.Keys(touched)))
	if err == nil {
		// Where a file has become a link since, what it leads to is none of the task's.
		known := a.standing()
		maps.DeleteFunc(held, func(path string, _ task.FileVersion) bool { _, is := known[path]; return !is })
		own, others := told(held, touched)
		err = errors.Join(d.checkpoint(ctx, task.ReasonTurn, before, own), d.checkpoint(ctx, task.ReasonOthers, "", others))
	}
	if err != nil && !a.trouble(err) {
		a.notice(fmt.Sprintf("a checkpoint after this turn could not be saved: %v; what was there before it can be put back", err))
	}
}

// made are the files that calls were to change, and the hashes that they were to get; ""
// is not known. Of several calls the last one counts. One whose outcome was taken back
// made nothing: what stands there since is not its doing.
func (a *Agent) made(calls []*task.Call) map[string]string {
	out := map[string]string{}
	for _, c := range a.state().Calls() {
		if !c.Started || c.Rewound || !slices.Contains(calls, c) {
			continue
		}
		for path, hashes := range c.Before {
			_, out[path], _ = strings.Cut(hashes, " ")
		}
	}
	return out
}

// told tells files that are as calls were to make them from those that somebody else
// changed since: a person, while a question of the same reply waited, or before a reply
// that was cut short went on.
func told(held map[string]task.FileVersion, made map[string]string) (own, others []task.CheckpointFile) {
	for path, v := range held {
		f := task.CheckpointFile{Path: path, Now: v}
		if want := made[path]; want != "" && v.Hash != want {
			others = append(others, f)
		} else {
			own = append(own, f)
		}
	}
	return own, others
}

// untold are the calls of the last reply whose results no turn has told yet.
func (a *Agent) untold() (calls []*task.Call) {
	api := a.state().API()
	if len(api) == 0 || api[len(api)-1].Kind() != "assistant" {
		return nil
	}
	for _, c := range slices.Backward(a.state().Calls()) {
		if c.Message < api[len(api)-1].ID {
			break
		}
		if !c.Answered {
			calls = append(calls, c)
		}
	}
	return calls
}
