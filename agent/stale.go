package agent

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/watch"
)

// Bounds of looking at the files that the model knows.
const (
	lookFor   = 2 * time.Second // one look; what it does not come to is looked at first the next time
	lookLimit = 32 << 20        // bytes: a larger file is judged by its size alone
)

// sight is what a run remembers of the files that the model knows, so that looking
// whether they changed costs one stat each. All of it can be had again from the log and
// the disk, and is after a restart; what the model was told of is in the log alone.
type sight struct {
	mu        sync.Mutex // a plan that was given up may still ask what the model saw
	known     task.Knowledge
	glances   map[string]*glance
	first     int               // where the next look begins
	texts     texts             // contents
	unread    []string          // files that the model knows anew, and that were not looked at since
	watch     *watch.Watcher    // nil while the files are few
	wholeAt   int64             // when all files were looked at, Unix milliseconds
	announced map[string]string // what the person was told of and the model was not: path, hash
	commands  bool              // one ran since the last turn
	others    map[string]string // what was found changed before it ran: path, hash
	doubt     []string          // what changed while it ran, and by whom is not known
}

// glance is the newest thing known of how a file lies on the disk.
type glance struct {
	seq  uint64 // the record that it began with
	path workspace.Path
	was  workspace.FileState
	at   int64 // when, Unix milliseconds
	past bool  // its content was looked at when the moment of its times was over

	covered bool // the watcher tells of changes since the last look
	dirty   bool // it is to be looked at
}

// staleFile is a known file that somebody else changed since the newest record of it.
type staleFile struct {
	known *task.Known
	path  workspace.Path
	now   workspace.Sight
}

// staleFiles looks at the files that the model knows, but those in skip. It judges by
// the content: touching a file changes nothing, nor does changing it and back.
func (a *Agent) staleFiles(ctx context.Context, skip []task.Event) []staleFile {
	if a.Host.Workspace == nil {
		return nil
	}
	s := &a.sight
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known.Follow(a.state().Files)
	s.texts.dir = a.Host.SpoolDir
	at := a.Host.Now()
	whole := s.hinted(a.Host.Workspace.Root(), at)
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	pending := map[string]bool{}
	for _, e := range skip {
		if f, ok := e.(task.FileChanged); ok {
			pending[f.Path] = true
			s.unread = append(s.unread, f.Path)
		}
	}
	files := s.known.Files()
	var out []staleFile
	for i := range files {
		n := (s.first + i) % len(files)
		if ctx.Err() != nil {
			s.first = n
			return out
		}
		k := files[n]
		if pending[k.Path] || !k.Last.Judgeable() || !whole && s.glances[k.Path].calm(k.Last.Seq) {
			continue
		}
		if now, path, changed := s.look(ctx, a.Host.Workspace, k, at); changed {
			out = append(out, staleFile{k, path, now})
		}
	}
	if s.first = 0; whole {
		s.wholeAt = at
	}
	slices.SortStableFunc(out, func(x, y staleFile) int { return int(x.known.Last.Seq) - int(y.known.Last.Seq) })
	return out
}

// learning looks at files that the model got to know a moment ago and keeps their
// contents, when learn is called: beside something else that waits for the disk, by any
// goroutine. What it finds changed is told in the next turn, perhaps without what changed.
func (a *Agent) learning(ctx context.Context) (learn func()) {
	s := &a.sight
	if len(s.unread) == 0 {
		return func() {}
	}
	files, at := a.state().Files, a.Host.Now()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.known.Follow(files)
		ctx, cancel := context.WithTimeout(ctx, lookFor)
		defer cancel()
		for _, name := range s.unread {
			if k := s.known.File(name); k != nil && k.Last.Judgeable() && ctx.Err() == nil {
				s.look(ctx, a.Host.Workspace, k, at) // one that is not fresh stays to be looked at
			}
		}
		s.unread = nil
	}
}

// look judges one file against its newest record.
func (s *sight) look(ctx context.Context, w *workspace.Workspace, k *task.Known, at int64) (workspace.Sight, workspace.Path, bool) {
	g := s.glances[k.Path]
	whole := g == nil || g.seq != k.Last.Seq
	if whole {
		p, err := w.Resolve(k.Path)
		if err != nil {
			return workspace.Sight{}, p, false
		}
		r := k.Last
		g = &glance{seq: r.Seq, path: p, at: r.RecordedAt, dirty: true, was: workspace.FileState{
			Path: r.Path, Hash: r.Hash, Size: r.Size, MTime: r.MTime, CTime: r.CTime, Inode: r.Inode, Device: r.Device,
		}}
		if s.glances == nil {
			s.glances = map[string]*glance{}
		}
		s.glances[k.Path] = g
		whole = !s.texts.has(r.Hash)
	}
	if !g.covered || g.dirty {
		s.cover(g, g.path)
	}
	unsettled, past := g.was.Unsettled(at)
	look := workspace.Look{
		Was: g.was, At: g.at, Limit: lookLimit, Keep: keepFile, Whole: whole,
		// A file that was written a moment ago is read once more when that moment is over, and
		// when its times are settled: to read it in each turn until then costs a quick model's
		// turns more than all the rest.
		Calm: unsettled && g.past,
	}
	now, err := w.Judge(ctx, g.path, look)
	if err != nil || now.Verdict != workspace.Fresh {
		// A folder above it may be a link by now, or the file be hidden.
		if p, bad := w.Resolve(k.Path); bad == nil {
			other := p.Real != g.path.Real
			if s.cover(g, p); other {
				now, err = w.Judge(ctx, p, look)
			}
		}
	}
	g.dirty = true
	if err != nil || g.path.Ignored {
		return now, g.path, false // not for the model to know, or not to be read for now
	}
	s.texts.keep(now.State.Hash, now.Data)
	if now.Verdict != workspace.Fresh {
		return now, g.path, true
	}
	g.dirty = false
	if now.State.Hash != "" && now.State != g.was {
		g.was, g.at = now.State, at
	}
	if now.Read {
		g.at = at
		_, g.past = g.was.Unsettled(at)
		g.past = g.past && past
	}
	return now, g.path, false
}

// seen is what the model last saw or made of a file, for tools that change it.
func (a *Agent) seen() func(path string) (tool.Seen, bool) {
	s := &a.sight
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known.Follow(a.state().Files)
	return func(path string) (tool.Seen, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		k := s.known.File(path)
		if k == nil || k.Seen.Hash == "" && !k.Seen.Gone() {
			return tool.Seen{}, false
		}
		return tool.Seen{Hash: k.Seen.Hash, Data: s.texts.get(k.Seen.Hash)}, true
	}
}

// beforeCommand tells apart what somebody changed before a command from what the
// command changes.
func (a *Agent) beforeCommand(ctx context.Context, class tool.Class) {
	if class != tool.Command && class != tool.MCP {
		return
	}
	for _, f := range a.staleFiles(ctx, nil) {
		if a.sight.others == nil {
			a.sight.others = map[string]string{}
		}
		a.sight.others[f.known.Path] = f.now.State.Hash
	}
	a.sight.commands = true
}
