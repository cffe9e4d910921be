package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/task"
)

// Checkpoints keep what the files of a workspace held, so that it can be put back. They
// know contents and no history: which file was what when is in the task's log. Paths
// are as a tool's Ask.Before names them; those in answers are where they lead, below the
// workspace. What lies outside of it has no answer.
//
// An error that is ErrNoCheckpoints says that there are none for this workspace. Every
// other one is trouble, as of a full disk.
type Checkpoints interface {
	// Name names where contents of this workspace are kept. Checkpoints with another one
	// are of a workspace that lay elsewhere, and say nothing of this one.
	Name() string
	// Hold gives what stands at some paths now. Contents are durable when it returns; a
	// version without a Blob is one whose content is not kept, as it is too large.
	Hold(ctx context.Context, paths []string) (map[string]task.FileVersion, error)
	// Survey looks at the whole workspace, before a command. known are the files that the
	// task had to do with; call is whose survey it is, so that it outlives a kill, "" for one
	// that nothing follows.
	Survey(ctx context.Context, known []string, call string) (Survey, error)
	// Interrupted is the survey of before a call whose outcome is not known, by the program
	// that was killed with it; nil when there is none.
	Interrupted(ctx context.Context, call string) (Survey, error)
	// Save makes a checkpoint durable under the task's name. files are all that the task
	// ever had to do with, as they are then.
	Save(ctx context.Context, c task.CheckpointSaved, files map[string]task.FileVersion) (store, commit string, err error)
}

// Survey is what a workspace was like at one moment. Changes or Close ends it.
type Survey interface {
	// Unheld says what a command may change and could not be brought back, such as "2 files
	// (1.2 GB) that could not be brought back: a.bin, b.bin"; "" = nothing.
	Unheld() string
	// Hidden names what rules hide, so that nothing of it is looked at or kept: ".env,
	// dist/"; "" = nothing.
	Hidden() string
	// Changes are the files that are something else by now. Contents are durable. There
	// may be a list beside an error: then some contents of it could not be kept.
	Changes(ctx context.Context) ([]task.CheckpointFile, error)
	// Whose divides changes by the evidence of who made them: the command's own; those in
	// doubt, which came while it ran for so long that they may be a person's as well; and those
	// since an interrupted command was last seen running. ran says that it ran until now
	// without the program that had begun it.
	Whose(changes []task.CheckpointFile, ran bool) (own, doubt, since []task.CheckpointFile)
	// Done is Close once the call's outcome is recorded: nothing needs to outlive a kill.
	Done()
	Close()
}

// ErrNoCheckpoints: this workspace gets no checkpoints. The words say why.
var ErrNoCheckpoints = errors.New("no checkpoints")

// keeping is what a run knows of its task's checkpoints. All of it is in the log.
type keeping struct {
	off    bool
	told   map[string]bool             // notices, each once per run
	folded int                         // how many checkpoints are in files
	files  map[string]task.FileVersion // as they were when last looked at

	hidden   bool            // what rules hide was told in this run
	over     []Survey        // of calls whose outcomes are committed, and perhaps not durable
	outlived map[string]bool // calls whose commands ran on after the run that began them
}

// keeps reports whether checkpoints are taken.
func (a *Agent) keeps() bool { return a.Host.Checkpoints != nil && !a.keeping.off }

// trouble takes an error of Checkpoints. true: there are none from now on, and that was
// told; for any other one the caller says what follows from it.
func (a *Agent) trouble(err error) (off bool) {
	if !errors.Is(err, ErrNoCheckpoints) {
		return false
	}
	a.keeping.off = true
	a.noticeOnce(fmt.Sprintf("%v; what this run changes cannot be put back", err))
	return true
}

// noticeOnce tells a thing once per run.
func (a *Agent) noticeOnce(text string) {
	if a.keeping.told[text] {
		return
	}
	if a.keeping.told == nil {
		a.keeping.told = map[string]bool{}
	}
	a.keeping.told[text] = true
	a.notice(text)
}

// standing is the newest that is recorded of each file: what it was when the task last
// looked. Do not modify it.
func (a *Agent) standing() map[string]task.FileVersion {
	k, list := &a.keeping, a.state().Checkpoints
	if k.files == nil {
		k.files = map[string]task.FileVersion{}
	}
	for ; k.folded < len(list); k.folded++ {
		if c := list[k.folded]; c.Store == a.Host.Checkpoints.Name() {
			for _, f := range c.Files {
				k.files[f.Path] = f.Now
			}
		}
	}
	return k.files
}

// checkpoint adds one to the draft, of the files that are not what was last recorded;
// nothing differs is no checkpoint. Its contents are durable when it returns.
func (d *draft) checkpoint(ctx context.Context, reason, call string, files []task.CheckpointFile) error {
	a := d.agent
	known := a.standing()
	e := task.CheckpointSaved{
		Number: a.state().NextCheckpoint(), Reason: reason, Run: a.Task.RunID, Call: call, Message: a.belongs(d, reason),
	}
	var pending []task.CheckpointFile
	for _, other := range d.events {
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
			f.Was = nil // the checkpoint before says it
		}
		if is && f.Was == nil && sameVersion(last, f.Now) {
			continue
		}
		if f.Now.Kind == task.KindFile && f.Now.Blob == "" {
			e.Unkept++
		}
		e.Files = append(e.Files, f)
	}
	if len(e.Files) == 0 {
		return nil
	}
	slices.SortFunc(e.Files, func(x, y task.CheckpointFile) int { return strings.Compare(x.Path, y.Path) })
	e.Title = titleOf(e.Files)
	whole := maps.Clone(known)
	for _, f := range e.Files {
		whole[f.Path] = f.Now
	}
	var err error
	if e.Store, e.Commit, err = a.Host.Checkpoints.Save(ctx, e, whole); err != nil {
		return err
	}
	failpoint.Hit("checkpoint.kept")
	d.put(e)
	return nil
}

// sameVersion: nothing that a record could tell differs. A content that is kept by now,
// and was not before, is news; one that is not kept again is not.
func sameVersion(known, now task.FileVersion) bool {
	if known.Same(now) {
		return known.Blob != "" || now.Blob == ""
	}
	return known == now // of a content that was not even read
}

// belongs is the message that a checkpoint belongs to. The state before a change is that
// of the reply which makes it; what was changed belongs to the message that tells of it,
// which is the next one: to go back to the reply is to go back before its effects. The
// numbers never fall from one checkpoint to the next.
func (a *Agent) belongs(d *draft, reason string) uint64 {
	s, message := a.state(), uint64(0)
	if api := s.API(); reason == task.ReasonBefore && len(api) > 0 {
		message = api[len(api)-1].ID
	} else {
		message = s.NextMessage() + d.added
	}
	if n := len(s.Checkpoints); n > 0 {
		message = max(message, s.Checkpoints[n-1].Message)
	}
	return message
}

// titleNames is how many files a title names.
const titleNames = 2

// titleOf names a checkpoint after its files.
func titleOf(files []task.CheckpointFile) string {
	var names []string
	for _, f := range files[:min(len(files), titleNames)] {
		names = append(names, cut(f.Path, 80))
	}
	if more := len(files) - titleNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), more)
	}
	return strings.Join(names, " and ")
}

func countFiles(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}

// sizeText is a number of bytes for people.
func sizeText(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d bytes", n)
}
