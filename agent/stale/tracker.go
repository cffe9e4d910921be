// Package stale finds the files that something else changed since the model last saw or wrote them, and
// reports them to the model and to the person.
//
// A file is stale when its content differs from the newest record of it in the task's journal. The content
// decides: touching a file, or changing it and changing it back, is no change. Each check costs one stat per
// file; the content is read only where the stat differs or is too young to be trusted. With many known files
// a watcher spares most of the stats, but its silence is never believed for long.
//
// What the tracker remembers can be rebuilt from the journal and the disk, and is after a restart. Which changes the
// model knows is in the journal alone, in the commits of the turns that reported them, so each change is reported
// once, over any kill.
//
// Contents that are needed to show differences lie in a file of the run's private folder. A copy of each file in the
// log would make a task many times as large, and in memory the copies cost a long run a sixth of it.
//
// While a run waits for an answer, a quota or a long command, a change becomes a notice for the person and no event.
// The agent commits the event with the turn that reports the change to the model. Rejected: committing it earlier. The
// change would count as reported, and after a kill the model would never learn of it. A file that has its old content
// back by that turn causes no event. Which other task made a change is looked up only after one was found, by content, in the
// journals that were written last.
//
// Limits: one check stops after two seconds, and the next one begins where it stopped. A file larger than
// 32 MiB is judged by its size alone. A file outside the workspace's rules (ignored, unreadable) is never
// reported.
package stale

import (
	"context"
	"sync"

	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/task/known"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/watch"
)

// Run is what the tracker needs of the run that it works for.
type Run interface {
	// State is the state of the task. Only the run's goroutine changes it.
	State() *task.State
	// Now is the time in Unix milliseconds.
	Now() int64
	// Mask hides the secrets in a text for the model.
	Mask(text string) string
	// Notice shows the person a text.
	Notice(text string)
}

// Options configure a tracker.
type Options struct {
	Workspace  *workspace.Workspace // nil = no file is ever stale
	SpoolDir   string               // for file contents
	OtherTasks OtherTasks           // nil = other tasks are not consulted
	WatchFrom  int                  // the number of known files that makes a watcher worth its handle
	Observed   bool                 // a person sees the run's notices
}

// Tracker remembers the files that the model knows and what they looked like. One goroutine drives it; the
// function that Seen returns and the one that Learn returns may be called from any goroutine.
type Tracker struct {
	run Run
	opt Options

	mu           sync.Mutex // an abandoned plan may still call what Seen returned
	known        known.Files
	observations map[string]*observation
	next         int               // the index at which the next check begins
	contents     contents          // of files as the model saw them
	unread       []string          // files that the model got to know and that were not checked since
	watch        *watch.Watcher    // nil while there are few files
	fullCheckAt  int64             // when all files were last checked, Unix milliseconds
	announced    map[string]string // changes that a notice reported and no turn yet: path, hash
	commandRan   bool              // a command ran since the last turn
	priorChanges map[string]string // files that had changed before that command ran: path, hash
	doubtful     []string          // files that changed while a command ran, by an unknown author
}

// New makes a tracker. Close releases what it holds.
func New(run Run, o Options) *Tracker {
	return &Tracker{run: run, opt: o, contents: contents{dir: o.SpoolDir}}
}

// Close releases the watcher and the kept contents.
func (t *Tracker) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watch != nil {
		t.watch.Close()
		t.watch = nil
	}
	for _, o := range t.observations {
		o.watched = false
	}
	t.contents.close()
}

// OtherTasks knows what other tasks did to files of the same workspace.
type OtherTasks interface {
	// Changed names the tasks that left files as they are now. files maps each path to the hash of its content, ""
	// for a file that does not exist any more; since is a time before the changes, Unix milliseconds. A file that the
	// answer leaves out was changed by another program, or by a task of which that is not known.
	Changed(ctx context.Context, since int64, files map[string]string) (tasks map[string]string)
}
