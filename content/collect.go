package content

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/internal/filelock"
)

// CollectOptions are what Collect keeps and does.
type CollectOptions struct {
	// Keep names more contents that stay, with everything they reach. It is called more than once. A missing content is
	// no error.
	Keep func() ([]Hash, error)
	// DryRun only counts and writes nothing.
	DryRun bool
	// Without are owners whose names a dry run treats as removed.
	Without []string
}

// Collected is what Collect did, or would do.
type Collected struct {
	Kept, Removed int   // contents
	Before, After int64 // bytes on disk; After of a dry run is an estimate
}

// collection is one Collect at work.
type collection struct {
	s       *Store
	o       CollectOptions
	w       walker
	bundles map[string]*bundle // those that existed at the beginning; later ones stay
	stay    map[string]bool    // bundles that stay whole
}

// Collect removes what neither a name nor Keep reaches and no Store holds: it copies what is still needed of the
// bundles that contain unused contents into a new one and removes them. Writers and readers continue; writers wait only
// while files are removed. A kill at any moment loses nothing. If something that a name reaches is missing or
// unreadable, the error is ErrDamaged and nothing is removed.
//
// A bundle with any unused content is rewritten, however little that is: what a user purged must not stay on disk.
func (s *Store) Collect(ctx context.Context, o CollectOptions) (done Collected, err error) {
	if _, err := os.Stat(s.path(bundlesDir)); errors.Is(err, fs.ErrNotExist) {
		return Collected{}, nil
	}
	defer func() {
		if err != nil {
			done, err = Collected{}, fmt.Errorf("remove unused contents: %w", err)
		}
	}()
	if !o.DryRun {
		if err := s.create(); err != nil {
			return done, err
		}
		free, err := s.lock(ctx, lockCollect, filelock.Exclusive)
		if err != nil {
			return done, err
		}
		defer free()
	}
	c := &collection{s: s, o: o, w: walker{s: s, seen: map[key]bool{}}, stay: map[string]bool{}}
	if done.Before, err = s.Size(); err != nil {
		return done, err
	}
	total, err := c.begin(ctx)
	if err != nil {
		return done, err
	}
	moved := c.choose()
	if o.DryRun {
		done.Kept, done.Removed, done.After = len(c.w.seen), total-len(c.w.seen), done.Before
		for _, b := range moved {
			for i := range b.count() {
				if !c.w.seen[b.key(i)] {
					done.After -= b.row(i).stored
				}
			}
		}
		return done, nil
	}
	if err := c.gather(ctx, moved); err != nil {
		return done, err
	}
	failpoint.Hit("content.collect.written")
	if err := c.finish(ctx, moved); err != nil {
		return done, err
	}
	if done.After, err = s.Size(); err != nil {
		return done, err
	}
	done.Kept, done.Removed = len(c.w.seen), max(total-len(c.w.seen), 0)
	return done, nil
}

// begin reads what exists and marks what is needed. It returns how many contents exist.
func (c *collection) begin(ctx context.Context) (total int, err error) {
	s := c.s
	if _, err := s.refresh(true); err != nil {
		return 0, err
	}
	leases, err := s.leases(false)
	if err != nil {
		return 0, err
	}
	all := map[key]bool{}
	c.bundles = map[string]*bundle{}
	s.mu.RLock()
	bad := s.known.anyBad()
	for name, b := range s.known.bundles {
		c.bundles[name] = b
		for i := range b.count() {
			all[b.key(i)] = true
		}
	}
	s.mu.RUnlock()
	if bad != "" {
		return 0, fmt.Errorf("bundle %s %w", bad, ErrDamaged)
	}
	if err := c.mark(ctx); err != nil {
		return 0, err
	}
	return len(all), c.spare(ctx, leases)
}

// mark marks what names and Keep reach.
func (c *collection) mark(ctx context.Context) error {
	names, err := c.s.Names()
	if err != nil {
		return err
	}
	var roots []key
	for owner, n := range names {
		if k, err := n.Manifest.key(); err == nil && !(c.o.DryRun && slices.Contains(c.o.Without, owner)) {
			roots = append(roots, k)
		}
	}
	if err := c.w.walk(ctx, roots, true); err != nil {
		return err
	}
	if c.o.Keep == nil {
		return nil
	}
	roots = nil
	more, err := c.o.Keep()
	if err != nil {
		return err
	}
	for _, h := range more {
		if k, err := h.key(); err == nil {
			roots = append(roots, k)
		}
	}
	return c.w.walk(ctx, roots, false)
}

// spare keeps bundles that a living Store relies on or that came after the beginning, and everything their contents
// reach: a Store that found a manifest may rely on what it names. It ends when nothing more has to stay.
func (c *collection) spare(ctx context.Context, leases []lease) error {
	s := c.s
	for {
		var roots []key
		more := false
		s.mu.RLock()
		for name, b := range s.known.bundles {
			if c.stay[name] || c.bundles[name] != nil && !leased(leases, name) {
				continue
			}
			c.stay[name], more = true, true
			for i := range b.count() {
				roots = append(roots, b.key(i))
			}
		}
		s.mu.RUnlock()
		if !more {
			return nil
		}
		if err := c.w.walk(ctx, roots, false); err != nil {
			return err
		}
	}
}

// largeBundle is the size from which a bundle without unused contents is left as it is, in bytes.
const largeBundle = 16 << 20

// choose returns the bundles that are to go: those with unused contents, and with them the small ones. A single small
// bundle without unused contents stays. It is smallest first.
func (c *collection) choose() (list []*bundle) {
	var whole []*bundle
	for name, b := range c.bundles {
		if c.stay[name] {
			continue
		}
		unused := false
		for i := 0; i < b.count() && !unused; i++ {
			unused = !c.w.seen[b.key(i)]
		}
		switch {
		case unused:
			list = append(list, b)
		case b.size < largeBundle:
			whole = append(whole, b)
		default:
			c.stay[name] = true
		}
	}
	if len(whole) > 1 || len(list) > 0 {
		list = append(list, whole...)
	} else {
		for _, b := range whole {
			c.stay[b.name] = true
		}
	}
	slices.SortFunc(list, func(a, b *bundle) int { return cmp.Compare(a.size, b.size) })
	return list
}

// gather writes what is needed of bundles that go into a new one.
func (c *collection) gather(ctx context.Context, list []*bundle) error {
	elsewhere := c.staying()
	w := newBundleWriter(c.s.scratchFile, c.s.fault)
	defer w.drop()
	for _, b := range list {
		err := w.take(ctx, b, func(k key) bool { return c.w.seen[k] && !elsewhere[k] })
		if errors.Is(err, ErrDamaged) {
			// What cannot be read now is not given up: its bundle stays, like one that came later.
			delete(c.bundles, b.name)
			continue
		}
		if err != nil {
			return err
		}
	}
	if len(w.rows) == 0 {
		return nil
	}
	name, err := c.s.publish(ctx, w, false)
	c.stay[name] = true
	return err
}

// staying are the contents of the bundles that stay.
func (c *collection) staying() map[key]bool {
	out := map[key]bool{}
	c.s.mu.RLock()
	defer c.s.mu.RUnlock()
	for name, b := range c.s.known.bundles {
		for i := 0; c.stay[name] && i < b.count(); i++ {
			out[b.key(i)] = true
		}
	}
	return out
}

// take copies the needed contents of a bundle, or nothing.
func (w *bundleWriter) take(ctx context.Context, b *bundle, need func(key) bool) (err error) {
	start, count := w.at(), len(w.rows)
	defer func() {
		if err != nil {
			for _, r := range w.rows[count:] {
				delete(w.have, r.key)
			}
			w.rows = w.rows[:count]
			err = errors.Join(err, w.cutBack(start))
		}
	}()
	f, err := os.Open(b.path)
	if err != nil {
		return err
	}
	defer f.Close()
	for i := range b.count() {
		r := b.row(i)
		if manifest, ok := w.have[r.key]; ok && (manifest || !r.manifest) || !need(r.key) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, ok := w.have[r.key]; ok { // the same bytes were a file in another bundle
			w.setManifest(r.key)
			continue
		}
		if err := w.frame(ctx, b, f, r); err != nil {
			return err
		}
	}
	return nil
}

// finish removes the bundles that go, after reading again, under the exclusive lock, which process relies on what and
// then the names. In this order: a Store sets its name before it ends its hold, so one of the two readings finds it.
func (c *collection) finish(ctx context.Context, list []*bundle) error {
	s := c.s
	s.hold.Lock()
	defer s.hold.Unlock()
	free, err := s.lock(ctx, lockRemove, filelock.Exclusive)
	if err != nil {
		return err
	}
	defer free()
	leases, err := s.leases(true)
	if err != nil {
		return err
	}
	if _, err := s.refresh(true); err != nil {
		return err
	}
	if err := c.spare(ctx, leases); err != nil {
		return err
	}
	if err := c.mark(ctx); err != nil {
		return err
	}
	// What was marked only now must be in a bundle that stays; otherwise its own bundle stays.
	for again := true; again; {
		again = false
		safe := c.staying()
		for _, b := range list {
			for i := 0; !c.stay[b.name] && i < b.count(); i++ {
				if k := b.key(i); c.w.seen[k] && !safe[k] {
					delete(c.bundles, b.name)
					again = true
					break
				}
			}
		}
		if err := c.spare(ctx, leases); err != nil {
			return err
		}
	}
	failpoint.Hit("content.collect.removing")
	return s.remove(slices.DeleteFunc(list, func(b *bundle) bool { return c.stay[b.name] }))
}

// remove removes bundles; the caller holds the exclusive lock. What cannot be removed, because Windows refuses while
// another process reads it, stays until the next time.
func (s *Store) remove(list []*bundle) error {
	if len(list) == 0 {
		return nil
	}
	for _, b := range list {
		_ = os.Remove(b.path)
	}
	if _, err := s.refresh(true); err != nil {
		return err
	}
	return atomicfile.SyncDir(s.path(bundlesDir))
}

// scratchFile is the file of a bundle that no lease covers: one process at a time collects or merges.
func (s *Store) scratchFile() (*os.File, error) {
	if err := s.fault("create"); err != nil {
		return nil, err
	}
	return os.CreateTemp(s.path(tempDir), "collect-*")
}

// Each batch leaves a bundle. So that there are never many, the small ones are merged into one when mergeCount of them
// exist. A merged bundle that is not large by then is merged again.
const mergeCount = 50

// small lists the bundles that are not large.
func (s *Store) small() (list []*bundle) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, b := range s.known.bundles {
		if b.size < largeBundle {
			list = append(list, b)
		}
	}
	return list
}

// merge puts the small bundles into one; no content is dropped. Bundles that a living Store relies on stay.
// (Rewriting the leases of others was rejected: a lease then names what its owner never wrote or found.)
func (s *Store) merge(ctx context.Context) error {
	free, ok, err := s.tryLock(lockCollect, filelock.Exclusive)
	if !ok {
		return err
	}
	defer free()
	s.hold.Lock()
	defer s.hold.Unlock()
	// With this lock no process begins to rely on a bundle that is about to go.
	free, ok, err = s.tryLock(lockRemove, filelock.Exclusive)
	if !ok {
		return err
	}
	defer free()
	if _, err := s.refresh(true); err != nil {
		return err
	}
	leases, err := s.leases(false)
	if err != nil {
		return err
	}
	list := slices.DeleteFunc(s.small(), func(b *bundle) bool { return leased(leases, b.name) })
	if len(list) < mergeCount/2 {
		return nil
	}
	w := newBundleWriter(s.scratchFile, s.fault)
	defer w.drop()
	list = slices.DeleteFunc(list, func(b *bundle) bool { return w.take(ctx, b, func(key) bool { return true }) != nil })
	if len(list) < 2 {
		return fmt.Errorf("merge bundles: %w", ErrDamaged)
	}
	if _, err := s.publish(ctx, w, false); err != nil {
		return err
	}
	failpoint.Hit("content.merge.written")
	return s.remove(list)
}

// Which process may remove what. One kernel lock, "lock", is taken shared for the moment in which a Store notes that it
// relies on a bundle, and exclusively while bundles are removed. The notes of a Store are a file of its own, its lease:
// one line for each bundle, written before the bundle gets its name or is reported as present. The owner locks its
// lease; an unlocked lease does not count. So no process waits while bundles are written or read, only while some are
// removed; no clock decides; a killed process holds nothing.
//
// Rejected: a shared lock from a batch's begin until its name is set (a run that lasts a day would stop all
// collections); a grace period by file times (it depends on clocks, and a purge could remove nothing that is young).

// held is what a Store relies on.
type held struct {
	lease   *os.File // nil: nothing
	names   map[string]bool
	batches int
	keeps   int
}

// idle: nothing is held, and what is found is not to be held.
func (h *held) idle() bool { return h.lease == nil && h.batches == 0 && h.keeps == 0 }

// patience bounds the wait for a kernel lock of a caller without a context: each process before it syncs a few times,
// and on a slow disk one sync takes seconds.
const patience = time.Minute

// The kernel locks of a store.
const (
	lockRemove  = "lock"    // shared: to rely on a bundle; exclusive: to remove bundles
	lockCollect = "collect" // one process at a time collects or merges
)

// busy describes what the owner of a lock does.
var busy = map[string]string{
	lockRemove:  "another process holds or removes bundles",
	lockCollect: "another process removes unused contents",
}

// lock takes a kernel lock of the store. It waits until the context ends.
func (s *Store) lock(ctx context.Context, name string, mode filelock.Mode) (free func(), err error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		free, ok, err := s.tryLock(name, mode)
		if ok || err != nil {
			return free, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait while %s (it holds %s): %w", busy[name], s.path(name), ctx.Err())
		case <-time.After(wait):
		}
	}
}

func (s *Store) tryLock(name string, mode filelock.Mode) (free func(), ok bool, err error) {
	f, err := filelock.TryOpen(s.path(name), mode)
	if err != nil {
		return nil, false, fmt.Errorf("lock the content store: %w", err)
	}
	return func() { _ = filelock.Release(f) }, f != nil, nil
}

// rely holds a bundle that is present. When nothing is to be held it does nothing. A bundle that was removed is
// fs.ErrNotExist.
func (s *Store) rely(name string) error {
	s.hold.Lock()
	defer s.hold.Unlock()
	if s.held.names[name] || s.held.idle() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return s.note(ctx, name, true)
}

// claim holds a bundle that is about to get its name. If it never gets it, the line does no harm.
func (s *Store) claim(ctx context.Context, name string) error {
	s.hold.Lock()
	defer s.hold.Unlock()
	return s.note(ctx, name, false)
}

// note writes a line in the lease, and creates the lease first. "" only creates it. The caller holds s.hold.
func (s *Store) note(ctx context.Context, name string, mustExist bool) error {
	if s.held.names[name] || name == "" && s.held.lease != nil {
		return nil
	}
	free, err := s.lock(ctx, lockRemove, filelock.Shared)
	if err != nil {
		return err
	}
	defer free()
	if mustExist {
		if _, err := os.Stat(s.path(bundlesDir, name+bundleSuffix)); err != nil {
			return err
		}
	}
	if s.held.lease == nil {
		if err := s.createLease(); err != nil {
			return fmt.Errorf("hold contents of the store: %w", err)
		}
	}
	if name == "" {
		return nil
	}
	if err := addLine(s.held.lease, name); err != nil {
		return fmt.Errorf("hold contents of the store: %w", err)
	}
	s.held.names[name] = true
	return nil
}

// addLine adds a whole line or none.
func addLine(f *os.File, line string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if _, err = f.WriteString(line + "\n"); err != nil {
		return errors.Join(err, f.Truncate(info.Size()))
	}
	return nil
}

// createLease creates this Store's lease. The caller has the shared lock, so that no collection takes the lease for a
// dead one before it is locked.
func (s *Store) createLease() error {
	name := s.path(leasesDir, fmt.Sprintf("%d-%016x", os.Getpid(), rand.Uint64()))
	f, err := os.OpenFile(name, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	// A collection that tests the lock holds it for a moment.
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := filelock.Wait(ctx, f, filelock.Exclusive, time.Millisecond); err != nil {
		err = fmt.Errorf("lock the new file %s: %w", name, err)
		f.Close()
		_ = os.Remove(name)
		return err
	}
	s.held.lease, s.held.names = f, map[string]bool{}
	return nil
}

// tempFile creates the file of a bundle that is being written. Its name begins with that of the lease, so that the
// file of a dead process is recognised.
func (s *Store) tempFile() (*os.File, error) {
	s.hold.Lock()
	defer s.hold.Unlock()
	if s.held.lease == nil {
		return nil, errors.New("the content store is closed")
	}
	if err := s.fault("create"); err != nil {
		return nil, err
	}
	return os.CreateTemp(s.path(tempDir), filepath.Base(s.held.lease.Name())+"-*")
}

// Keep makes Settle do nothing until release is called, and holds what Has finds from now on: for work on contents that
// no name reaches yet.
func (s *Store) Keep() (release func()) {
	s.hold.Lock()
	defer s.hold.Unlock()
	s.held.keeps++
	done := false
	return func() {
		s.hold.Lock()
		defer s.hold.Unlock()
		if !done {
			done = true
			s.held.keeps--
		}
	}
}

// Settle ends the hold: names reach everything of this Store that is still wanted. While a Keep or a Batch is open it
// does nothing.
func (s *Store) Settle() {
	s.hold.Lock()
	defer s.hold.Unlock()
	if s.held.keeps == 0 && s.held.batches == 0 {
		s.dropLease()
	}
}

// Close ends the hold. Only reading is possible after it.
func (s *Store) Close() error {
	s.hold.Lock()
	defer s.hold.Unlock()
	s.dropLease()
	return nil
}

func (s *Store) dropLease() {
	if f := s.held.lease; f != nil {
		s.held.lease, s.held.names = nil, nil
		_ = filelock.Release(f)
		_ = os.Remove(f.Name()) // a process that locks a lease only tests whether it is locked
	}
}

// lease is a lease whose owner lives.
type lease struct {
	name    string
	bundles []string
}

// leases lists what all living Stores rely on. With clean, which needs the exclusive lock, leases of dead owners and
// their temporary files are removed.
func (s *Store) leases(clean bool) (list []lease, err error) {
	fail := func(err error) ([]lease, error) { return nil, fmt.Errorf("read who holds contents: %w", err) }
	files, err := readDir(s.path(leasesDir))
	if err != nil {
		return fail(err)
	}
	for _, d := range files {
		path := s.path(leasesDir, d.Name())
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fail(err)
		}
		dead, err := filelock.Try(f, filelock.Shared)
		_ = filelock.Release(f)
		if err != nil {
			return fail(err)
		}
		if dead {
			if clean {
				_ = os.Remove(path)
			}
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fail(err)
		}
		list = append(list, lease{d.Name(), strings.Fields(string(data))})
	}
	if !clean {
		return list, nil
	}
	files, err = readDir(s.path(tempDir))
	for _, d := range files {
		if !slices.ContainsFunc(list, func(l lease) bool { return strings.HasPrefix(d.Name(), l.name+"-") }) {
			_ = os.Remove(s.path(tempDir, d.Name()))
		}
	}
	return list, err
}

// leased reports whether a living Store relies on a bundle.
func leased(list []lease, name string) bool {
	return slices.ContainsFunc(list, func(l lease) bool { return slices.Contains(l.bundles, name) })
}
