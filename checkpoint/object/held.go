package object

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
	"time"
)

// Who may remove what. One kernel lock a store, roost/lock, is taken shared for the moment
// in which somebody says that he relies on a pack, and exclusive while packs are
// removed. What is relied on stands in a file of its own for each Store, its lease:
// a line for each pack, written before the pack is named or said to be there. The lease
// is locked by its owner for as long as it counts; a lease that nobody locks is nobody's.
// So nobody waits while packs are written or read, only while some are removed; no
// clock has a say, and a killed process holds nothing.
//
// (A shared lock from the batch's begin to its ref was rejected: a run that lasts a day
// would keep everybody from collecting, and one lock cannot say what it is about.
// git's way, which is to spare what is younger than two weeks, was rejected
// because it hangs on clocks.)

// held is what a Store relies on.
type held struct {
	lease   *os.File // nil: nothing
	names   map[string]bool
	batches int
	keeps   int
}

// idle: nothing is held, and what is found is not to be held.
func (h *held) idle() bool { return h.lease == nil && h.batches == 0 && h.keeps == 0 }

// looseName stands for all loose objects in a lease.
const looseName = "loose"

// gonePrefix begins a line for a pack that need not be there: it never got its name,
// or its objects lie in another that the lease names. When a pack is gone without
// that, somebody else moved its objects, and nobody knows where to.
const gonePrefix = "-"

// patience is how long somebody waits who has no context of his own: each who stands before
// him syncs a few times, and on a slow disk one sync takes seconds.
const patience = time.Minute

// lock takes a kernel lock of the store, waiting until the context ends.
func (s *Store) lock(ctx context.Context, name string, exclusive bool) (free func(), err error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		free, ok, err := s.tryLock(name, exclusive)
		if ok || err != nil {
			return free, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait while %s (it holds %s): %w", busy[name], s.path("roost", name), ctx.Err())
		case <-time.After(wait):
		}
	}
}

func (s *Store) tryLock(name string, exclusive bool) (free func(), ok bool, err error) {
	f, err := os.OpenFile(s.path("roost", name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, false, fmt.Errorf("lock the object store: %w", err)
	}
	if ok, err = tryLock(f, exclusive); !ok {
		f.Close()
	}
	if err != nil {
		err = fmt.Errorf("lock the object store: %w", err)
	}
	return func() { _ = letGo(f) }, ok, err
}

// The locks of a store.
const (
	lockRemove  = "lock"    // shared: to rely on a pack; exclusive: to remove packs
	lockCollect = "collect" // one at a time collects or merges
	lockRefs    = "refs"    // one at a time changes refs
)

// busy says what somebody is doing who holds a lock.
var busy = map[string]string{
	lockRemove:  "another process holds or removes packs",
	lockCollect: "another process collects garbage",
	lockRefs:    "another process changes a ref",
}

// rely holds a pack that is there. When nothing is to be held it does nothing. A pack
// that is not there any more is fs.ErrNotExist.
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

// claim holds a pack that is about to get its name.
func (s *Store) claim(ctx context.Context, name string) error {
	s.hold.Lock()
	defer s.hold.Unlock()
	return s.note(ctx, name, false)
}

// unclaim says that a pack did not get its name.
func (s *Store) unclaim(name string) {
	s.hold.Lock()
	defer s.hold.Unlock()
	if s.held.names[name] {
		// Without the line a collection removes less, until the lease ends.
		if addLine(s.held.lease, gonePrefix+name) == nil {
			delete(s.held.names, name)
		}
	}
}

// note writes a line in the lease, and makes the lease first. "" only makes it.
func (s *Store) note(ctx context.Context, name string, mustBe bool) error {
	if s.held.names[name] || name == "" && s.held.lease != nil {
		return nil
	}
	free, err := s.lock(ctx, lockRemove, false)
	if err != nil {
		return err
	}
	defer free()
	if mustBe && name != looseName {
		for _, end := range []string{".pack", ".idx"} {
			if _, err := os.Stat(filepath.Join(s.packDir(), name+end)); err != nil {
				return err
			}
		}
	}
	if s.held.lease == nil {
		if err := s.lend(); err != nil {
			return fmt.Errorf("hold objects of the store: %w", err)
		}
	}
	if name == "" {
		return nil
	}
	if err := addLine(s.held.lease, name); err != nil {
		return fmt.Errorf("hold objects of the store: %w", err)
	}
	s.held.names[name] = true
	return nil
}

// addLine adds a whole line or none.
func addLine(f *os.File, line string) error {
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if _, err = f.WriteString(line + "\n"); err != nil {
		return errors.Join(err, f.Truncate(fi.Size()))
	}
	return nil
}

// lend makes this Store's lease. The caller holds the lock that keeps others from
// taking it for a dead one before it is locked.
func (s *Store) lend() error {
	name := s.path("roost", "leases", fmt.Sprintf("%d-%016x", os.Getpid(), rand.Uint64()))
	f, err := os.OpenFile(name, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	ok, err := tryLock(f, true)
	for end := time.Now().Add(patience); err == nil && !ok; ok, err = tryLock(f, true) {
		if time.Now().After(end) { // for a moment somebody may ask whether it is locked
			err = fmt.Errorf("%s is new, and somebody else holds its lock", name)
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err != nil {
		f.Close()
		_ = os.Remove(name)
		return err
	}
	s.held.lease, s.held.names = f, map[string]bool{}
	return nil
}

// temp is where a pack of this Store is written before it has its name. Its name
// begins with that of the lease, so that one whose process died is known.
func (s *Store) temp() (*os.File, error) {
	s.hold.Lock()
	defer s.hold.Unlock()
	if s.held.lease == nil {
		return nil, errors.New("the object store is closed")
	}
	if err := s.fault("create"); err != nil {
		return nil, err
	}
	return os.CreateTemp(s.path("roost", "tmp"), filepath.Base(s.held.lease.Name())+"-*")
}

// Keep makes Settle do nothing until release is called, and has what Has finds held
// from now on: for who works long on what no ref reaches yet.
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

// Settle says that refs reach everything of this Store's that is still wanted: nothing
// is held any more. While a Keep or a Batch is open it does nothing.
func (s *Store) Settle() {
	s.hold.Lock()
	defer s.hold.Unlock()
	if s.held.keeps == 0 && s.held.batches == 0 {
		s.drop()
	}
}

// Close lets go of what is held. Only reading is possible after it.
func (s *Store) Close() error {
	s.hold.Lock()
	defer s.hold.Unlock()
	s.drop()
	return nil
}

func (s *Store) drop() {
	if f := s.held.lease; f != nil {
		s.held.lease, s.held.names = nil, nil
		_ = letGo(f)
		_ = os.Remove(f.Name()) // who locks a lease only asks whether it is locked
	}
}

// lease is a lease that counts.
type lease struct {
	name  string
	packs []string
}

// lost reports whether a lease names a pack that is not there.
func lost(list []lease, packs map[string]*pack) bool {
	for _, l := range list {
		for _, name := range l.packs {
			if name != looseName && name[0] != gonePrefix[0] && packs[name] == nil && !slices.Contains(l.packs, gonePrefix+name) {
				return true
			}
		}
	}
	return false
}

// leases lists what all Stores rely on. When clean is set, with the lock held, leases
// that nobody holds are removed, and the files of theirs that never got a name.
func (s *Store) leases(clean bool) (list []lease, err error) {
	files, err := readDir(s.path("roost", "leases"))
	if err != nil {
		return nil, fmt.Errorf("look who holds objects: %w", err)
	}
	for _, d := range files {
		path := s.path("roost", "leases", d.Name())
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look who holds objects: %w", err)
		}
		free, err := tryLock(f, false)
		_ = letGo(f)
		if err != nil {
			return nil, fmt.Errorf("look who holds objects: %w", err)
		}
		if free {
			if clean {
				_ = os.Remove(path)
			}
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("look who holds objects: %w", err)
		}
		list = append(list, lease{d.Name(), strings.Fields(string(data))})
	}
	if !clean {
		return list, nil
	}
	files, err = readDir(s.path("roost", "tmp"))
	for _, d := range files {
		if !slices.ContainsFunc(list, func(l lease) bool { return strings.HasPrefix(d.Name(), l.name+"-") }) {
			_ = os.Remove(s.path("roost", "tmp", d.Name()))
		}
	}
	return list, err
}
