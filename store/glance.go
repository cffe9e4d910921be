package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/roost-dev/roost/catalog"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/intake"
	"github.com/roost-dev/roost/store/projection"
)

// A row is believed as long as everything that it was derived from looks as it did:
// the task's folder, whose times change with every name in it, and each file, since
// one that is written in place changes nothing but itself. So a list costs one look
// for each file of each task, and opens none. Linux has no cheaper way to ask, other
// than a process that watches all the time. Where there are very many tasks, files that
// nobody is likely to write in place are looked at less often: see sweep.go.

// seen is what the system says of a file.
type seen struct {
	mode, inode      uint64
	size             int64
	written, changed int64 // nanoseconds since 1970
}

func (s seen) mix(digest uint64) uint64 {
	for _, n := range [...]uint64{s.mode, uint64(s.size), s.inode, uint64(s.written), uint64(s.changed)} {
		digest = catalog.Mix(digest, n)
	}
	return digest
}

// calm reports whether a later change of something that changed last at this time
// would be seen.
func (s *Store) calm(newest int64, now time.Time) bool { return intake.Settled(newest, now, s.calmIn) }

// glance is a digest of how things look.
type glance struct {
	digest uint64
	near   uint64 // as it was before the files that only a close look sees
	newest int64
	wrote  int64 // when the newest file was written
	failed bool  // something could not be looked at
}

func (g *glance) add(p *place, name []byte, follow bool) {
	s, err := p.look(name, follow)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		g.digest = catalog.Mix(g.digest, 1)
	case err != nil:
		g.failed = true
	default:
		g.digest, g.newest = s.mix(g.digest), max(g.newest, s.changed)
		if !follow {
			g.wrote = max(g.wrote, s.written)
		}
	}
}

// folder adds a task's folder, and its journal, which stands first where there is one.
// room is for paths, which do not become strings: there are very many.
func (g *glance) folder(p *place, id, watch string, room []byte) {
	path := append(room[:0], id...)
	g.add(p, path, true)
	if first, _, _ := strings.Cut(watch, "\x00"); first == journalName {
		g.add(p, append(append(path, '/'), first...), false)
	}
}

// files adds the files that are named.
func (g *glance) files(p *place, id, watch string, room []byte) {
	path := append(append(room[:0], id...), '/')
	for watch != "" {
		var name string
		switch name, watch, _ = strings.Cut(watch, "\x00"); {
		case name == journalName:
		case strings.HasPrefix(name, besideMark): // of a task that is one file
			g.add(p, append(append(room[:0], filepath.Dir(id)...), name[len(besideMark)-1:]...), false)
			path = append(append(room[:0], id...), '/')
		default:
			g.add(p, append(path, name...), false)
		}
	}
}

// glanceAt looks at one folder; nil when it cannot be told how it looks.
func glanceAt(dir string) *glance {
	p, err := openPlace(dir)
	if err != nil {
		return nil
	}
	defer p.close()
	g := &glance{}
	if g.add(p, []byte("."), true); g.failed {
		return nil
	}
	return g
}

// logMark stands in a list of watched names before those in the folder of the
// journal, when that is another one. No file's name begins with it.
const logMark = "\x00/"

// besideMark begins the name of a file that lies beside a task that is one file: the
// manifest of a subagent's session says where both work.
const besideMark = "../"

func manifestOf(file string) string { return filepath.Base(filepath.Dir(file)) + ".json" }

// grounds are where the tasks of a source lie.
type grounds struct {
	tasks *place
	logs  *place            // nil: no task of it was continued, or they are the same folders
	has   map[string]bool   // which tasks have a folder among the logs
	at    map[string]string // where those are that have no folder of their own
}

func (s *Store) grounds(src Source) (g grounds, err error) {
	if g.tasks, err = openPlace(src.Tasks); err != nil || src.Own {
		return g, err
	}
	for id, dir := range src.at {
		rel, err := filepath.Rel(src.Tasks, dir)
		if err != nil {
			return g, err
		}
		if g.at == nil {
			g.at = map[string]string{}
		}
		g.at[id] = rel
	}
	dir := s.AdoptedDir(src.Name)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return g, nil
	}
	if err == nil {
		g.logs, err = openPlace(dir)
	}
	g.has = map[string]bool{}
	for _, e := range entries {
		g.has[e.Name()] = true
	}
	return g, err
}

func (g grounds) close() {
	g.tasks.close()
	g.logs.close()
}

// look is the digest of one task. Only a close one looks at its files.
func (g grounds) look(id, watch string, room []byte, closely bool) glance {
	var out glance
	names, logNames, logged := strings.Cut(watch, logMark)
	if logged != g.has[id] {
		return glance{failed: true}
	}
	dir := g.dir(id)
	out.folder(g.tasks, dir, names, room)
	if logged && !out.failed {
		out.folder(g.logs, id, logNames, room)
	}
	if out.near = out.digest; out.failed || !closely {
		return out
	}
	out.files(g.tasks, dir, names, room)
	if logged && !out.failed {
		out.files(g.logs, id, logNames, room)
	}
	return out
}

// dir is where a task lies below the folder of tasks.
func (g grounds) dir(id string) string {
	if dir, ok := g.at[id]; ok {
		return dir
	}
	return id
}

// watched are the names of the files that a task's row is derived from; false when
// that cannot be told from looking at files.
func (g grounds) watched(ref Ref) (string, bool) {
	names, ok := watchedIn(ref.Dir, "")
	if g.has[ref.ID] && ok {
		var log []string
		log, ok = watchedIn(ref.Log, "")
		return strings.Join(names, "\x00") + logMark + strings.Join(log, "\x00"), ok
	}
	return strings.Join(names, "\x00"), ok
}

const journalName = "journal.jsonl"

// watchedMost bounds how many files of one task are looked at in each list. One that
// has more is read each time.
const watchedMost = 4096

func watchedIn(dir, below string) ([]string, bool) {
	if info, err := os.Lstat(dir); err == nil && info.Mode().IsRegular() {
		return []string{besideMark + manifestOf(dir)}, true // a task that is one file
	}
	entries, err := os.ReadDir(filepath.Join(dir, below))
	if errors.Is(err, fs.ErrNotExist) && below == "" {
		return nil, true
	}
	if err != nil {
		return nil, false
	}
	var out []string
	for _, e := range entries {
		name := e.Name()
		if below != "" {
			name = below + "/" + name
		}
		switch {
		case strings.Contains(name, "\x00"), e.Type()&fs.ModeSymlink != 0:
			return nil, false // what it leads to may lie anywhere
		case name == "journal.lock", strings.HasPrefix(name, projection.TempPrefix):
		case name == journalName && below == "":
			out = append([]string{name}, out...)
		case !e.IsDir():
			out = append(out, name)
		case below == "" && strings.HasSuffix(name, ".lock"):
			return nil, false // whether somebody writes is not in any file
		case name == "blobs", strings.HasPrefix(below, "blobs"):
			list, ok := watchedIn(dir, name)
			if !ok {
				return nil, false
			}
			out = append(append(out, name), list...)
		}
		if len(out) > watchedMost {
			return nil, false
		}
	}
	return out, true
}

// histories are the files that make two folders of one id the same task.
func histories(id string) [4]string {
	return [4]string{roofmt.UIName, roofmt.APIName, roofmt.LegacyName, roofmt.TranscriptName(id)}
}

// sizes is a digest of how long the histories are, 0 when one is no plain file.
func (g grounds) sizes(id string) uint64 {
	digest := uint64(1)
	if g.dir(id) != id {
		return 0
	}
	for _, name := range histories(id) {
		s, err := g.tasks.look([]byte(id+"/"+name), false)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			digest = catalog.Mix(digest, 1)
		case err != nil || !s.regular():
			return 0
		default:
			digest = catalog.Mix(catalog.Mix(digest, 2), uint64(s.size))
		}
	}
	return digest | 1
}
