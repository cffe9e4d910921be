// Package stale finds the files that something else changed since the model last saw or wrote them, and
// reports them to the model and to the person.
//
// A file is stale when its content differs from the newest record of it in the task's journal. The content
// decides: touching a file, or changing it and changing it back, is no change. Each check costs one stat per
// file; the content is read only where the stat differs or is too young to be trusted.
//
// What the tracker remembers can be rebuilt from the journal and the disk, and is after a restart. Which changes the
// model knows is in the journal alone, in the commits of the turns that reported them, so each change is reported
// once, over any kill.
//
// Rejected: a watcher, which spares the stats of files that the system reports no change of. They cost milliseconds
// even for a thousand files, and a watcher misses changes (hard links, network file systems), so it is only believed
// for a second.
//
// Contents that are needed to show differences lie in memory, up to a bound. A copy of each file in the log would make
// a task many times as large.
//
// While a run waits for an answer, a quota or a long command, a change becomes a notice for the person and no event.
// The agent commits the event with the turn that reports the change to the model. Rejected: committing it earlier. The
// change would count as reported, and after a kill the model would never learn of it. A file that has its old content
// back by that turn causes no event. The tracker looks up which other task made a change only after it found a change by
// content, and only in the journals that were written last.
//
// A report uses what a check before the turn's last tool found, if that was a moment ago and the tool changes only
// what it names. A change in that moment is reported in the next turn.
//
// Limits: one check stops after two seconds, and the next one begins where it stopped. A file larger than
// 32 MiB is judged by its size alone. A file outside the workspace's rules (ignored, unreadable) is never
// reported.
package stale

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/task/known"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
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

// Tracker remembers the files that the model knows and what they looked like. One goroutine drives it; the
// function that Seen returns and the one that Learn returns may be called from any goroutine.
type Tracker struct {
	run        Run
	workspace  *workspace.Workspace // nil = no file is ever stale
	otherTasks OtherTasks           // nil = other tasks are not consulted
	observed   bool                 // a person sees the run's notices

	mu           sync.Mutex // an abandoned plan may still call what Seen returned
	known        known.Files
	observations map[string]*observation
	next         int               // the index at which the next check begins
	checkedAt    int64             // when BeforeCall checked; 0 = its findings are used up
	contents     contents          // of files as the model saw them
	unread       []string          // files that the model got to know and that were not checked since
	announced    map[string]string // changes that a notice reported and no turn yet: path, hash
	commandRan   bool              // a command ran since the last turn
	priorChanges map[string]string // files that had changed before that command ran: path, hash
	doubtful     []string          // files that changed while a command ran, by an unknown author
}

// New makes a tracker.
func New(run Run, w *workspace.Workspace, others OtherTasks, observed bool) *Tracker {
	return &Tracker{
		run:          run,
		workspace:    w,
		otherTasks:   others,
		observed:     observed,
		observations: map[string]*observation{},
		announced:    map[string]string{},
		priorChanges: map[string]string{},
	}
}

// OtherTasks names the tasks that left files of the same workspace as they are now. files maps each path to the hash
// of its content, "" for a file that does not exist any more; since is a time before the changes, Unix milliseconds.
// A file that the answer leaves out was changed by another program, or by a task that did not record it.
type OtherTasks func(ctx context.Context, since int64, files map[string]string) (tasks map[string]string)

const (
	checkTime   = 2 * time.Second // bounds one check of all known files
	judgeLimit  = 32 << 20        // bytes; a larger file is judged by its size alone
	findingTime = 20              // milliseconds for which a report believes what BeforeCall found
)

// File is a known file that something else changed since the newest record of it.
type File struct {
	known *known.File
	path  workspace.Path
	now   workspace.Observation
}

// Changed checks the files that the model knows and returns the stale ones, ordered by the age of their records.
func (t *Tracker) Changed(ctx context.Context) []File {
	return t.check(ctx, t.run.State().Files, t.run.Now(), nil, math.MaxInt64)
}

// check is Changed for the given files. It skips files that a check since the time since found unchanged; at and
// since are Unix milliseconds. Files that pending events record are left out: the model just learned them.
func (t *Tracker) check(ctx context.Context, all []task.FileRecord, at int64, pending []task.Event, since int64) []File {
	if t.workspace == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known.Follow(all)
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	recorded := map[string]bool{}
	for _, e := range pending {
		if f, ok := e.(task.FileChanged); ok {
			recorded[f.Path] = true
			t.unread = append(t.unread, f.Path)
		}
	}
	files := t.known.All()
	var out []File
	for i := range files {
		n := (t.next + i) % len(files)
		if ctx.Err() != nil {
			t.next = n
			return out
		}
		k := files[n]
		if recorded[k.Path] || !k.Last.Judgeable() {
			continue
		}
		if o := t.observations[k.Path]; o != nil && o.seq == k.Last.Seq && o.unchangedAt >= since {
			continue
		}
		if now, path, changed := t.judge(ctx, k, at); changed {
			out = append(out, File{k, path, now})
		}
	}
	t.next = 0
	slices.SortStableFunc(out, func(x, y File) int { return int(x.known.Last.Seq) - int(y.known.Last.Seq) })
	return out
}

// Learn returns a function that checks the files which the model got to know a moment ago and keeps their
// contents. The caller runs it beside something that waits for the disk, on any goroutine. A change that it
// finds is reported in the next turn, perhaps without the difference.
func (t *Tracker) Learn(ctx context.Context) (learn func()) {
	if len(t.unread) == 0 {
		return func() {}
	}
	files, at := t.run.State().Files, t.run.Now()
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.known.Follow(files)
		ctx, cancel := context.WithTimeout(ctx, checkTime)
		defer cancel()
		for _, name := range t.unread {
			if k := t.known.File(name); k != nil && k.Last.Judgeable() && ctx.Err() == nil {
				t.judge(ctx, k, at) // a stale file stays due
			}
		}
		t.unread = nil
	}
}

// judge checks one file against its newest record.
func (t *Tracker) judge(ctx context.Context, k *known.File, at int64) (workspace.Observation, workspace.Path, bool) {
	w, o := t.workspace, t.observations[k.Path]
	readWhole := o == nil || o.seq != k.Last.Seq
	if readWhole {
		p, err := w.Resolve(k.Path)
		if err != nil {
			return workspace.Observation{}, p, false
		}
		r := k.Last
		o = &observation{
			seq:  r.Seq,
			path: p,
			at:   r.RecordedAt,
			state: workspace.FileState{
				Path: r.Path, Hash: r.Hash, Size: r.Size, MTime: r.MTime, CTime: r.CTime,
				Inode: r.Inode, Device: r.Device,
			},
		}
		t.observations[k.Path] = o
		readWhole = t.contents.data[r.Hash] == nil
	}
	unsettled, settled := o.state.Unsettled(at)
	look := workspace.CheckOptions{
		Recorded:   o.state,
		RecordedAt: o.at,
		MaxRead:    judgeLimit,
		MaxData:    contentLimit,
		NeedData:   readWhole,
		// A file that was written a moment ago is read once more when that moment is over and its times
		// have settled. Reading it in each turn until then costs a quick model's turns more than all the
		// rest.
		TrustStat: unsettled && o.reread,
	}
	now, err := w.CheckFile(ctx, o.path, look)
	if err != nil || now.Status != workspace.Unchanged {
		// A folder above the file may have become a link, or a rule may hide the file now.
		if p, bad := w.Resolve(k.Path); bad == nil {
			moved := p.Real != o.path.Real
			if o.path = p; moved {
				now, err = w.CheckFile(ctx, p, look)
			}
		}
	}
	if err != nil || o.path.Ignored {
		return now, o.path, false // hidden from the model, or unreadable for now
	}
	t.contents.keep(now.State.Hash, now.Data)
	if now.Status != workspace.Unchanged {
		return now, o.path, true
	}
	o.unchangedAt = at
	if now.State.Hash != "" && now.State != o.state {
		o.state, o.at = now.State, at
	}
	if now.Read {
		o.at = at
		_, o.reread = o.state.Unsettled(at)
		o.reread = o.reread && settled
	}
	return now, o.path, false
}

// Seen returns a function that gives what the model last saw or made of a file, for tools that change it.
func (t *Tracker) Seen() func(path string) (tool.Seen, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known.Follow(t.run.State().Files)
	return func(path string) (tool.Seen, bool) {
		t.mu.Lock()
		defer t.mu.Unlock()
		k := t.known.File(path)
		if k == nil || k.Seen.Hash == "" && !k.Seen.Gone() {
			return tool.Seen{}, false
		}
		return tool.Seen{Hash: k.Seen.Hash, Data: t.contents.data[k.Seen.Hash]}, true
	}
}

// BeforeCall returns a function that checks the files before a tool's body runs. The caller runs it on any goroutine
// while it waits for the sync of the intent. For a tool that may change any file, such as a command, the function records
// the files that are stale already: the tool did not change those. For another tool, the next report uses the result, so
// the check costs no time of the turn.
func (t *Tracker) BeforeCall(ctx context.Context, changesAny bool) (check func()) {
	all, at := t.run.State().Files, t.run.Now()
	return func() {
		files := t.check(ctx, all, at, nil, math.MaxInt64)
		if t.checkedAt = at; !changesAny {
			return
		}
		for _, f := range files {
			t.priorChanges[f.known.Path] = f.now.State.Hash
		}
		t.commandRan = true
	}
}

// checkedSince returns the time after which a check counts for a report: a file that was found unchanged since then
// is not checked again.
func (t *Tracker) checkedSince() int64 {
	if age := t.run.Now() - t.checkedAt; t.commandRan || age < 0 || age > findingTime {
		return math.MaxInt64
	}
	return t.checkedAt
}

// Doubt records that a file changed while a command ran and that its author is unknown.
func (t *Tracker) Doubt(path string) { t.doubtful = append(t.doubtful, path) }

// describe names what happened to the file.
func (f File) describe() string {
	switch {
	case f.now.Status == workspace.Missing:
		return "deleted"
	case f.now.State.MTime == 0:
		return "no file any more"
	case f.now.State.Hash != "" && f.now.State.Hash == f.known.Seen.Hash:
		return "again as you last saw it"
	}
	return "changed"
}

// observation is the newest thing known about a file on disk.
type observation struct {
	seq    uint64 // the record that it began with
	path   workspace.Path
	state  workspace.FileState
	at     int64 // Unix milliseconds
	reread bool  // the content was read again after its time stamps had settled

	unchangedAt int64 // when a check last found the file unchanged, Unix milliseconds
}

// Bounds of the file contents that are kept to compute differences.
const (
	contentLimit  = 64 << 10 // bytes of one file; a larger content is not kept
	contentsLimit = 4 << 20  // bytes of all contents
)

// contents holds file contents by hash, while there is room. A change of a file whose content is not kept is reported
// without its difference.
type contents struct {
	data map[string][]byte
	size int
}

func (c *contents) keep(hash string, data []byte) {
	if _, kept := c.data[hash]; kept || data == nil || hash == "" || c.size+len(data) > contentsLimit {
		return
	}
	if c.data == nil {
		c.data = map[string][]byte{}
	}
	c.data[hash] = data
	c.size += len(data)
}
