package agent

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// Bounds of looking at the files that the model knows.
const (
	lookFor   = 2 * time.Second // one look; what it does not come to is looked at first the next time
	lookLimit = 32 << 20        // bytes: a larger file is judged by its size alone
	keepFile  = 64 << 10        // bytes: the content of a file up to that is kept, to tell what changed in it
	keepAll   = 16 << 20        // bytes of all that is kept
)

// sight is what a run remembers of the files that the model knows, so that looking
// whether they changed costs one stat each. All of it can be had again from the log and
// the disk, and is after a restart; what the model was told of is in the log alone.
type sight struct {
	mu       sync.Mutex // a plan that was given up may still ask what the model saw
	known    task.Knowledge
	glances  map[string]*glance
	first    int               // where the next look begins
	texts    map[string][]byte // contents, by hash
	order    []string          // of texts, oldest first
	size     int               // of texts, bytes
	commands bool              // one ran since the last turn
	others   map[string]string // what was found changed before it ran: path, hash
}

// glance is the newest thing known of how a file lies on the disk.
type glance struct {
	seq  uint64 // the record that it began with
	path workspace.Path
	was  workspace.FileState
	at   int64 // when, Unix milliseconds
	past bool  // its content was looked at when the moment of its times was over
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
	if a.Workspace == nil {
		return nil
	}
	s := &a.sight
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known.Follow(a.state().Files)
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	pending := map[string]bool{}
	for _, e := range skip {
		if f, ok := e.(task.FileChanged); ok {
			pending[f.Path] = true
			s.learn(ctx, a.Workspace, f)
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
		if pending[k.Path] || !k.Last.Judgeable() {
			continue
		}
		if now, path, changed := s.look(ctx, a, k); changed {
			out = append(out, staleFile{k, path, now})
		}
	}
	s.first = 0
	slices.SortStableFunc(out, func(x, y staleFile) int { return int(x.known.Last.Seq) - int(y.known.Last.Seq) })
	return out
}

// learn keeps the content of a file that the model got to know a moment ago.
func (s *sight) learn(ctx context.Context, w *workspace.Workspace, f task.FileChanged) {
	if f.Hash == "" || f.Size > keepFile || s.texts[f.Hash] != nil {
		return
	}
	if p, err := w.Resolve(f.Path); err == nil {
		if data, now, err := w.Read(ctx, p, keepFile); err == nil && now.Hash == f.Hash {
			s.keep(f.Hash, data)
		}
	}
}

// look judges one file against its newest record.
func (s *sight) look(ctx context.Context, a *Agent, k *task.Known) (workspace.Sight, workspace.Path, bool) {
	g := s.glances[k.Path]
	whole := g == nil || g.seq != k.Last.Seq
	if whole {
		p, err := a.Workspace.Resolve(k.Path)
		if err != nil {
			return workspace.Sight{}, p, false
		}
		r := k.Last
		g = &glance{seq: r.Seq, path: p, at: r.RecordedAt, was: workspace.FileState{
			Path: r.Path, Hash: r.Hash, Size: r.Size, MTime: r.MTime, CTime: r.CTime, Inode: r.Inode, Device: r.Device,
		}}
		if s.glances == nil {
			s.glances = map[string]*glance{}
		}
		s.glances[k.Path] = g
		_, have := s.texts[r.Hash]
		whole = !have
	}
	at := a.Now()
	unsettled, past := g.was.Unsettled(at)
	look := workspace.Look{
		Was: g.was, At: g.at, Limit: lookLimit, Keep: keepFile, Whole: whole,
		// A file that was written a moment ago is read once more when that moment is over, and
		// when its times are settled: to read it in each turn until then costs a quick model's
		// turns more than all the rest.
		Calm: unsettled && g.past,
	}
	now, err := a.Workspace.Judge(ctx, g.path, look)
	if err != nil || now.Verdict != workspace.Fresh {
		// A folder above it may be a link by now, or the file be hidden.
		if p, bad := a.Workspace.Resolve(k.Path); bad == nil {
			other := p.Real != g.path.Real
			if g.path = p; other {
				now, err = a.Workspace.Judge(ctx, p, look)
			}
		}
	}
	if err != nil || g.path.Ignored {
		return now, g.path, false // not for the model to know, or not to be read for now
	}
	s.keep(now.State.Hash, now.Data)
	if now.Verdict != workspace.Fresh {
		return now, g.path, true
	}
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

// keep keeps a content for as long as there is room.
func (s *sight) keep(hash string, data []byte) {
	if data == nil || hash == "" || s.texts[hash] != nil {
		return
	}
	if s.texts == nil {
		s.texts = map[string][]byte{}
	}
	s.texts[hash] = data
	s.order = append(s.order, hash)
	for s.size += len(data); s.size > keepAll; s.order = s.order[1:] {
		s.size -= len(s.texts[s.order[0]])
		delete(s.texts, s.order[0])
	}
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
		return tool.Seen{Hash: k.Seen.Hash, Data: s.texts[k.Seen.Hash]}, true
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
