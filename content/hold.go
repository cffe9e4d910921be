package content

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/internal/filelock"
	"github.com/roost-dev/roost/internal/sleep"
)

// Which process may remove what. One kernel lock, "lock", is taken shared for the moment in which a Store notes that it
// relies on a bundle, and exclusively while bundles are removed. The notes of a Store are a file of its own, its lease:
// one line for each bundle, written before the bundle gets its name or is reported as present. The owner locks its
// lease; an unlocked lease does not count. So no process waits while bundles are written or read, only while some are
// removed; no clock decides; a killed process holds nothing.
//
// Rejected: a shared lock from a batch's begin until its name is set (a run that lasts a day would stop all
// collections); a grace period by file times (it depends on clocks, and a purge could remove nothing that is young).

// held records what a Store relies on.
type held struct {
	lease *os.File // nil: it relies on nothing
	names map[string]bool
	keeps int // that are open, those of batches included
}

// idle reports whether nothing is held, and contents that are found need not be held.
func (h *held) idle() bool { return h.lease == nil && h.keeps == 0 }

// patience bounds how long a caller with other work waits for a kernel lock: each process before it syncs a few
// times, and on a slow disk one sync takes seconds.
const patience = time.Minute

// The kernel locks of a store.
const (
	lockRemove  = "lock"    // shared: while a bundle is relied on; exclusive: to remove bundles
	lockCollect = "collect" // one process at a time collects or merges
)

// busy describes what the holder of a lock does.
var busy = map[string]string{
	lockRemove:  "another process holds or removes bundles",
	lockCollect: "another process removes unused contents",
}

// lock takes a kernel lock of the store. It waits until the context ends.
func (s *Folder) lock(ctx context.Context, name string, mode filelock.Mode) (free func(), err error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		free, ok, err := s.tryLock(name, mode)
		if ok || err != nil {
			return free, err
		}
		if !sleep.For(ctx, wait) {
			return nil, fmt.Errorf("wait while %s (it holds %s): %w", busy[name], s.path(name), ctx.Err())
		}
	}
}

func (s *Folder) tryLock(name string, mode filelock.Mode) (free func(), ok bool, err error) {
	f, err := filelock.TryOpen(s.path(name), mode)
	if err != nil {
		return nil, false, fmt.Errorf("lock the content store: %w", err)
	}
	return func() { _ = filelock.Release(f) }, f != nil, nil
}

// Has implements Store.
func (s *Folder) Has(ctx context.Context, h Hash) bool {
	there, err := s.Find(ctx, h)
	return there && err == nil
}

// Find implements Store.
func (s *Folder) Find(ctx context.Context, h Hash) (bool, error) {
	k, err := h.Key()
	if err != nil {
		return false, nil //nolint:nilerr // no content has such a name
	}
	s.hold.Lock()
	idle := s.held.idle()
	s.hold.Unlock()
	if idle { // nothing keeps what is in memory from being removed
		if err := s.refresh(false); err != nil {
			return false, err
		}
	}
	return s.relyOn(ctx, k, false, true)
}

// relyOn reports whether a content is present and held. With manifest, only a copy that Collect treats as a manifest
// counts. With look, bundles that are newer than the last reading count, too.
func (s *Folder) relyOn(ctx context.Context, k Key, manifest, look bool) (bool, error) {
	for range 3 {
		s.mu.RLock()
		p, ok := s.known.find(k)
		damaged := ok && s.known.allDamaged(k)
		s.mu.RUnlock()
		if damaged || ok && manifest && !p.b.row(p.i).manifest {
			return false, nil
		}
		if ok {
			err := s.rely(ctx, p.b.name)
			if err == nil {
				return true, nil
			}
			if !errors.Is(err, fs.ErrNotExist) {
				return false, err
			}
			if err := s.refresh(true); err != nil {
				return false, err
			}
			continue
		}
		if !look || s.quiet() {
			return false, nil
		}
		free, err := s.keepBundles(ctx)
		free()
		if err != nil {
			return false, err
		}
		if !s.listed(k) {
			return false, nil
		}
	}
	return false, fmt.Errorf("hold content %s: collections removed its bundle at each try", k.Hash())
}

// rely holds a bundle that is present. When nothing needs to be held, it does nothing. For a removed bundle the error
// is fs.ErrNotExist.
func (s *Folder) rely(ctx context.Context, name string) error {
	s.hold.Lock()
	defer s.hold.Unlock()
	if s.held.names[name] || s.held.idle() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.note(ctx, name, true)
}

// claim holds a bundle that is about to get its name; "" only creates the lease. If the bundle never gets its name, the
// claim is harmless.
func (s *Folder) claim(ctx context.Context, name string) error {
	s.hold.Lock()
	defer s.hold.Unlock()
	return s.note(ctx, name, false)
}

// note writes a line into the lease, and creates the lease first if it does not exist. "" only creates it. The caller
// holds s.hold.
func (s *Folder) note(ctx context.Context, name string, mustExist bool) error {
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

// createLease creates this Store's lease. The caller holds the shared lock, so that no collection treats the lease as
// that of a dead process before the lease is locked.
func (s *Folder) createLease() error {
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

// tempFile creates the file of a bundle that is being written. Its name begins with that of the lease, so that leases
// can recognise the file of a dead process.
func (s *Folder) tempFile() (*os.File, error) {
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

// Keep implements Store.
func (s *Folder) Keep() (release func()) {
	s.hold.Lock()
	defer s.hold.Unlock()
	s.held.keeps++
	return sync.OnceFunc(func() {
		s.hold.Lock()
		defer s.hold.Unlock()
		s.held.keeps--
	})
}

// Settle implements Store.
func (s *Folder) Settle() {
	s.hold.Lock()
	defer s.hold.Unlock()
	if s.held.keeps == 0 {
		s.dropLease()
	}
}

// Close implements Store.
func (s *Folder) Close() error {
	s.hold.Lock()
	defer s.hold.Unlock()
	s.dropLease()
	return nil
}

func (s *Folder) dropLease() {
	if f := s.held.lease; f != nil {
		s.held.lease, s.held.names = nil, nil
		_ = filelock.Release(f)
		_ = os.Remove(f.Name()) // a process that locks a lease only tests whether it is locked
	}
}

// lease is a lease whose process lives.
type lease struct {
	name    string
	bundles []string
}

// leases lists the bundles that all living Stores rely on. With clean, which needs the exclusive lock, it removes the
// leases of dead processes and their temporary files.
func (s *Folder) leases(clean bool) (list []lease, err error) {
	fail := func(err error) ([]lease, error) {
		return nil, fmt.Errorf("read the leases of the content store: %w", err)
	}
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
