// Package checkpoints decides when a run keeps what the workspace's files hold, so that the user can put it
// back, and records that in the task's journal.
//
// A call that writes gets a checkpoint of its files before it writes. A command gets a survey of the whole
// workspace before it runs; what it changed is recorded with its outcome. The files that a turn's calls wrote
// are recorded with the results. A checkpoint that holds nothing new is not recorded.
//
// A write whose old content cannot be kept is refused. A command is not: what it may change is unknown, so a
// notice names what could not be brought back. When the workspace gets no checkpoints at all (ErrNone), one notice
// reports that and the run goes without them.
//
// What the Keeper remembers is in the journal, or concerns this run's notices only.
package checkpoints

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
)

// Store keeps what the files of a workspace held. It knows contents and no history: which file held what when
// is in the task's journal. Paths are those of a tool's Ask.Before; paths in answers are resolved and relative
// to the workspace. A file outside the workspace gets no answer.
//
// An error that is ErrNone means that this workspace gets no checkpoints. Every other error is a failure, such
// as a full disk.
type Store interface {
	// Name names where contents of this workspace are kept. A checkpoint with another name describes a workspace that
	// was elsewhere, not this one.
	Name() string
	// Hold returns what some paths hold now. Contents are durable when it returns. A version without a Blob
	// is one whose content is too large to keep.
	Hold(ctx context.Context, paths []string) (map[string]api.FileVersion, error)
	// Survey records the state of the whole workspace before a command. known are the files that the task
	// worked with. call names the call that the survey is for, so that the survey outlives a kill; "" for a
	// survey that no call follows.
	Survey(ctx context.Context, known []string, call string) (Survey, error)
	// Interrupted returns the survey from before a call whose outcome is unknown, made by the program that was
	// killed with it; nil when there is none.
	Interrupted(ctx context.Context, call string) (Survey, error)
	// Save makes a checkpoint durable under the task's name. files are all files that the task ever worked
	// with, as they are then.
	Save(ctx context.Context, c task.CheckpointSaved, files map[string]api.FileVersion) (store, commit string, err error)
}

// Survey is the state of a workspace at one moment. Done or Close ends it.
type Survey interface {
	// Unheld describes what a command may change and no checkpoint brings back, such as "2 files (1.2 GB) that
	// could not be brought back: a.bin, b.bin"; "" = nothing.
	Unheld() string
	// Hidden names what ignore rules hide, so that it is neither examined nor kept: ".env, dist/"; "" = nothing.
	Hidden() string
	// Changes returns the files that differ by now. Contents are durable. A list beside an error means that
	// some contents of it could not be kept.
	Changes(ctx context.Context) ([]task.CheckpointFile, error)
	// Whose divides changes by the evidence of their author: the command itself; doubtful ones, which came
	// while it ran for so long that they may be a person's as well; and those since an interrupted command was
	// last seen running. ran reports that the command ran until now without the program that began it.
	Whose(changes []task.CheckpointFile, ran bool) (own, doubt, since []task.CheckpointFile)
	// Done is Close once the call's outcome is recorded: the survey need not outlive a kill any more.
	Done()
	Close()
}

// ErrNone: this workspace gets no checkpoints. The error that wraps it gives the reason.
var ErrNone = errors.New("no checkpoints")

// Run is what the keeper needs of the run that it works for.
type Run interface {
	// State is the state of the task.
	State() *task.State
	// Mask hides the secrets in a text for the model.
	Mask(text string) string
	// Notice shows the person a text.
	Notice(text string)
}

// Draft is a commit in the making.
type Draft interface {
	// Events are the events so far.
	Events() []task.Event
	// NextMessage is the number of the next message that the commit adds.
	NextMessage() uint64
	// Put adds events.
	Put(events ...task.Event)
}

// Keeper takes the checkpoints of one run. One goroutine uses it.
type Keeper struct {
	run   Run
	store Store // nil = checkpoints are off
	runID string

	shown       map[string]bool            // notices that are shown once per run
	hiddenShown bool                       // a notice named what rules hide
	folded      int                        // how many checkpoints of the state are in recorded
	recorded    map[string]api.FileVersion // the newest record of each file
	concluded   []Survey                   // surveys of calls whose outcomes are committed and perhaps not durable
	outlived    map[string]bool            // calls whose commands ran on after the run that began them
}

// New makes the keeper of a run. A nil store switches checkpoints off.
func New(run Run, store Store, runID string) *Keeper {
	return &Keeper{
		run:      run,
		store:    store,
		runID:    runID,
		shown:    map[string]bool{},
		recorded: map[string]api.FileVersion{},
		outlived: map[string]bool{},
	}
}

func (k *Keeper) enabled() bool { return k.store != nil }

// disabled handles an error of the store. It returns true when the workspace gets no checkpoints: the keeper
// is switched off and a notice was shown. For any other error the caller decides what follows.
func (k *Keeper) disabled(err error) bool {
	if !errors.Is(err, ErrNone) {
		return false
	}
	k.store = nil
	k.noticeOnce(fmt.Sprintf("%v; what this run changes cannot be put back", err))
	return true
}

// noticeOnce shows a notice once per run.
func (k *Keeper) noticeOnce(text string) {
	if !k.shown[text] {
		k.shown[text] = true
		k.run.Notice(text)
	}
}

// newest returns the newest record of each file. The caller must not modify it.
func (k *Keeper) newest() map[string]api.FileVersion {
	list := k.run.State().Checkpoints
	for ; k.folded < len(list); k.folded++ {
		if c := list[k.folded]; c.Store == k.store.Name() {
			for _, f := range c.Files {
				k.recorded[f.Path] = f.Now
			}
		}
	}
	return k.recorded
}

// save adds a checkpoint to the draft, of those files that differ from their newest records; without any
// there is no checkpoint. Its contents are durable when save returns.
func (k *Keeper) save(ctx context.Context, d Draft, reason, call string, files []task.CheckpointFile) error {
	known := k.newest()
	e := task.CheckpointSaved{
		Number: k.run.State().NextCheckpoint(), Reason: reason, Run: k.runID, Call: call,
		Message: k.messageOf(d, reason),
	}
	var pending []task.CheckpointFile
	for _, other := range d.Events() {
		if c, is := other.(task.CheckpointSaved); is {
			e.Number, e.Message = c.Number+1, max(e.Message, c.Message)
			pending = append(pending, c.Files...)
		}
	}
	if len(pending) > 0 {
		known = maps.Clone(known)
		for _, f := range pending {
			known[f.Path] = f.Now
		}
	}
	for _, f := range files {
		last, is := known[f.Path]
		if f.Was != nil && is && sameVersion(last, *f.Was) {
			f.Was = nil // the checkpoint before holds it
		}
		if is && f.Was == nil && sameVersion(last, f.Now) {
			continue
		}
		if f.Now.Kind == api.KindFile && f.Now.Blob == "" {
			e.Unkept++
		}
		e.Files = append(e.Files, f)
	}
	if len(e.Files) == 0 {
		return nil
	}
	slices.SortFunc(e.Files, func(x, y task.CheckpointFile) int { return strings.Compare(x.Path, y.Path) })
	all, paths := maps.Clone(known), []string{}
	for _, f := range e.Files {
		all[f.Path], paths = f.Now, append(paths, f.Path)
	}
	e.Title = Title(paths)
	var err error
	if e.Store, e.Commit, err = k.store.Save(ctx, e, all); err != nil {
		return err
	}
	failpoint.Hit("checkpoint.kept")
	d.Put(e)
	return nil
}

// sameVersion reports whether a record would hold nothing new. A content that is kept now and was not kept before is new.
func sameVersion(known, now api.FileVersion) bool {
	if known.Same(now) {
		return known.Blob != "" || now.Blob == ""
	}
	return known == now // Same is false for a content that was not read
}

// messageOf returns the message that a checkpoint belongs to. The state before a change belongs to the reply that
// makes the change; the change itself belongs to the message that reports it, which is the next one: going back to
// the reply means going back before its effects. The numbers never fall from one checkpoint to the next.
func (k *Keeper) messageOf(d Draft, reason string) uint64 {
	s, message := k.run.State(), uint64(0)
	if api := s.API(); reason == task.ReasonBefore && len(api) > 0 {
		message = api[len(api)-1].ID
	} else {
		message = d.NextMessage()
	}
	if n := len(s.Checkpoints); n > 0 {
		message = max(message, s.Checkpoints[n-1].Message)
	}
	return message
}

// Title names a checkpoint after the paths of its files.
func Title(paths []string) string {
	names := api.Each(paths[:min(len(paths), 2)], func(path string) string { return api.Shorten(tool.SafeName(path), 80) })
	switch more := len(paths) - len(names); {
	case len(names) == 0:
		return "no file"
	case more > 0:
		return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), more)
	}
	return strings.Join(names, " and ")
}

// listNames is how many files a notice names.
const listNames = 5

// names lists the first few files.
func names(files []task.CheckpointFile) string {
	shown := files[:min(len(files), listNames)]
	list := api.Each(shown, func(f task.CheckpointFile) string { return api.Shorten(tool.SafeName(f.Path), 80) })
	if len(files) > len(list) {
		list = append(list, "...")
	}
	return strings.Join(list, ", ")
}
