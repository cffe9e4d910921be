package roofmt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/internal/filelock"
	"github.com/roost-dev/roost/internal/process"
	"github.com/roost-dev/roost/internal/sleep"
)

// Constants of Roo's lock (proper-lockfile 4): a lock directory with an mtime older than staleAfter has no holder; a
// holder refreshes it every refreshEvery; a taker tries again after each of backOff, then gives up.
const (
	staleAfter   = 31 * time.Second
	refreshEvery = 10 * time.Second
)

var backOff = [...]time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond,
	800 * time.Millisecond, 1000 * time.Millisecond}

// ErrLocked is wrapped when another program holds a lock for longer than Roost waits (about 2.5 s like Roo, or not at
// all).
var ErrLocked = errors.New("locked by another program")

// errBusy is one failed try.
var errBusy = errors.New("busy")

// owner is the record of one of Roost's locks. It is a file next to the lock, not in it: Roo frees a stale lock with
// rmdir, which fails on a folder with a file. The record holds the lock directory's mtime; no other program sets its
// nanoseconds, so a lock that Roo took later never looks like Roost's.
type owner struct {
	self
	MTime int64 `json:"mtime"`
}

// fileLock is one of Roo's locks, held on one file.
type fileLock struct {
	dir, record string
	mtime       int64
}

func ownerPath(file string) string {
	return filepath.Join(filepath.Dir(file), ourPrefix+"lock_"+filepath.Base(file))
}

// tryLock makes one attempt. The caller holds the kernel lock on the folder, so no other Roost on this machine runs
// between its steps.
func tryLock(file string, now time.Time) (*fileLock, error) {
	l := &fileLock{dir: file + ".lock", record: ownerPath(file)}
	if err := l.clear(now); err != nil {
		return nil, err
	}
	if err := l.write(now); err != nil {
		return nil, err
	}
	if err := os.Mkdir(l.dir, 0o700); err != nil {
		_ = os.Remove(l.record)
		if errors.Is(err, fs.ErrExist) {
			return nil, errBusy
		}
		return nil, err
	}
	if err := l.stamp(); err != nil {
		_ = os.Remove(l.dir)
		_ = os.Remove(l.record)
		return nil, err
	}
	return l, nil
}

// write stores the owner record for a lock whose mtime will be now.
func (l *fileLock) write(now time.Time) error {
	l.mtime = now.UnixNano()
	// Node sets whole milliseconds only: make sure that our time is none of those.
	if l.mtime%int64(time.Millisecond) == 0 {
		l.mtime++
	}
	b, err := json.Marshal(owner{me(), l.mtime})
	if err != nil {
		return err
	}
	return os.WriteFile(l.record, b, 0o600)
}

// stamp sets the time that binds the lock to its record, and reads it back: a coarse file system rounds it, and then
// the lock is not bound and can only go stale.
func (l *fileLock) stamp() error {
	t := time.Unix(0, l.mtime)
	if err := os.Chtimes(l.dir, t, t); err != nil {
		return err
	}
	info, err := os.Stat(l.dir)
	if err != nil {
		return err
	}
	l.mtime = info.ModTime().UnixNano()
	return nil
}

// clear removes a lock that no process holds: at once if one of Roost's dead processes left it, otherwise when it is
// stale.
func (l *fileLock) clear(now time.Time) error {
	info, err := os.Stat(l.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	mtime := info.ModTime()
	if now.Sub(mtime) <= staleAfter && !l.ownDead(mtime.UnixNano()) {
		return errBusy
	}
	// Check the time again just before: another program may have removed the lock, too, and taken a new one.
	if again, err := os.Stat(l.dir); err != nil || !again.ModTime().Equal(mtime) {
		return errBusy
	}
	if err := os.Remove(l.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a lock without a holder: %w", err)
	}
	return nil
}

func (l *fileLock) ownDead(mtime int64) bool {
	o, ok := recordOf(l.record)
	return ok && (o.MTime == mtime || unstamped(o.MTime, mtime)) && o.dead()
}

func recordOf(record string) (o owner, ok bool) {
	b, err := os.ReadFile(record)
	return o, err == nil && json.Unmarshal(b, &o) == nil
}

// unstamped reports whether a lock was made right after its record and never got its time, because Roost died between
// the two. Roo sets whole milliseconds at once, so a time with more digits is the kernel's, from Roost's mkdir.
func unstamped(recorded, mtime int64) bool {
	d := mtime - recorded
	return mtime%int64(time.Millisecond) != 0 && d > -int64(50*time.Millisecond) && d < int64(time.Second)
}

// leftByDead reports whether a lock folder belongs to a dead process of Roost. Only for those is it certain: a lock
// that another program left is recognized by its age, when a process takes it.
func leftByDead(lock string) bool {
	info, err := os.Stat(lock)
	if err != nil {
		return false
	}
	l := &fileLock{dir: lock, record: ownerPath(strings.TrimSuffix(lock, ".lock"))}
	return l.ownDead(info.ModTime().UnixNano())
}

// held reports whether the lock directory is still the one that this process made.
func (l *fileLock) held() bool {
	info, err := os.Stat(l.dir)
	return err == nil && info.ModTime().UnixNano() == l.mtime
}

// refresh gives the lock a new time, as a sign that its holder lives.
func (l *fileLock) refresh(now time.Time) error {
	if !l.held() {
		return fmt.Errorf("another program removed the lock %s", l.dir)
	}
	if err := l.write(now); err != nil {
		return err
	}
	return l.stamp()
}

// release gives up the lock, unless it no longer belongs to this process.
func (l *fileLock) release() error {
	var err error
	if l.held() {
		if err = os.Remove(l.dir); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if rerr := os.Remove(l.record); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	return err
}

// lockSet holds several of Roo's locks in one folder, and the kernel lock on the folder.
type lockSet struct {
	dir   *os.File
	locks []*fileLock
	taken time.Time
}

// lockAll takes the kernel lock on dir and then Roo's locks of the files, in the given order, which must be the same
// for every caller. It tries again after each time in wait. When one lock is busy, lockAll releases the earlier ones
// before it waits: holding them would only starve a live editor.
func lockAll(ctx context.Context, dir string, names []string, wait []time.Duration) (*lockSet, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	s := &lockSet{dir: d}
	for try := 0; ; try++ {
		busy, err := s.attempt(ctx, names)
		if err == nil && busy == "" {
			s.taken = time.Now()
			return s, nil
		}
		if err != nil {
			return nil, errors.Join(err, d.Close())
		}
		if try == len(wait) {
			return nil, errors.Join(fmt.Errorf("%s: %w; try again when it has finished", busy, ErrLocked), d.Close())
		}
		if !sleep.For(ctx, wait[try]) {
			return nil, errors.Join(ctx.Err(), d.Close())
		}
	}
}

// ownWait is the time that one Roost waits for another. Each holds the folder for milliseconds, so frequent tries are
// cheap; Roo's longer pauses would starve the writer that came last.
const ownWait = 10 * time.Second

// dirLocks reports whether this system can lock a folder. Otherwise only Roo's own locks keep writers apart.
const dirLocks = filelock.Supported && runtime.GOOS != "windows"

// waitDir waits for the kernel lock on an open folder. That lock needs no file of its own and ends with the process.
func waitDir(ctx context.Context, dir *os.File) error {
	if !dirLocks {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, ownWait)
	defer cancel()
	err := filelock.Wait(limited, dir, filelock.Exclusive, 2*time.Millisecond)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the folder: %w", ErrLocked)
	}
	return fmt.Errorf("locking the folder: %w", err)
}

func unlockDir(dir *os.File) error {
	if !dirLocks {
		return nil
	}
	return filelock.Unlock(dir)
}

// attempt tries once to take all locks, and releases those it got when one is busy.
func (s *lockSet) attempt(ctx context.Context, names []string) (busy string, err error) {
	if err := waitDir(ctx, s.dir); err != nil {
		return "", err
	}
	for _, name := range names {
		l, err := tryLock(filepath.Join(s.dir.Name(), name), time.Now())
		if err == nil {
			s.locks = append(s.locks, l)
			continue
		}
		err = errors.Join(s.drop(), err)
		if errors.Is(err, errBusy) {
			return name, nil
		}
		return "", fmt.Errorf("locking %s: %w", name, err)
	}
	return "", nil
}

// drop releases Roo's locks, last first, and then the kernel lock.
func (s *lockSet) drop() error {
	var err error
	for _, l := range slices.Backward(s.locks) {
		err = errors.Join(err, l.release())
	}
	s.locks = nil
	return errors.Join(err, unlockDir(s.dir))
}

// keep refreshes the locks when it is time, and fails when one was taken away.
func (s *lockSet) keep() error {
	now := time.Now()
	if now.Sub(s.taken) < refreshEvery {
		return nil
	}
	for _, l := range s.locks {
		if err := l.refresh(now); err != nil {
			return err
		}
	}
	s.taken = now
	return nil
}

func (s *lockSet) release() error { return errors.Join(s.drop(), s.dir.Close()) }

// self identifies this process among all that ever ran, since process ids are reused.
type self struct {
	Domain string `json:"domain"` // boot, machine and pid namespace: pid and start are comparable only within it
	PID    int    `json:"pid"`
	Start  string `json:"start"` // start time, see process.Start; "0" where the system does not report it
}

var me = sync.OnceValue(func() self {
	host, _ := os.Hostname()
	sum := sha256.Sum256([]byte(process.Boot() + "\x00" + host + "\x00" + process.Namespace()))
	return self{hex.EncodeToString(sum[:6]), os.Getpid(), startTime(os.Getpid())}
})

// startTime returns the start time of a process in the form of self.
func startTime(pid int) string { return strconv.FormatInt(process.Start(pid), 10) }

// dead reports whether the process has certainly ended. It is false for a process of another machine or container.
func (s self) dead() bool {
	if s.Domain != me().Domain || s.PID <= 0 {
		return false
	}
	if s.PID == me().PID {
		return s.before(me().Start)
	}
	return !process.Alive(s.PID) || s.before(startTime(s.PID))
}

// before reports whether s is an earlier process than the one that has its id now and began at start. It is false
// where the system does not report a start time, for example because the process belongs to another user.
func (s self) before(start string) bool { return s.Start != start && s.Start != "0" && start != "0" }
