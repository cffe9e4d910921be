package content

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/filelock"
)

// Folder is a content store in a folder. Several goroutines may use it, and several processes its folder.
//
// A Folder is this folder:
//
//	bundles/<random>.bundle   compressed contents with an index at the end; never changed
//	names/<owner>             the hash of the owner's newest manifest
//	leases/<process>-<random> which bundles a running Folder relies on; counts only while its owner locks it
//	temp/                     bundles that are being written
//	lock, collect             kernel locks: see hold.go
//
// A batch is one bundle file: it is synced, renamed and its folder is synced. Several processes may use one folder.
// Opening and reading a store that does not exist creates nothing.
//
// Earlier versions used git's format (package checkpoint/gitstore). No user read it with git, and trees, commits, refs,
// deltas and git's own collection beside ours took four times the code. The owners of contents are files (names/) and
// not a search through all journals: a purge reads one small folder, and a task with a damaged journal loses nothing.
// The file "roost" in the folder makes earlier versions refuse to write there.
//
// Limit: a bundle's index is kept in memory, 57 bytes for each content.
type Folder struct {
	dir   string
	fault func(op string) error // tests simulate a full disk with it

	mu    sync.RWMutex // guards known
	known known

	hold sync.Mutex // guards held; locked before any kernel lock
	held held
}

// known is what the store has read of the bundles folder. Rows of small bundles are in one map, so that a thousand of
// them cost no more to search than one; a large bundle is searched in its own index.
type known struct {
	bundles map[string]*bundle
	small   map[Key]position
	large   []*bundle
	bad     map[string]string // bundles with an unreadable index, and why
	damaged map[position]bool // copies that were read and are damaged
	stamp   time.Time         // when the folder last changed before it was read
	seen    time.Time         // when the folder was read
}

type position struct {
	b *bundle
	i int
}

// smallBundle is the number of rows up to which a bundle's rows go into the map.
const smallBundle = 1024

// Open opens the store in a folder. Nothing is created before the first write; a store that does not exist has no
// contents and no names.
func Open(dir string) (*Folder, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		var info fs.FileInfo
		if info, err = os.Stat(abs); errors.Is(err, fs.ErrNotExist) {
			err = nil
		} else if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is not a folder", abs)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the content store: %w", err)
	}
	return &Folder{dir: abs, fault: func(string) error { return nil }}, nil
}

func (s *Folder) path(elem ...string) string {
	return filepath.Join(append([]string{s.dir}, elem...)...)
}

// The folders of a store. temp is created last and shows that the others are durable.
const (
	bundlesDir = "bundles"
	namesDir   = "names"
	leasesDir  = "leases"
	tempDir    = "temp"
)

// create creates the folders, unless they exist. Several processes may do it at the same time.
func (s *Folder) create() error {
	if _, err := os.Stat(s.path(tempDir)); err == nil {
		return nil
	}
	var err error
	for _, d := range []string{bundlesDir, namesDir, leasesDir} {
		err = errors.Join(err, os.MkdirAll(s.path(d), 0o700))
	}
	for _, d := range []string{s.dir, filepath.Dir(s.dir)} {
		if err == nil {
			err = atomicfile.SyncDir(d)
		}
	}
	if err == nil {
		err = os.MkdirAll(s.path(tempDir), 0o700)
	}
	return api.Failed(err, "create the content store %s", s.dir)
}

// readDir lists a folder; a missing one is empty.
func readDir(path string) ([]fs.DirEntry, error) {
	list, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return list, err
}

const bundleSuffix = ".bundle"

// add adds a bundle. The caller holds mu.
func (k *known) add(b *bundle) {
	k.bundles[b.name] = b
	if b.count() > smallBundle {
		k.large = append(k.large, b)
		return
	}
	for i := range b.count() {
		// A manifest's row wins over one of the same bytes kept as a file: Collect must follow what it names.
		id := b.key(i)
		if old, ok := k.small[id]; !ok || !old.b.row(old.i).manifest {
			k.small[id] = position{b, i}
		}
	}
}

// find returns one copy of a content, and a manifest if any copy is one. The caller holds mu.
func (k *known) find(id Key) (position, bool) {
	found, ok := k.small[id]
	if ok && found.b.row(found.i).manifest {
		return found, true
	}
	for _, b := range k.large {
		if i, has := b.find(id); has {
			if !ok || b.row(i).manifest {
				found = position{b, i}
			}
			ok = true
		}
	}
	return found, ok
}

// allDamaged reports whether every copy of a content was found damaged. The caller holds mu.
func (k *known) allDamaged(id Key) bool {
	for _, b := range k.bundles {
		if i, ok := b.find(id); ok && !k.damaged[position{b, i}] {
			return false
		}
	}
	return len(k.damaged) > 0
}

// anyBad describes one bundle whose index cannot be read; "" when there is none.
func (k *known) anyBad() string {
	for name, why := range k.bad {
		return name + " (" + why + ")"
	}
	return ""
}

func (s *Folder) row(id Key) (row, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p, ok := s.known.find(id)
	if !ok {
		return row{}, false
	}
	return p.b.row(p.i), true
}

// current reports whether the bundles folder is unchanged since it was read. Times of files are coarse: if it was
// read soon after a change, the next change may not show in its time.
func (k *known) current(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) && k.bundles != nil && len(k.bundles) == 0
	}
	coarse := 50 * time.Millisecond
	if k.stamp.Nanosecond() == 0 {
		coarse = 3 * time.Second // a file system that keeps whole seconds, or two
	}
	return k.bundles != nil && info.ModTime().Equal(k.stamp) && k.seen.Sub(k.stamp) > coarse
}

// refresh reads the bundles folder, unless it is unchanged since the last reading.
func (s *Folder) refresh(force bool) error {
	dir := s.path(bundlesDir)
	s.mu.RLock()
	current := !force && s.known.current(dir)
	s.mu.RUnlock()
	if current {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var stamp time.Time
	if info, err := os.Stat(dir); err == nil {
		stamp = info.ModTime()
	}
	list, err := readDir(dir)
	if err != nil {
		return fmt.Errorf("read the bundles: %w", err)
	}
	k := &s.known
	if k.bundles == nil {
		k.bundles, k.small, k.damaged = map[string]*bundle{}, map[Key]position{}, map[position]bool{}
	}
	bad, present := map[string]string{}, map[string]bool{}
	for _, d := range list {
		name, ok := strings.CutSuffix(d.Name(), bundleSuffix)
		if !ok {
			continue
		}
		present[name] = true
		if k.bundles[name] != nil {
			continue
		}
		b, err := openBundle(name, filepath.Join(dir, d.Name()))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			bad[name] = err.Error()
		default:
			k.add(b)
		}
	}
	gone := false
	for name := range k.bundles {
		if !present[name] {
			delete(k.bundles, name)
			gone = true
		}
	}
	if gone {
		k.small, k.large = map[Key]position{}, nil
		for _, b := range k.bundles {
			k.add(b)
		}
	}
	k.bad, k.stamp, k.seen = bad, stamp, now
	return nil
}

// Contains implements Store.
func (s *Folder) Contains(ctx context.Context, h Hash) bool {
	k, err := h.Key()
	if err != nil {
		return false
	}
	if err := s.refresh(false); err != nil {
		return false
	}
	if s.listed(k) || s.quiet() {
		return s.listed(k)
	}
	free, err := s.keepBundles(ctx)
	free()
	return err == nil && s.listed(k)
}

// listed reports whether the last reading of the folder found a content that is not known to be damaged.
func (s *Folder) listed(k Key) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, ok := s.known.find(k)
	return ok && !s.known.allDamaged(k)
}

// quiet reports whether the folder did not change while it was read, and has not changed since.
func (s *Folder) quiet() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.known.current(s.path(bundlesDir))
}

// keepBundles keeps other processes from removing bundles until free is called, and reads the folder. While a
// collection moves a content, a listing may show neither its old bundle nor its new one. So no content counts as
// missing before keepBundles was called, unless the folder is quiet. Where the lock cannot be taken, as in a
// read-only store, the folder is only read. The caller must not hold s.hold, from before the call until free.
func (s *Folder) keepBundles(ctx context.Context) (free func(), err error) {
	free = func() {}
	if _, err := os.Stat(s.path(lockRemove)); err == nil { // otherwise no process removes anything, and reading creates nothing
		wait, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if unlock, err := s.lock(wait, lockRemove, filelock.Shared); err == nil {
			free = unlock
		} else if ctx.Err() != nil {
			return free, err
		}
	}
	if err := s.refresh(true); err != nil {
		free()
		return func() {}, err
	}
	return free, nil
}

// Read implements Store.
func (s *Folder) Read(ctx context.Context, h Hash, limit int64) ([]byte, error) {
	var out bytes.Buffer
	if err := s.copy(ctx, h, limit, &out, false); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Verify implements Store.
func (s *Folder) Verify(ctx context.Context, h Hash) error { return s.copy(ctx, h, 0, nil, false) }

// copy tries every copy of a content until one is good. When a bundle was removed after the folder was read, because
// its contents moved to another bundle, copy reads the folder again, the last time while no bundle can be removed.
// With a nil buffer it only verifies. alone: the caller itself keeps bundles from being removed.
func (s *Folder) copy(ctx context.Context, h Hash, limit int64, out *bytes.Buffer, alone bool) error {
	k, err := h.Key()
	if err != nil {
		return fmt.Errorf("%w: %w", err, ErrMissing)
	}
	tried := map[string]bool{}
	var first error // why the first copy cannot be read
	free := func() {}
	defer func() { free() }()
	for try := range 3 {
		switch {
		case try == 1:
			err = s.refresh(true)
		case try == 2 && !alone && !s.quiet():
			free, err = s.keepBundles(ctx)
		}
		if err != nil {
			return fmt.Errorf("content %s: %w", h, err)
		}
		for _, p := range s.copies(k) {
			if tried[p.b.name] {
				continue
			}
			err := s.copyFrom(ctx, p, limit, out)
			switch {
			case err == nil:
				return nil
			case errors.Is(err, fs.ErrNotExist):
				continue
			case ctx.Err() != nil:
				return ctx.Err()
			case errors.Is(err, ErrTooLarge):
				return fmt.Errorf("content %s %w", h, err)
			}
			if errors.Is(err, ErrDamaged) {
				s.mu.Lock()
				s.known.damaged[p] = true
				s.mu.Unlock()
			}
			tried[p.b.name] = true
			if first == nil {
				first = err
			}
		}
	}
	s.mu.RLock()
	bad := s.known.anyBad()
	s.mu.RUnlock()
	switch {
	case first != nil:
		return first
	case bad != "":
		return fmt.Errorf("content %s may be in bundle %s, which %w", h, bad, ErrDamaged)
	}
	return fmt.Errorf("content %s %w", h, ErrMissing)
}

func (s *Folder) copyFrom(ctx context.Context, p position, limit int64, out *bytes.Buffer) error {
	r := p.b.row(p.i)
	if limit > 0 && r.size > limit {
		return ErrTooLarge
	}
	f, err := os.Open(p.b.path)
	if err != nil {
		return err
	}
	defer f.Close()
	to := io.Discard
	if out != nil {
		out.Reset()
		to = out
	}
	return p.b.copyTo(ctx, f, r, to)
}

// copies lists the copies of a content, known damaged ones last.
func (s *Folder) copies(k Key) []position {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list, damaged []position
	first, _ := s.known.find(k) // the same one each time
	for _, b := range s.known.bundles {
		i, ok := b.find(k)
		switch p := (position{b, i}); {
		case !ok:
		case p == first && !s.known.damaged[p]:
			list = slices.Insert(list, 0, p)
		case s.known.damaged[p]:
			damaged = append(damaged, p)
		default:
			list = append(list, p)
		}
	}
	return append(list, damaged...)
}

// Size implements Store: the bytes of the bundles on disk.
func (s *Folder) Size(context.Context) (int64, error) {
	list, err := readDir(s.path(bundlesDir))
	var n int64
	for _, d := range list {
		if info, err := d.Info(); err == nil {
			n += info.Size()
		}
	}
	return n, api.Failed(err, "measure the content store")
}
