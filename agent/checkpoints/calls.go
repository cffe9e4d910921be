package checkpoints

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
)

const (
	// cancelTime bounds a checkpoint once the run is cancelled: a cancel is over within two seconds.
	cancelTime = 1500 * time.Millisecond
	// turnTime bounds the checkpoint after a turn, whose files are few and known.
	turnTime = time.Minute
	// maxUnheld is how many files that cannot be brought back a question names.
	maxUnheld = 8
)

// ChangesUnnamed reports whether calls of a class may change files that their input does not name.
func ChangesUnnamed(class tool.Class) bool { return class == tool.Command || class == tool.MCP }

// Guard holds the survey that finds the changes of one call. The zero Guard holds none.
type Guard struct {
	survey Survey // from before a command; nil = none
}

// Close releases the guard.
func (g Guard) Close() {
	if g.survey != nil {
		g.survey.Close()
	}
}

// Attribution divides the files that differ after a command by author.
type Attribution struct {
	Own   []task.CheckpointFile // by the command
	Doubt []task.CheckpointFile // while it ran, by it or by something else
	Since []task.CheckpointFile // after it was interrupted, perhaps by something else
}

// Concluded notes that a call's outcome is committed. Once the outcome is durable too, its survey need not
// outlive a kill.
func (k *Keeper) Concluded(g Guard) {
	if g.survey != nil {
		k.concluded = append(k.concluded, g.survey)
	}
}

// Durable notes that all commits so far are durable.
func (k *Keeper) Durable() {
	for _, s := range k.concluded {
		s.Done()
	}
	k.concluded = nil
}

// Warn finds out, before a question about a call goes to the user, what of the call could not be restored, and adds
// that to the question. It changes nothing else: the answer may take days, and Before checks again then.
func (k *Keeper) Warn(ctx context.Context, call string, spec tool.Spec, ask *tool.Ask) {
	if !k.enabled() {
		return
	}
	var lost string
	switch {
	case ChangesUnnamed(spec.Class):
		if s := k.survey(ctx, ""); s != nil {
			lost = s.Unheld()
			k.noticeHidden(spec, s)
			s.Close()
		} else if k.enabled() && ctx.Err() == nil {
			lost = "any file, and no checkpoint could restore one: the workspace could not be surveyed"
		}
		if lost != "" {
			lost = "it may change " + lost
		}
	case spec.Class == tool.Write:
		held, err := k.store.Hold(ctx, askPaths(*ask))
		if err != nil {
			return // Before reports it when it matters
		}
		if lost = unheld(held, *ask); lost != "" {
			lost = "it changes what no checkpoint brings back: " + lost
		}
	}
	title := ask.Title
	if lost != "" {
		ask.Title += "\n" + lost
	}
	// A question that is open, or answered already, keeps its text: the list of files that could be lost is no part of
	// what it asks.
	keep := func(q api.QuestionOpened) {
		if q.Call == call && q.Kind == "approval" && (q.Text == title || strings.HasPrefix(q.Text, title+"\n")) {
			ask.Title = q.Text
		}
	}
	for _, q := range k.run.State().Questions {
		keep(q.QuestionOpened)
	}
	for _, q := range k.run.State().Answered {
		keep(q.QuestionOpened)
	}
}

// noticeHidden notifies the person before a command, once in a run, what the command may change that no checkpoint
// covers. Once, because commands make and remove such files all the time.
func (k *Keeper) noticeHidden(spec tool.Spec, s Survey) {
	if hidden := s.Hidden(); hidden != "" && !k.hiddenShown {
		k.hiddenShown = true
		k.run.Notice(fmt.Sprintf("%s may change what .gitignore hides, which no checkpoint keeps: %s", spec.Name, hidden))
	}
}

func askPaths(ask tool.Ask) []string { return slices.Sorted(maps.Keys(ask.Before)) }

// unheld names the files of a write that are not kept: too large, or outside the workspace.
func unheld(held map[string]api.FileVersion, ask tool.Ask) string {
	lost := api.Some(slices.Sorted(maps.Keys(held)), func(path string) (string, bool) {
		v := held[path]
		return fmt.Sprintf("%s (%s)", tool.SafeName(path), api.SizeText(v.Size)), v.Kind == api.KindFile && v.Blob == ""
	})
	if more := len(lost) - maxUnheld; more > 0 {
		lost = append(lost[:maxUnheld], api.Plural(more, "file")+" more")
	}
	if ask.Outside {
		lost = append(lost, "files outside the workspace")
	}
	return strings.Join(lost, ", ")
}

// Before prepares for a call's effects. The contents that a write replaces become durable, and their
// checkpoint goes into the draft that begins the call. Before a command the whole workspace is surveyed.
// refused is the reason why a write must not be made, "" for none.
func (k *Keeper) Before(ctx context.Context, d Draft, c *task.Call, spec tool.Spec, ask tool.Ask) (g Guard, refused string) {
	switch {
	case !k.enabled():
	case ChangesUnnamed(spec.Class):
		k.AfterCalls(ctx, d) // separates what earlier calls wrote from what the command changes
		if !k.enabled() {
			break
		}
		if g.survey = k.survey(ctx, c.ID); g.survey == nil {
			break
		}
		if lost := g.survey.Unheld(); lost != "" {
			k.noticeOnce(fmt.Sprintf("%s may change %s", spec.Name, lost))
		}
		k.noticeHidden(spec, g.survey)
	case spec.Class == tool.Write:
		refused = k.beforeWrite(ctx, d, c, spec, ask)
	}
	return g, refused
}

func (k *Keeper) beforeWrite(ctx context.Context, d Draft, c *task.Call, spec tool.Spec, ask tool.Ask) (refused string) {
	unrecorded := k.unrecorded(c, ask)
	if len(unrecorded) < len(ask.Before) {
		// An earlier call of this reply wrote one of the files: undoing this call restores what that call left.
		k.saveWritten(ctx, d, c.ID, k.unreported())
	}
	if len(unrecorded) == 0 || !k.enabled() {
		return ""
	}
	held, err := k.store.Hold(ctx, unrecorded)
	if err == nil {
		if lost := unheld(held, ask); lost != "" {
			k.noticeOnce(fmt.Sprintf("%s changes what no checkpoint brings back: %s", spec.Name, lost))
		}
		own, _ := byAuthor(held, nil)
		err = k.save(ctx, d, task.ReasonBefore, c.ID, own)
	}
	if err == nil || k.disabled(err) || ctx.Err() != nil {
		return ""
	}
	k.run.Notice(fmt.Sprintf("%s was refused: what the file holds could not be kept: %v", spec.Name, err))
	return fmt.Sprintf("the file was not changed: what it holds now could not be kept, so the change could not be taken back (%v). "+
		"Report it to the user; room on the disk helps, or the setting checkpoints = off", err)
}

// survey surveys the workspace. It returns nil when that failed and a notice was shown.
func (k *Keeper) survey(ctx context.Context, call string) Survey {
	s, err := k.store.Survey(ctx, slices.Sorted(maps.Keys(k.newest())), call)
	if err != nil {
		if !k.disabled(err) && ctx.Err() == nil {
			k.noticeOnce(fmt.Sprintf("what commands change cannot be put back: the workspace could not be surveyed: %v", err))
		}
		return nil
	}
	return s
}

// unrecorded returns the files of a write whose state this turn has not recorded: no earlier call of the same reply
// was to change them, or something else changed them after such a call.
func (k *Keeper) unrecorded(c *task.Call, ask tool.Ask) []string {
	s := k.run.State()
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
	return slices.DeleteFunc(askPaths(ask), func(path string) bool {
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

// After finds what differs after a command and who changed it. The command's outcome is kept even
// where its changes cannot be recorded; a notice reports that.
func (k *Keeper) After(ctx context.Context, c *task.Call, g Guard) Attribution {
	changes := k.attribute(ctx, g, false)
	if n := len(changes.Doubt); n > 0 {
		k.run.Notice(fmt.Sprintf("%s changed while %s ran, by it or by something else; a restore asks about them: %s",
			api.Plural(n, "file"), c.Name, names(changes.Doubt)))
	}
	return changes
}

// attribute divides what changed since a survey by author. ran reports that an interrupted command ran until now.
func (k *Keeper) attribute(ctx context.Context, g Guard, ran bool) (c Attribution) {
	if g.survey == nil || !k.enabled() {
		return c
	}
	ctx, cancel := extended(ctx)
	defer cancel()
	files, err := g.survey.Changes(ctx)
	switch {
	case err == nil || k.disabled(err):
	case files != nil:
		k.run.Notice(fmt.Sprintf("a part of what the command changed could not be kept, and no checkpoint brings it back: %v", err))
	default:
		k.run.Notice(fmt.Sprintf("what the command changed could not be recorded, and no checkpoint brings it back: %v", err))
		files = k.recordedDiffers(ctx)
	}
	if len(files) > 0 {
		c.Own, c.Doubt, c.Since = g.survey.Whose(files, ran)
	}
	return c
}

// extended returns a context for the work that remains when the run is cancelled.
func extended(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() == nil {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
}

// recordedDiffers returns the files of the task that differ from their newest records. That is all that is
// known about a command without a survey.
func (k *Keeper) recordedDiffers(ctx context.Context) []task.CheckpointFile {
	if !k.enabled() {
		return nil
	}
	known := k.newest()
	if len(known) == 0 {
		return nil
	}
	ctx, cancel := extended(ctx)
	defer cancel()
	held, err := k.store.Hold(ctx, slices.Sorted(maps.Keys(known)))
	if err != nil {
		if !k.disabled(err) {
			k.run.Notice(fmt.Sprintf("the state of the task's files could not be recorded: %v", err))
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

// Record adds the checkpoints of what differs after a call to the draft of its outcome. Only the call's own
// changes count as its change. The other checkpoints only observe: a restore keeps those files unless the
// user wants otherwise, and what they held before can be brought back.
func (k *Keeper) Record(ctx context.Context, d Draft, call string, c Attribution) {
	for _, part := range []struct {
		reason string
		files  []task.CheckpointFile
	}{{task.ReasonOthers, c.Since}, {task.ReasonDoubt, c.Doubt}, {task.ReasonCommand, c.Own}} {
		if len(part.files) == 0 || !k.enabled() {
			continue
		}
		ctx, cancel := extended(ctx)
		err := k.save(ctx, d, part.reason, call, slices.Clone(part.files))
		cancel()
		if err != nil && !k.disabled(err) {
			k.run.Notice(fmt.Sprintf("a checkpoint of what changed with the command could not be saved, and it cannot be put back: %v", err))
		}
	}
}

// AfterTurn adds the checkpoint of what a turn's calls wrote to the draft that holds their results.
func (k *Keeper) AfterTurn(ctx context.Context, d Draft, calls []*task.Call) {
	k.saveWritten(ctx, d, "", calls)
}

// AfterCalls is AfterTurn for the calls of the last reply whose results no turn holds yet.
func (k *Keeper) AfterCalls(ctx context.Context, d Draft) { k.saveWritten(ctx, d, "", k.unreported()) }

// saveWritten adds the checkpoint of what calls wrote. next is the call that comes next in the reply, "" after
// the turn.
func (k *Keeper) saveWritten(ctx context.Context, d Draft, next string, calls []*task.Call) {
	if !k.enabled() {
		return
	}
	planned := k.plannedHashes(calls)
	if len(planned) == 0 {
		return
	}
	limit := turnTime
	if ctx.Err() != nil {
		limit = cancelTime
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	held, err := k.store.Hold(ctx, slices.Sorted(maps.Keys(planned)))
	if err == nil {
		// Where a file became a link since, its target is not the task's.
		known := k.newest()
		maps.DeleteFunc(held, func(path string, _ api.FileVersion) bool { _, is := known[path]; return !is })
		own, others := byAuthor(held, planned)
		err = errors.Join(k.save(ctx, d, task.ReasonTurn, next, own), k.save(ctx, d, task.ReasonOthers, "", others))
	}
	if err != nil && !k.disabled(err) {
		k.run.Notice(fmt.Sprintf("a checkpoint after this turn could not be saved: %v; what was there before it can be put back", err))
	}
}

// plannedHashes returns the files that calls were to change, with the hash that each file was to get; "" is unknown.
// Where several calls change a file, the last one counts. A call whose outcome was taken back does not count: it is
// not the cause of what the file holds since.
func (k *Keeper) plannedHashes(calls []*task.Call) map[string]string {
	out := map[string]string{}
	for _, c := range k.run.State().Calls() {
		if !c.Started || c.Rewound || !slices.Contains(calls, c) {
			continue
		}
		for path, hashes := range c.Before {
			_, out[path], _ = strings.Cut(hashes, " ")
		}
	}
	return out
}

// byAuthor divides files into those that hold what calls planned, and those that something else changed since: a
// person, while a question of the same reply waited, or before an interrupted reply continued. A file that a call named
// through a link holds what was planned for some file, or something else changed it.
func byAuthor(held map[string]api.FileVersion, planned map[string]string) (own, others []task.CheckpointFile) {
	hashes := slices.Collect(maps.Values(planned))
	for path, v := range held {
		f := task.CheckpointFile{Path: path, Now: v}
		want, named := planned[path]
		if want != "" && v.Hash != want || !named && len(hashes) > 0 && !slices.Contains(hashes, v.Hash) {
			others = append(others, f)
		} else {
			own = append(own, f)
		}
	}
	return own, others
}

// unreported returns the calls of the last reply whose results no turn holds yet.
func (k *Keeper) unreported() (calls []*task.Call) {
	s := k.run.State()
	api := s.API()
	if len(api) == 0 || api[len(api)-1].Kind() != "assistant" {
		return nil
	}
	for _, c := range slices.Backward(s.Calls()) {
		if c.Message < api[len(api)-1].ID {
			break
		}
		if !c.Answered {
			calls = append(calls, c)
		}
	}
	return calls
}

// A command may be killed together with the program. The survey from before the command outlives the kill, and
// what the command changed is found by comparing with it.

// Outlived notes that a call's command ran on after the run that had begun it.
func (k *Keeper) Outlived(call string) { k.outlived[call] = true }

// Interrupted finds what a command whose outcome is unknown changed, and separately what changed later: a person may
// have worked since. Without a survey it finds how known files differ from their records, by an unknown author. text
// describes the changes to the model; it follows the outcome's own text.
func (k *Keeper) Interrupted(ctx context.Context, c *task.Call) (g Guard, changes Attribution, text string) {
	if !k.enabled() {
		return g, changes, ""
	}
	s, err := k.store.Interrupted(ctx, c.ID)
	if s == nil || err != nil {
		if err != nil && !k.disabled(err) && ctx.Err() == nil {
			k.run.Notice(fmt.Sprintf("what %s changed before it was interrupted could not be surveyed: %v", c.Name, err))
		}
		changes.Since = k.recordedDiffers(ctx)
		if n := len(changes.Since); n > 0 {
			k.run.Notice(fmt.Sprintf("the survey of the workspace from before %s is lost: what it changed is not known. "+
				"%s not as last recorded, and a restore asks about them: %s", c.Name, api.Plural(n, "file"), names(changes.Since)))
			text = k.run.Mask(fmt.Sprintf(" Changed before or since it was interrupted, by whom is not known: %s.", names(changes.Since)))
		}
		return g, changes, text
	}
	g.survey = s
	changes = k.attribute(ctx, g, k.outlived[c.ID])
	if n := len(changes.Own); n > 0 {
		k.run.Notice(fmt.Sprintf("%s changed by %s before it was interrupted: %s", api.Plural(n, "file"), c.Name, names(changes.Own)))
		text += k.run.Mask(fmt.Sprintf(" %s changed while it ran: %s.", api.Plural(n, "file"), names(changes.Own)))
	}
	if n := len(changes.Doubt); n > 0 {
		k.run.Notice(fmt.Sprintf("%s changed while %s ran before it was interrupted, by it or by something else; "+
			"a restore asks about them: %s", api.Plural(n, "file"), c.Name, names(changes.Doubt)))
		text += k.run.Mask(fmt.Sprintf(" %s changed while it ran, by it or by another program: %s.", api.Plural(n, "file"), names(changes.Doubt)))
	}
	if n := len(changes.Since); n > 0 {
		k.run.Notice(fmt.Sprintf("%s changed since %s was interrupted, by whom is not known, and a restore asks about them: %s",
			api.Plural(n, "file"), c.Name, names(changes.Since)))
	}
	return g, changes, text
}
