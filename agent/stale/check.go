package stale

import (
	"context"
	"slices"
	"time"

	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/task/known"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

const (
	checkTime  = 2 * time.Second // bounds one check of all known files
	judgeLimit = 32 << 20        // bytes; a larger file is judged by its size alone
)

// File is a known file that something else changed since the newest record of it.
type File struct {
	known *known.File
	path  workspace.Path
	now   workspace.Observation
}

// Changed checks the files that the model knows and returns those that are stale, by the age of their
// records. Files that pending events record are left out: the model just learned them.
func (t *Tracker) Changed(ctx context.Context, pending []task.Event) []File {
	if t.opt.Workspace == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known.Follow(t.run.State().Files)
	at := t.run.Now()
	full := t.needsFullCheck(t.opt.Workspace.Root(), at)
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
		if recorded[k.Path] || !k.Last.Judgeable() || !full && t.observations[k.Path].current(k.Last.Seq) {
			continue
		}
		if now, path, changed := t.judge(ctx, k, at); changed {
			out = append(out, File{k, path, now})
		}
	}
	if t.next = 0; full {
		t.fullCheckAt = at
	}
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
	w, o := t.opt.Workspace, t.observations[k.Path]
	readWhole := o == nil || o.seq != k.Last.Seq
	if readWhole {
		p, err := w.Resolve(k.Path)
		if err != nil {
			return workspace.Observation{}, p, false
		}
		r := k.Last
		o = &observation{
			seq:      r.Seq,
			path:     p,
			at:       r.RecordedAt,
			checkDue: true,
			state: workspace.FileState{
				Path:   r.Path,
				Hash:   r.Hash,
				Size:   r.Size,
				MTime:  r.MTime,
				CTime:  r.CTime,
				Inode:  r.Inode,
				Device: r.Device,
			},
		}
		if t.observations == nil {
			t.observations = map[string]*observation{}
		}
		t.observations[k.Path] = o
		readWhole = !t.contents.has(r.Hash)
	}
	if !o.watched || o.checkDue {
		t.watchFile(o, o.path)
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
			if t.watchFile(o, p); moved {
				now, err = w.CheckFile(ctx, p, look)
			}
		}
	}
	o.checkDue = true
	if err != nil || o.path.Ignored {
		return now, o.path, false // hidden from the model, or unreadable for now
	}
	t.contents.keep(now.State.Hash, now.Data)
	if now.Status != workspace.Unchanged {
		return now, o.path, true
	}
	o.checkDue = false
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
		return tool.Seen{Hash: k.Seen.Hash, Data: t.contents.get(k.Seen.Hash)}, true
	}
}

// BeforeCommand records what is stale before a command, to distinguish it from what the command changes.
func (t *Tracker) BeforeCommand(ctx context.Context) {
	for _, f := range t.Changed(ctx, nil) {
		if t.priorChanges == nil {
			t.priorChanges = map[string]string{}
		}
		t.priorChanges[f.known.Path] = f.now.State.Hash
	}
	t.commandRan = true
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
