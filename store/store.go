package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/store/intake"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/store/rootkey"
)

// Options configure a store.
type Options struct {
	Root        string   // Roost's own root; absolute
	Cache       string   // derived data
	State       string   // the folder of the root's keys, outside of the root; "" = keys live as long as the process
	Sources     []string // other tools' storages, absolute
	AutoSources bool     // and those found on this machine
	Now         func() int64
	Program     string // who we are, for the lock's owner record

	// FS is what journals are written through; nil is the machine's. Tests give
	// one that fails.
	FS filelog.FS
}

// Store is Roost's view of all tasks. It is safe for concurrent use.
type Store struct {
	opt     Options
	ring    *rootkey.Ring
	wait    intake.Waits
	rows    rowCache
	index   *projection.Index
	calmIn  time.Duration // how long a file must be unchanged before its times are trusted
	pace    pace
	clock   func() time.Time       // what the times of files are compared with
	reached func() string          // nil: no process can reach this one
	address atomic.Pointer[string] // as lock files have it
}

// Open checks the options. It creates nothing: the first task creates the root.
func Open(o Options) (*Store, error) {
	if !filepath.IsAbs(o.Root) {
		return nil, &RootError{Path: o.Root, Check: "must be an absolute path"}
	}
	if info, err := os.Stat(o.Root); err == nil && !info.IsDir() {
		return nil, &RootError{Path: o.Root, Check: "is a file, not a folder"}
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, &RootError{Path: o.Root, Check: "cannot be opened", Err: err}
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixMilli() }
	}
	s := &Store{
		opt:    o,
		ring:   rootkey.Open(o.State, o.Root),
		wait:   intake.DefaultWaits,
		calmIn: intake.ClockTick,
		clock:  time.Now,
		pace:   usualPace,
	}
	s.index = projection.NewIndex(s.TasksDir(), func() ([]string, error) { return names(s.TasksDir()) }, s.Now)
	return s, nil
}

// Root is Roost's own root: the folder that everything durable is in.
func (s *Store) Root() string { return s.opt.Root }

// CacheDir holds derived data; "" when the store keeps none.
func (s *Store) CacheDir() string { return s.opt.Cache }

// Now is the time in Unix milliseconds, by the clock that the store was opened with.
func (s *Store) Now() int64 { return s.opt.Now() }

// Program is what the store calls this process in lock files and commits.
func (s *Store) Program() string { return s.opt.Program }

// TasksDir holds Roost's own task folders.
func (s *Store) TasksDir() string { return filepath.Join(s.opt.Root, "tasks") }

// AdoptedDir holds the journals of the tasks that a source keeps in another tool's storage.
func (s *Store) AdoptedDir(source string) string {
	return filepath.Join(s.opt.Root, "adopted", source)
}

// Prepare makes the root and checks that it can be written. Every change begins with it.
func (s *Store) Prepare() error {
	if err := s.EnsureDir(s.TasksDir(), "cannot be created"); err != nil {
		return err
	}
	probe, err := os.CreateTemp(s.opt.Root, ".probe-*")
	if err != nil {
		return &RootError{Path: s.opt.Root, Check: "cannot be written", Err: err}
	}
	probe.Close()
	_ = s.ring.Make() // without keys nothing is signed; Keys reports why
	return os.Remove(probe.Name())
}

// EnsureDir makes a folder below the root, with durable names. check is the Check of the RootError that
// it returns on failure.
func (s *Store) EnsureDir(dir, check string) error {
	fsys := s.opt.FS
	if fsys == nil {
		fsys = filelog.OS
	}
	err := filelog.EnsureDir(fsys, dir)
	if err != nil && !errors.Is(err, journal.ErrNotSaved) {
		return &RootError{Path: s.opt.Root, Check: check, Err: err}
	}
	return err
}

// Once reports whether this is the first call for a name with this root, and records the call: for a question that comes
// once. It is false when it cannot be recorded. name is a file name.
func (s *Store) Once(name string) bool {
	dir := filepath.Join(s.opt.Root, "asked")
	if err := s.EnsureDir(dir, "cannot be written"); err != nil {
		return false
	}
	// Of two processes only one creates it.
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// background removes the deadline from work that must be finished once it began.
func background(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }
