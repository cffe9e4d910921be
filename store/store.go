// Package store opens, creates, adopts and lists tasks under Roost's own root and
// under the storages of other tools, and keeps Roo's JSON files behind each
// task's journal.
//
// Reading never writes. A task without a journal is read from its JSON files as
// if it had just been adopted: the same event is folded, in memory only. Owning a
// task takes its lock, adopts it if it has no journal yet, and takes in what
// another program changed.
//
// # Trust
//
// The standing of a task follows from the proof of its log (see journal). The event task.received separates what counts
// from what does not: it ends the run, the queue, questions, unused answers and open calls, and removes policy, address
// and limits; it adds no message. An import writes it into each copied journal before the task becomes visible, and the
// first commit of a fork has the same effect. Signed commits after it count again. Repairing, rebuilding, adopting and
// forking sign only what they write themselves. A reader that acts on a snapshot requires its MAC; a reader that shows a
// task accepts any snapshot.
//
// # Changes by several processes
//
// A server compares what a caller expects of a task (If-Match) before a change. The process that takes the task over
// compares it again with the lock held, before it writes anything (Expecting, filelog.Options.Meets). A change that
// commits under the name of a caller's key (Acting) is found again by that name. A note beside the log was rejected: a
// kill leaves the note without the change, or the change without the note.
//
// The files beside a journal prove how many commits it had: the record in journal.lock, journal.idx, the commit in
// projection.json, payloads. A copied or restored folder that lacks the end of its journal is damaged, and its next
// owner continues after the lost numbers.
package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/journal/postgres"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/feed"
	feedpostgres "github.com/roost-dev/roost/store/feed/postgres"
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
	AutoSources bool     // and the storages found on this machine
	Now         func() int64
	Program     string // the name of this program in lock files and commits

	// Rows reconstructs the user's history from the model's, for a task that is adopted and has no other. nil: it has none.
	Rows func(messages [][]byte) [][]byte

	// Catalog is used in place of a file in Cache. All stores of its tasks share it, and it must outlive this store.
	Catalog Catalog

	// FS is the file system that journals are written to; nil is the machine's. Tests set one that fails.
	FS filelog.FS

	// Shared keeps the tasks of several servers, in place of folders below the root; nil: folders. Then the store writes no
	// files of Roo's and leaves out other tools' storages.
	Shared *postgres.Journals
	Keys   *rootkey.Ring // keys of the group of servers that shares them
}

// Store is Roost's view of all tasks. It is safe for concurrent use.
type Store struct {
	opt     Options
	logs    logs
	feed    feed.Log
	others  atomic.Pointer[others]
	ring    *rootkey.Ring // of the root
	seals   *rootkey.Ring // the keys that sign and verify journals
	wait    intake.Waits
	rows    rowCache
	index   *projection.Index
	calmIn  time.Duration // how long a file must be unchanged before its times are trusted
	load    projection.Load
	pace    pace
	clock   func() time.Time       // compared with the times of files
	reached func() string          // the address of this process; nil: no process can reach it
	address atomic.Pointer[string] // the address in lock files
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
		logs:   folders{},
		ring:   rootkey.Open(o.State, o.Root),
		wait:   intake.DefaultWaits,
		calmIn: intake.ClockTick,
		clock:  time.Now,
		pace:   usualPace,
	}
	s.SetSources(o.Sources, o.AutoSources)
	s.seals = s.ring
	s.feed = feed.NewFiles(s.FeedDir(), o.Now, s.working)
	if o.Shared != nil {
		s.seals = o.Keys
		shared := &sharedLogs{Journals: o.Shared, home: s.home()}
		s.logs, s.feed = shared, feedpostgres.New(o.Shared, shared)
	}
	s.index = projection.NewIndex(s.TasksDir(), func() ([]string, error) { return names(s.TasksDir()) }, s.Now)
	return s, nil
}

// Database returns the database with the tasks that servers share; nil when the tasks are in folders.
func (s *Store) Database() *database.DB {
	if s.opt.Shared == nil {
		return nil
	}
	return s.opt.Shared.DB()
}

// Root is Roost's own root: the folder of everything durable.
func (s *Store) Root() string { return s.opt.Root }

// others are the storages of other tools.
type others struct {
	dirs []string // absolute
	auto bool     // also the storages that are found on this machine
}

// SetSources replaces the storages of other tools for all later reads; see Options.
func (s *Store) SetSources(dirs []string, auto bool) { s.others.Store(&others{dirs, auto}) }

// CacheDir returns the folder of derived files; "" when the store keeps none.
func (s *Store) CacheDir() string { return s.opt.Cache }

// Now returns the time in Unix milliseconds, by the clock that the store was opened with.
func (s *Store) Now() int64 { return s.opt.Now() }

// Program returns the name of this process in lock files and commits.
func (s *Store) Program() string { return s.opt.Program }

// Index is Roo's history index of the store's own root.
func (s *Store) Index() *projection.Index { return s.index }

// IndexTask puts a task of Roost's own root into its index.
func (s *Store) IndexTask(ctx context.Context, ref Ref) error {
	if !ref.Own || s.Shared() {
		return nil
	}
	return s.index.Put(ctx, ref.ID)
}

// TasksDir holds Roost's own task folders.
func (s *Store) TasksDir() string { return filepath.Join(s.home(), "tasks") }

// AdoptedDir holds the journals of the tasks that a source keeps in another tool's storage.
func (s *Store) AdoptedDir(source string) string {
	return filepath.Join(s.home(), "adopted", source)
}

// Prepare makes the root and checks that it can be written. Every change begins with it.
func (s *Store) Prepare() error {
	if s.Shared() {
		return nil
	}
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
	if strings.HasPrefix(dir, sharedHome) { // a relative path would be made in the folder that the process works in
		return fmt.Errorf("make %s: %w", dir, ErrNoFolder)
	}
	err := filelog.EnsureDir(cmp.Or(s.opt.FS, filelog.OS), dir)
	if err != nil && !errors.Is(err, journal.ErrNotSaved) {
		return &RootError{Path: s.opt.Root, Check: check, Err: err}
	}
	return err
}

// RootError: Roost's own root cannot be used. The store never uses another folder in its place.
type RootError struct {
	Path  string
	Check string // the check that failed
	Err   error
}

func (e *RootError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("root %s: %s: %v", e.Path, e.Check, e.Err)
	}
	return fmt.Sprintf("root %s: %s", e.Path, e.Check)
}

func (e *RootError) Unwrap() error { return e.Err }

// Once reports whether this is the first call for a name with this root, and records the call. It is for questions
// that Roost asks only once. It returns false when it cannot record the call. name is a file name.
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

// ReachedAt sets the function that returns the address at which other processes reach this one; "" is no address. The store
// calls f each time that it owns a task, and writes the address into the task's lock file, where another process finds it.
// Call ReachedAt before the store is used.
func (s *Store) ReachedAt(f func() string) { s.reached = f }

// owner is this process's record for lock files.
func (s *Store) owner() journal.OwnerInfo {
	o := journal.OwnerInfo{PID: os.Getpid(), Program: cmp.Or(s.opt.Program, "roost")}
	if s.reached != nil {
		o.Address = s.reached()
		s.address.Store(&o.Address)
	}
	return o
}

// Address returns the address of this process in lock files; "" while no lock file has one.
func (s *Store) Address() string {
	if at := s.address.Load(); at != nil {
		return *at
	}
	return ""
}

// Ref is one task in one place.
type Ref struct {
	ID     string
	Source string // "roost", or the source's name, e.g. "roo-code"
	Tool   string // roost, roo, cline, zoo, kilo
	Dir    string // the folder with the JSON files; for a subagent of Cline, its transcript
	Log    string // the folder with journal, index, lock and blobs; it may not exist yet
	Own    bool   // it is in Roost's own root
}

// Foreign reports whether another tool made the task and still owns its folder.
func (r Ref) Foreign() bool { return !r.Own }

// OwnSource is the name of Roost's own root among the sources.
const OwnSource = api.OwnSource

// OwnRef returns a task in Roost's own root.
func (s *Store) OwnRef(id string) Ref {
	dir := filepath.Join(s.TasksDir(), id)
	return Ref{ID: id, Source: OwnSource, Tool: "roost", Dir: dir, Log: dir, Own: true}
}

// ErrFolderName is wrapped by an error about a task whose folder name cannot become part of a path of ours.
var ErrFolderName = errors.New("its name cannot be a task id of Roost")

// CheckID returns an error that wraps ErrFolderName for a task with such a name.
func CheckID(r Ref) error {
	if !api.ValidTaskID(r.ID) {
		return fmt.Errorf("task folder %s: %w", r.Dir, ErrFolderName)
	}
	return nil
}

// tags reports whether adopting the task tags its history (see intake.Target): a task that stays in another tool's folder
// keeps that tool's own bookkeeping.
func (r Ref) tags(folder *roofmt.Folder) bool { return r.Own || !staysInPlace(r, folder) }

// staysInPlace reports whether a foreign task is continued in its own folder: where Roost's writer is proven for the
// tool, and would not drop messages that Roost left out when it read the folder.
func staysInPlace(ref Ref, folder *roofmt.Folder) bool {
	return continuedInPlace(ref.toolOf(folder)) && !folder.Abridged
}

// StaysInPlace reports whether the task is continued in its own folder, which is another tool's.
func (v *View) StaysInPlace() bool {
	return v.Ref.Foreign() && (v.Log != nil || !projection.Linked(v.Ref.Dir) && staysInPlace(v.Ref, v.Folder))
}

// continuedInPlace reports whether Roost's writer is proven for a tool's folders.
func continuedInPlace(tool string) bool { return tool != "cline" && tool != "kilo" }

// toolOf returns the tool that made the task in a folder.
func (r Ref) toolOf(folder *roofmt.Folder) string {
	if r.Tool != "" && !r.Own {
		return r.Tool
	}
	return string(folder.Tool)
}

// ErrNotFound: no task has that reference.
var ErrNotFound = errors.New("no such task")

// names lists the entries of a folder; a folder that does not exist has none.
func names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	var out []string
	for _, e := range entries {
		name := e.Name()
		if name[0] == '_' || name[0] == '.' {
			continue
		}
		isDir := e.IsDir()
		if e.Type()&os.ModeSymlink != 0 { // a stat for each entry would take longer than all else
			info, err := os.Stat(filepath.Join(dir, name))
			isDir = err == nil && info.IsDir()
		}
		if isDir {
			out = append(out, name)
		}
	}
	return out, nil
}

// exists reports whether a folder has an entry of a name; with the name "", whether the folder exists.
func exists(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

// ErrLinked: the task folder leads out of its storage. Roost reads it and does not write it.
var ErrLinked = projection.ErrLinked

// Within reports whether a path is a folder or below it, with all links resolved.
func Within(dir, path string) bool {
	rel, err := filepath.Rel(inputfile.Resolved(dir), inputfile.Resolved(path))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// Parallel calls f with each number below n, from at most goroutines goroutines, and waits. It ends early when ctx
// ends.
func Parallel(ctx context.Context, goroutines, n int, f func(int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(goroutines, n) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	all.Wait()
}
