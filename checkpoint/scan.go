package checkpoint

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/content"
)

// workers read files at the same time. More would slow down the user's other programs.
const workers = 2

// scan examines the whole workspace: the walk, the user's git objects, the new contents, and keeping those that could
// not be read again. base is the survey before a command, or nil. trouble is why contents could not be kept; the scan
// is correct all the same. The caller holds the turn.
func (k *Keeper) scan(ctx context.Context, base *scan) (sc *scan, trouble, err error) {
	g, err := k.open()
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

// tops are the repositories that a scan found, and the one around the workspace:
// from their tops to the folders in the workspace from where they are asked.
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

// addTracked adds files that .gitignore hides and an index names all the same: they belong to the project, and a
// command may change them like any other.
func (k *Keeper) addTracked(g *openRoot, sc *scan) {
	added := false
	for _, r := range k.git.repos {
		if r.uncovered {
			continue // once for each state of the index
		}
		r.uncovered = true
		for p := range r.tracked {
			if _, ok := sc.find(p); ok || !plain(p) || sc.blind(p) {
				continue
			}
			info, ok, err := g.look(p)
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
	g   *openRoot
	sc  *scan

	mu      sync.Mutex // of what follows
	b       *content.Batch
	room    int64 // bytes that one survey may still keep
	store   int64 // bytes that the store may still take
	files   int   // files that may still be kept
	left    int64 // bytes that may still be read
	put     []int // entries whose contents are in the batch
	relied  []int // entries that were not known to be in the user's git objects
	gone    []int
	trouble error
	err     error
}

// readAll reads what is not known well enough, and keeps what exists nowhere else.
func (k *Keeper) readAll(ctx context.Context, g *openRoot, sc *scan) (trouble, err error) {
	r := &reading{k: k, ctx: ctx, g: g, sc: sc, files: k.o.MaxFiles, left: k.o.MaxRead, room: -1}
	defer func() {
		if r.b != nil {
			r.b.Discard()
		}
	}()
	jobs := make([]int, 0, 64)
	for i := range sc.list {
		e := &sc.list[i]
		if e.kind() == api.KindOther {
			continue
		}
		was := e.held
		if e.sure() && k.locate(e) {
			if e.held == theirs && was != theirs {
				r.relied = append(r.relied, i)
			}
			continue
		}
		jobs = append(jobs, i)
	}
	// Small ones first: they are most of what is worth keeping, and the bounds are then
	// met by what would not have been kept anyway.
	slices.SortStableFunc(jobs, func(a, b int) int {
		return int(min(max(sc.list[a].stat.size-k.o.MaxFile, 0), 1<<30) - min(max(sc.list[b].stat.size-k.o.MaxFile, 0), 1<<30))
	})
	if err := r.work(jobs); err != nil {
		return nil, err
	}
	if again := r.verify(); len(again) > 0 {
		if err := r.work(again); err != nil {
			return nil, err
		}
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

// locate finds out where a known content is; false when it must be read and kept.
func (k *Keeper) locate(e *entry) bool {
	switch {
	case e.size <= k.o.MaxHold && k.git.has(e.blob):
		e.held = theirs
	case k.store.Has(e.hash()):
		e.held = ours
	default:
		e.held = nowhere
		return e.size > k.o.MaxFile
	}
	return true
}

func (r *reading) work(jobs []int) error {
	if len(jobs) == 0 {
		return nil
	}
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(workers, len(jobs)) {
		wg.Go(func() {
			rd := newReader(r.k.o.MaxFile)
			g := &openRoot{Root: r.g.Root, folders: map[string]folderState{".": aFolder}}
			for i := range next {
				r.one(rd, g, i)
			}
		})
	}
	for _, i := range jobs {
		if r.ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	wg.Wait()
	if err := r.ctx.Err(); err != nil {
		return err
	}
	return r.err
}

// one reads one entry. Entries are touched by one worker only.
func (r *reading) one(rd *reader, g *openRoot, i int) {
	e := &r.sc.list[i]
	e.held = nowhere
	if e.kind() == api.KindLink {
		target, err := g.Readlink(OnDisk(e.path))
		if err != nil {
			r.lost(g, i)
			return
		}
		c := linkTo(target)
		c.read = nanosNow()
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
		e.named = false // it may not be read
	default:
		e.take(&c)
		if c.named {
			r.keep(e, i, &c)
		}
	}
}

// worthReading: a file that is too large to be kept is read when an index names it, as its
// content may be there, or when a task knows it. Others are judged by their stat: a
// database of gigabytes would be read for every command.
func (r *reading) worthReading(p string) bool {
	if _, ok := slices.BinarySearch(r.sc.known, p); ok {
		return true
	}
	for _, repo := range r.k.git.repos {
		if repo.tracked[p] {
			return true
		}
	}
	return false
}

// lost checks again a file that was gone when it was to be read.
func (r *reading) lost(g *openRoot, i int) {
	e := &r.sc.list[i]
	e.named = false
	info, ok, err := g.look(e.path)
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
		room, err := r.k.room()
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

// verify checks that the user's repositories have what their indexes name. It returns the entries that must be kept
// because they do not.
func (r *reading) verify() (again []int) {
	if len(r.relied) == 0 {
		return nil
	}
	ids := make([][20]byte, 0, len(r.relied))
	for _, i := range r.relied {
		ids = append(ids, r.sc.list[i].blob)
	}
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
