package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/workspace"
)

// workers is the number of files that are read at the same time. More would slow down the user's other programs.
const workers = 2

// scan examines the whole workspace: it walks, reads the user's git objects and new contents, and keeps contents that
// could not be read again. base is the survey before a command, or nil. trouble is the reason why contents could not
// be kept; the scan is correct all the same. The caller holds the turn.
func (k *Keeper) scan(ctx context.Context, base *scan) (sc *scan, trouble, err error) {
	g, err := k.w.OpenTree()
	if err != nil {
		return nil, nil, err
	}
	defer g.Close()
	if sc, err = k.walk(ctx, g, base); err != nil {
		return nil, nil, err
	}
	k.git.refresh(ctx, k.w.Root(), k.tops(sc))
	if base == nil {
		k.addTracked(g, sc)
	}
	trouble, err = k.readAll(ctx, g, sc)
	if err != nil {
		return nil, nil, err
	}
	k.last = sc
	k.remember()
	return sc, trouble, nil
}

// tops returns the repositories that a scan found, and the one around the workspace: for each top folder, the folder
// in the workspace in which git runs.
func (k *Keeper) tops(sc *scan) map[string]string {
	root := k.w.Root()
	tops := map[string]string{}
	if top, down := enclosing(root); len(down) > 0 {
		tops[top] = root
	}
	for _, rel := range sc.repos {
		dir := filepath.Join(root, OnDisk(rel))
		tops[dir] = dir
	}
	return tops
}

// addTracked adds files that .gitignore hides, but that are in a repository's index: they belong to the project, and
// a command may change them like any other.
func (k *Keeper) addTracked(g *workspace.Tree, sc *scan) {
	added := false
	for _, r := range k.git.repos {
		if r.uncovered {
			continue // its index has not changed since the last time
		}
		r.uncovered = true
		for p := range r.tracked {
			if _, ok := sc.find(p); ok || !plain(p) || sc.blind(p) {
				continue
			}
			info, ok, err := g.Look(OnDisk(p))
			if !ok || info == nil || err != nil || slices.Contains(sc.known, p) {
				continue
			}
			sc.known = append(sc.known, p)
			k.tracked[p] = true
			sc.list = append(sc.list, entry{path: p, stat: statOf(info)})
			added = true
		}
	}
	if !added {
		return
	}
	slices.Sort(sc.known)
	slices.SortFunc(sc.list, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	sc.list = slices.CompactFunc(sc.list, func(a, b entry) bool { return a.path == b.path })
}

// reading is the part of a scan that reads files.
type reading struct {
	k   *Keeper
	ctx context.Context
	g   *workspace.Tree
	sc  *scan

	mu      sync.Mutex // guards the next fields
	b       content.Batch
	room    int64 // bytes that one survey may still keep
	store   int64 // bytes that the store may still take
	files   int   // files that may still be kept
	left    int64 // bytes that may still be read
	put     []int // entries whose contents are in the batch
	relied  []int // entries that were not known to be in the user's git objects
	gone    []int
	trouble error
}

// readAll reads files whose content is not known for certain, and keeps contents that exist nowhere else.
func (k *Keeper) readAll(ctx context.Context, g *workspace.Tree, sc *scan) (trouble, err error) {
	r := &reading{k: k, ctx: ctx, g: g, sc: sc, files: k.o.MaxFiles, left: k.o.MaxRead, room: -1}
	defer func() {
		if r.b != nil {
			r.b.Discard()
		}
	}()
	if err := k.prefetch(ctx, sc); err != nil {
		return nil, err
	}
	jobs := make([]int, 0, 64)
	for i := range sc.list {
		e := &sc.list[i]
		if e.kind() == api.KindOther {
			continue
		}
		was := e.held
		if e.sure() && k.locate(ctx, e) {
			if e.held == theirs && was != theirs {
				r.relied = append(r.relied, i)
			}
			continue
		}
		jobs = append(jobs, i)
	}
	// Small files come first: most contents that are worth keeping are small, and the files that exceed a bound are then
	// those that would not be kept anyway.
	slices.SortStableFunc(jobs, func(a, b int) int {
		return int(min(max(sc.list[a].stat.size-k.o.MaxFile, 0), 1<<30) - min(max(sc.list[b].stat.size-k.o.MaxFile, 0), 1<<30))
	})
	if err := r.work(jobs); err != nil {
		return nil, err
	}
	if err := r.work(r.verify()); err != nil {
		return nil, err
	}
	if r.b != nil && r.trouble == nil {
		if err := r.b.Close(); err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			r.trouble = err
		}
	}
	if r.trouble != nil {
		for _, i := range r.put {
			sc.list[i].held = nowhere
		}
	}
	slices.Sort(r.gone)
	for _, i := range slices.Backward(r.gone) {
		sc.list = slices.Delete(sc.list, i, i+1)
	}
	return r.trouble, nil
}

// prefetcher is a distant store: one request for each file would take long.
type prefetcher interface {
	Prefetch(ctx context.Context, hashes []content.Hash) error
}

// prefetch asks a distant store about all known contents with few requests.
func (k *Keeper) prefetch(ctx context.Context, sc *scan) error {
	far, ok := k.store.(prefetcher)
	if !ok {
		return nil
	}
	var hashes []content.Hash
	for i := range sc.list {
		e := &sc.list[i]
		if e.named && e.kind() != api.KindOther && (e.size > k.o.MaxHold || !k.git.has(e.blob)) {
			hashes = append(hashes, e.hash())
		}
	}
	return far.Prefetch(ctx, hashes)
}

// locate finds the place of a known content; false when the content must be read and kept.
func (k *Keeper) locate(ctx context.Context, e *entry) bool {
	switch {
	case e.size <= k.o.MaxHold && k.git.has(e.blob):
		e.held = theirs
	case k.store.Has(ctx, e.hash()):
		e.held = ours
	default:
		e.held = nowhere
		return e.size > k.o.MaxFile
	}
	return true
}

func (r *reading) work(jobs []int) error {
	var wg sync.WaitGroup
	var next atomic.Int64 // of jobs
	for range min(workers, len(jobs)) {
		wg.Go(func() {
			rd := newReader(r.k.o.MaxFile)
			g := r.g.Fresh()
			for n := next.Add(1) - 1; n < int64(len(jobs)) && r.ctx.Err() == nil; n = next.Add(1) - 1 {
				r.one(rd, g, jobs[n])
			}
		})
	}
	wg.Wait()
	return r.ctx.Err()
}

// one reads one entry. Only one worker uses an entry.
func (r *reading) one(rd *reader, g *workspace.Tree, i int) {
	e := &r.sc.list[i]
	e.held = nowhere
	if e.kind() == api.KindLink {
		target, err := g.Readlink(OnDisk(e.path))
		if err != nil {
			r.lost(g, i)
			return
		}
		c := contentOf([]byte(target))
		c.read = time.Now().UnixNano()
		e.take(&c)
		r.keep(e, i, &c)
		return
	}
	if e.stat.size > r.k.o.MaxFile && !r.worthReading(e.path) {
		e.named = false
		return
	}
	r.mu.Lock()
	may := e.stat.size <= r.left
	if may {
		r.left -= e.stat.size
	}
	r.mu.Unlock()
	if !may {
		e.named = false
		return
	}
	c, err := rd.read(r.ctx, g, e.path)
	switch {
	case errors.Is(err, errVanished):
		r.lost(g, i)
	case err != nil:
		e.named = false // it is not readable
	default:
		e.take(&c)
		if c.named {
			r.keep(e, i, &c)
		}
	}
}

// worthReading decides whether to read a file that is too large to be kept: yes if an index names it, because git may
// have the content, or if a task knows it. For other large files only the stat is compared: otherwise every command
// would read a database of gigabytes.
func (r *reading) worthReading(p string) bool {
	for _, repo := range r.k.git.repos {
		if repo.tracked[p] {
			return true
		}
	}
	_, known := slices.BinarySearch(r.sc.known, p)
	return known
}

// lost checks a file again that was missing when a worker wanted to read it.
func (r *reading) lost(g *workspace.Tree, i int) {
	e := &r.sc.list[i]
	e.named = false
	info, ok, err := g.Look(OnDisk(e.path))
	switch {
	case err == nil && ok && info == nil:
		r.mu.Lock()
		r.gone = append(r.gone, i)
		r.mu.Unlock()
	case err == nil && ok:
		e.stat = statOf(info)
	}
}

// keep makes sure that a content can be read again.
func (r *reading) keep(e *entry, i int, c *fileContent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case c.size <= r.k.o.MaxHold && r.k.git.has(e.blob):
		e.held = theirs
		r.relied = append(r.relied, i)
		return
	case r.k.isSound(r.ctx, e.hash()):
		e.held = ours
		return
	case c.size > r.k.o.MaxFile || r.files <= 0 || r.trouble != nil:
		return
	}
	if r.b == nil {
		room, err := r.k.room(r.ctx)
		if err == nil {
			r.room, r.store = r.k.o.MaxSurvey, room
			r.b, err = r.k.begin(r.ctx)
		}
		if err != nil {
			r.trouble = err
			return
		}
	}
	if c.size > r.store {
		r.sc.full = true
	}
	if c.size > min(r.room, r.store) {
		return
	}
	if _, err := r.b.Add(c.data); err != nil {
		r.trouble = err
		return
	}
	r.room -= c.size
	r.store -= c.size
	r.files--
	r.put = append(r.put, i)
	e.held = ours
}

// verify checks that the user's repositories have the objects that their indexes name. It returns the entries that
// must be kept because the repositories lack them.
func (r *reading) verify() (again []int) {
	if len(r.relied) == 0 {
		return nil
	}
	ids := api.Each(r.relied, func(i int) [20]byte { return r.sc.list[i].blob })
	lost := r.k.git.check(r.ctx, ids)
	for _, i := range r.relied {
		if e := &r.sc.list[i]; lost[e.blob] {
			e.held = nowhere
			again = append(again, i)
		}
	}
	r.relied = nil
	return again
}

// layer holds the rules of a folder: the current ones, and those at the previous survey.
type layer struct {
	dir      string // "" or ending in "/"
	above    string // for a folder around the workspace: the path from there to the workspace
	now, was *workspace.Ignore
}

func (l layer) decide(rules *workspace.Ignore, p string, dir bool) int {
	if rules == nil {
		return 0
	}
	return rules.Decide(l.above+p[len(l.dir):], dir)
}

// walker walks through the workspace once, in the order of recorded paths, and records files without reading
// contents. It reuses entries of the newest survey for files whose stat is unchanged.
type walker struct {
	k     *Keeper
	known []string // sorted: visited although rules hide them
	base  *scan    // the survey before a command; nil for the walk of such a survey
	out   *scan
	max   int
	room  int64 // bytes of rules that may still be read

	old []entry // the part of the newest survey that the walk has not reached
}

// errFull: the walk reached its limit of files.
var errFull = errors.New("too many files")

func (k *Keeper) walk(ctx context.Context, g *workspace.Tree, base *scan) (*scan, error) {
	var known []string
	if base != nil {
		known = base.known // what became known since would look new
	} else {
		k.mu.Lock()
		known = slices.Concat(slices.Collect(maps.Keys(k.known)), slices.Collect(maps.Keys(k.tracked)))
		k.mu.Unlock()
		slices.Sort(known)
		known = slices.Compact(known)
	}
	w := &walker{k: k, known: known, base: base, max: k.o.MaxWalk, room: maxAllRules, out: &scan{known: known, rules: map[string]*compiled{}}}
	if k.last != nil {
		w.old = k.last.list
		w.out.list = make([]entry, 0, len(k.last.list)+64)
	}
	err := w.folder(ctx, g.Root, "", w.outer(k.w.Root()), false)
	if err != nil && !errors.Is(err, errFull) {
		return nil, err
	}
	return w.out, nil
}

// child is one name in a folder.
type child struct {
	key  string // recorded; for a folder with "/" at the end
	name string // on the disk
	info fs.FileInfo
}

// folder walks one folder, whose recorded path is "" or ends in "/". In a hidden folder it visits only known paths.
func (w *walker) folder(ctx context.Context, dir *os.Root, prefix string, layers []layer, hidden bool) error {
	if prefix != "" {
		w.out.dirs = append(w.out.dirs, prefix)
	}
	closed := func(err error) error {
		if prefix == "" || errors.Is(err, errFull) {
			return err
		}
		w.out.closed = append(w.out.closed, prefix)
		return nil
	}
	names, err := w.names(dir, prefix, hidden)
	if err != nil {
		return closed(err)
	}
	children := make([]child, 0, len(names))
	git := false
	for _, name := range names {
		if gitName(name) {
			git = true
			continue
		}
		if workspace.IsTemporary(name) {
			continue
		}
		info, err := dir.Lstat(name)
		if workspace.CannotExist(err) {
			continue
		}
		if err != nil { // a folder that may be read and not entered
			return closed(err)
		}
		c := child{key: Recorded(name), name: name, info: info}
		if info.IsDir() {
			c.key += "/"
		}
		children = append(children, c)
	}
	slices.SortFunc(children, func(a, b child) int { return strings.Compare(a.key, b.key) })
	if git {
		w.out.repos = append(w.out.repos, strings.TrimSuffix("./"+prefix, "/"))
		layers = w.addRules(layers, layer{dir: prefix}, dir, prefix, excludes)
	}
	if !hidden {
		layers = w.addRules(layers, layer{dir: prefix}, dir, prefix, ".gitignore")
	}
	for _, c := range children {
		if err := ctx.Err(); err != nil {
			return err // here, because a repository may have very many rules
		}
		p := prefix + c.key
		if !c.info.IsDir() {
			if (hidden || w.hides(layers, p, false)) && !w.wanted(p) {
				w.veil(p, hidden)
				continue
			}
			if len(w.out.list) >= w.max {
				w.out.end = p
				return errFull
			}
			w.add(p, c.info)
			continue
		}
		veiled := hidden || w.hides(layers, strings.TrimSuffix(p, "/"), true)
		if veiled {
			w.veil(p, hidden)
		}
		if veiled && len(w.knownIn(p)) == 0 {
			continue
		}
		sub, err := inputfile.OpenDirIn(dir, c.name)
		if err == nil {
			if got, e := sub.Stat("."); e != nil || !os.SameFile(got, c.info) {
				sub.Close()
				err = errVanished
			}
		}
		if err != nil {
			w.out.dirs = append(w.out.dirs, p)
			w.out.closed = append(w.out.closed, p)
			continue
		}
		err = w.folder(ctx, sub, p, layers, veiled)
		sub.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// maxVeiled bounds how many hidden names a survey keeps, of which a few are shown.
const maxVeiled = 1000

// veil records a hidden path; below is true inside a hidden folder.
func (w *walker) veil(p string, below bool) {
	if w.base == nil && !below && len(w.out.veiled) < maxVeiled {
		w.out.veiled = append(w.out.veiled, p)
	}
}

// names lists a folder; for a hidden one, only names that lead to known paths. A walk keeps all names of a folder in
// memory, also those that rules hide, so it ends before a folder with too many.
func (w *walker) names(dir *os.Root, prefix string, hidden bool) ([]string, error) {
	if hidden {
		return w.knownIn(prefix), nil
	}
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(4*w.max + 1)
	if len(names) > 4*w.max {
		w.out.end = cmp.Or(prefix, "\x00")
		return nil, errFull
	}
	if errors.Is(err, io.EOF) { // it is empty
		err = nil
	}
	return names, err
}

// knownIn returns the names in a folder, whose path ends in "/", that lead to files which are examined although rules
// hide them.
func (w *walker) knownIn(prefix string) (names []string) {
	add := func(p string) {
		name, _, _ := strings.Cut(p[len(prefix):], "/")
		if name = OnDisk(name); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	i, _ := slices.BinarySearch(w.known, prefix)
	for ; i < len(w.known) && strings.HasPrefix(w.known[i], prefix); i++ {
		add(w.known[i])
	}
	if w.base != nil {
		i, _ := w.base.find(prefix)
		for ; i < len(w.base.list) && strings.HasPrefix(w.base.list[i].path, prefix); i++ {
			add(w.base.list[i].path)
		}
	}
	return names
}

// wanted reports whether a file is examined although rules hide it.
func (w *walker) wanted(p string) bool {
	_, ok := slices.BinarySearch(w.known, p)
	if !ok && w.base != nil {
		_, ok = w.base.find(p)
	}
	return ok
}

// add records a file.
func (w *walker) add(p string, info fs.FileInfo) {
	now := statOf(info)
	for len(w.old) > 0 && w.old[0].path < p {
		w.old = w.old[1:]
	}
	if len(w.old) > 0 && w.old[0].path == p && w.old[0].stat == now {
		w.out.list = append(w.out.list, w.old[0])
		return
	}
	w.out.list = append(w.out.list, entry{path: strings.Clone(p), stat: now})
}

// hides applies the nearest rules first; the walk has judged the parents already. After a command, paths that were hidden
// before it stay hidden, and paths that the command hid are examined if the survey before saw them: otherwise a changed
// .gitignore would look like added or removed files.
func (w *walker) hides(layers []layer, p string, dir bool) bool {
	same := true
	for _, l := range slices.Backward(layers) {
		if l.now != l.was {
			same = false
		}
		if v := l.decide(l.now, p, dir); v != 0 {
			if v > 0 {
				return true
			}
			break
		}
	}
	if w.base == nil || same {
		return false
	}
	for _, l := range slices.Backward(layers) {
		if v := l.decide(l.was, p, dir); v != 0 {
			return v > 0
		}
	}
	return false
}

// outer returns the rules of the repository around the workspace, from the folders above the workspace.
func (w *walker) outer(root string) (layers []layer) {
	top, above := enclosing(root)
	for i := range above {
		dir, err := inputfile.OpenDir(top)
		if err != nil {
			return layers
		}
		l := layer{above: strings.Join(above[i:], "/") + "/"}
		if i == 0 {
			layers = w.addRules(layers, l, dir, top+"/", excludes)
		}
		layers = w.addRules(layers, l, dir, top+"/", ".gitignore")
		dir.Close()
		top = filepath.Join(top, above[i])
	}
	return layers
}

// excludes is the file of a repository's rules outside of .gitignore. A worktree has this file elsewhere, and its
// rules are left out.
const excludes = ".git/info/exclude"

// addRules adds the rules in a file of a folder, whose path is at, as the nearest ones.
func (w *walker) addRules(layers []layer, l layer, dir *os.Root, at, name string) []layer {
	key := at + name
	now := w.rules(dir, filepath.FromSlash(name), key)
	if now != nil {
		w.out.rules[key] = now
		l.now = now.rules
	}
	if w.base != nil {
		if was := w.base.rules[key]; was != nil {
			l.was = was.rules
		}
	}
	if l.now == nil && l.was == nil {
		return layers
	}
	return append(layers[:len(layers):len(layers)], l) // a new slice: siblings share the one before
}

// Bounds of the files of rules in bytes: of one, and of all that one walk reads. Rules take much more memory than their
// text, and a small repository can hold a file of them in very many folders. Further files count as missing.
const (
	maxRules    = 1 << 20
	maxAllRules = 4 << 20
)

// rules reads a file of rules, unless the file has not changed since the last read.
func (w *walker) rules(dir *os.Root, name, key string) *compiled {
	info, err := dir.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > min(maxRules, w.room) {
		return nil
	}
	w.room -= info.Size()
	now := statOf(info)
	if have, ok := w.k.rules[key]; ok && have.stat == now && now.settled(have.read) {
		return &have
	}
	fresh := compiled{stat: now, read: time.Now().UnixNano()}
	f, _, err := workspace.OpenIn(dir, name)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRules))
	if err != nil {
		return nil
	}
	fresh.text = string(text)
	fresh.rules = workspace.ParseIgnore(fresh.text, false)
	w.k.rules[key] = fresh
	return &fresh
}
