package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/atomicfile"
	proc "github.com/roost-dev/roost/internal/process"
	"github.com/roost-dev/roost/internal/sleep"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/store/projection"
)

// logs keeps the journals of a root, each under the path of a folder (Ref.Log).
type logs interface {
	// has reports whether there is a journal, or was one. In doubt it returns true: opening the journal gives the
	// reason.
	has(ctx context.Context, path string) bool
	// taken reports whether a new journal cannot get this path.
	taken(ctx context.Context, path string) bool
	// names returns the last elements of the paths in a folder, without those that begin with a dot or an underscore;
	// unlisted returns those that begin with a prefix, which may be such names.
	names(ctx context.Context, dir string) ([]string, error)
	unlisted(ctx context.Context, dir, prefix string) ([]string, error)
	// open opens a journal for reading. A nil seal verifies nothing. Without a journal the error is
	// journal.ErrNotFound.
	open(ctx context.Context, path string, seal *journal.Seal) (journal.Stored, error)
	own(ctx context.Context, path string, o filelog.Options) (journal.Owner, error)
	// holder reports whether a process owns the journal now, and its record.
	holder(ctx context.Context, path string) (journal.OwnerInfo, bool)
	// begin makes path a journal that begins with the one at from, up to commit seq.
	begin(ctx context.Context, path, from string, seq uint64) error
	// restore makes path a journal that is stored like from. over is the head of the journal that is at path already,
	// and whose commits are the beginning of from; 0: there is none.
	restore(ctx context.Context, path string, over uint64, from journal.Stored) error
	// move moves a journal with all that is kept with it. The caller has made sure that no process can come to own
	// it.
	move(ctx context.Context, from, to string) error
	// remove removes it.
	remove(ctx context.Context, path string) error
}

// folders are the journals of a root in files. A folder's other files move with it.
type folders struct{}

func (folders) has(_ context.Context, path string) bool {
	return filelog.Exists(path) || projection.Read(path).Seq > 0
}

func (folders) taken(_ context.Context, path string) bool { return exists(path, "") }

func (folders) names(_ context.Context, dir string) ([]string, error) { return names(dir) }

func (folders) unlisted(_ context.Context, dir, prefix string) (list []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	return api.Some(entries, func(e os.DirEntry) (string, bool) { return e.Name(), strings.HasPrefix(e.Name(), prefix) }), nil
}

// open reads the watermark first: the commit that the watermark names was synced before, so a journal that ends
// earlier lacks commits. A reader that verifies judges by the journal's own files.
func (folders) open(_ context.Context, path string, seal *journal.Seal) (journal.Stored, error) {
	if seal != nil {
		return filelog.OpenKnowing(path, seal, 0)
	}
	return filelog.OpenKnowing(path, nil, projection.Read(path).Seq)
}

func (folders) holder(_ context.Context, path string) (journal.OwnerInfo, bool) {
	return filelog.Holder(path)
}

func (folders) begin(ctx context.Context, path, from string, seq uint64) error {
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	return filelog.Begin(ctx, path, from, seq)
}

func (folders) restore(ctx context.Context, path string, over uint64, from journal.Stored) error {
	if over > 0 {
		return filelog.Extend(ctx, path, over, from)
	}
	temp := filepath.Join(filepath.Dir(path), TempName(filepath.Base(path)))
	err := filelog.Restore(ctx, temp, from)
	if err == nil {
		err = atomicfile.Move(temp, path)
	}
	if err != nil {
		err = errors.Join(err, os.RemoveAll(temp))
	}
	return err
}

func (folders) move(_ context.Context, from, to string) error { return atomicfile.Move(from, to) }

func (folders) remove(ctx context.Context, path string) error {
	if root := filepath.Dir(filepath.Dir(path)); filelog.Shared(path) {
		tasks, err := fs.Glob(os.DirFS(root), "*/*")
		for _, task := range tasks {
			err = errors.Join(err, filelog.Separate(ctx, path, filepath.Join(root, task)))
		}
		if err != nil {
			return err
		}
	}
	return os.RemoveAll(path)
}

// holderWait bounds how long own waits for a lock whose holder is dead. On a busy machine, a child may need that long to
// reach its exec.
const holderWait = 10 * time.Second

// own locks and opens a journal for writing. A process that was killed while it started a command leaves a child that
// has the lock open until the command's exec: the holder is dead, and the lock is not free yet.
func (folders) own(ctx context.Context, path string, o filelog.Options) (journal.Owner, error) {
	o.Known = max(o.Known, projection.Read(path).Seq) // before the lock is taken: then it is not newer than the log
	for end := time.Now().Add(holderWait); ; {
		log, err := filelog.Own(ctx, path, o)
		var busy *journal.BusyError
		if err == nil || !errors.As(err, &busy) || !filelog.Here(busy.Holder) || proc.Alive(busy.Holder.PID) || time.Now().After(end) {
			return log, err
		}
		if !sleep.For(ctx, 20*time.Millisecond) {
			return nil, context.Cause(ctx)
		}
	}
}

// tempPrefix begins the name of a task's folder until it is whole. Lists skip such names.
const tempPrefix = ".fork-"

// TempName returns the name of a task's folder until it is whole. It ends with the time.
func TempName(id string) string {
	return tempPrefix + id + "-" + strconv.FormatInt(time.Now().UnixNano(), 10)
}

// RemoveOldTemps removes what killed processes left of tasks. A task that another process is making now was begun less
// than an hour ago.
func (s *Store) RemoveOldTemps(ctx context.Context) {
	names, _ := s.logs.unlisted(ctx, s.TasksDir(), tempPrefix) // the next call removes what this one does not see
	for _, name := range names {
		begun, _ := strconv.ParseInt(name[strings.LastIndexByte(name, '-')+1:], 10, 64) // 0: an earlier version made it
		if time.Since(time.Unix(0, begun)) > time.Hour {
			_ = s.logs.remove(ctx, filepath.Join(s.TasksDir(), name))
		}
	}
}

// HasJournal reports whether a task has a journal or had one. A journal that was deleted beside its lock file,
// index, payloads or watermark is damaged; it is never begun again.
func (s *Store) HasJournal(ctx context.Context, ref Ref) bool { return s.logs.has(ctx, ref.Log) }

// Taken reports whether a task of the root cannot be at a reference, because something is there.
func (s *Store) Taken(ctx context.Context, ref Ref) bool { return s.logs.taken(ctx, ref.Log) }

// MoveTask moves a task of the root. The caller holds its journal (LockJournal), or knows that no process comes to own it.
func (s *Store) MoveTask(ctx context.Context, from, to Ref) error {
	return s.logs.move(ctx, from.Log, to.Log)
}

// EnsureTrash makes the place of deleted tasks.
func (s *Store) EnsureTrash() error {
	if !s.Shared() {
		return s.EnsureDir(s.TrashDir(), "cannot be written")
	}
	return nil
}

// UnlistedTrash returns the tasks in the trash whose names begin with a prefix, and that no list shows.
func (s *Store) UnlistedTrash(ctx context.Context, prefix string) ([]Ref, error) {
	names, err := s.logs.unlisted(ctx, s.TrashDir(), prefix)
	return api.Each(names, s.TrashRef), err
}

// RemoveTask removes the bytes of a task.
func (s *Store) RemoveTask(ctx context.Context, ref Ref) error { return s.logs.remove(ctx, ref.Log) }

// BeginFork makes the journal of a new task that begins with another task's, up to a commit.
func (s *Store) BeginFork(ctx context.Context, to, from Ref, seq uint64) error {
	return s.logs.begin(ctx, to.Log, from.Log, seq)
}

// Restore makes the journal of a task of this store, or of its overlay, one that is stored like from. over is the
// head of the journal that is there already, and whose commits are the beginning of from; 0: there is none.
func (s *Store) Restore(ctx context.Context, ref Ref, over uint64, from journal.Stored) error {
	if err := s.Prepare(); err != nil {
		return err
	}
	if !s.Shared() {
		if err := s.EnsureDir(filepath.Dir(ref.Log), "cannot be written"); err != nil {
			return err
		}
	}
	if err := s.logs.restore(ctx, ref.Log, over, from); err != nil {
		return err
	}
	_ = s.Announce(ctx, ref) // if it fails, the task's next owner does it
	return nil
}

// Holder reports whether a process owns a task, and its record. It takes no lock that the process would notice, and
// creates nothing.
func (s *Store) Holder(ctx context.Context, ref Ref) (journal.OwnerInfo, bool) {
	return s.logs.holder(ctx, ref.Log)
}

// Held reports whether a process owns a task's journal now.
func (s *Store) Held(ctx context.Context, ref Ref) bool {
	_, held := s.Holder(ctx, ref)
	return held
}

// Shared reports whether the tasks are in a database that several servers share.
func (s *Store) Shared() bool { return s.opt.Shared != nil }

// sharedHome is the beginning of the paths of tasks in a database, the same on each server. It is no path of a file.
const sharedHome = "postgres:"

// home returns the folder below which paths of tasks lie. With a database it is never made: its paths name journals,
// and a root may hold tasks in files beside them.
func (s *Store) home() string {
	if s.Shared() {
		return sharedHome
	}
	return s.opt.Root
}
