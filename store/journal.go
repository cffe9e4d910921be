package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/store/feed"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/task"
)

// HasJournal reports whether a task has a journal or had one. A journal that was deleted beside its lock file,
// index, payloads or watermark is damaged; it is never begun again.
func HasJournal(logDir string) bool {
	return filelog.Exists(logDir) || projection.Read(logDir).Seq > 0
}

// OpenJournal opens the journal in a folder for reading. It reads the watermark first: the commit that the
// watermark names was synced before, so a journal that ends earlier lacks commits.
func OpenJournal(logDir string) (journal.Reader, error) {
	return filelog.OpenKnowing(logDir, nil, projection.Read(logDir).Seq)
}

// FoldJournal is the state that the journal in a folder gives; nil when there is no journal. Its messages cannot
// be read.
func FoldJournal(ctx context.Context, logDir string) (*task.State, error) {
	log, err := OpenJournal(logDir)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer log.Close()
	return fold.Lean(ctx, log)
}

// HeadOf is the newest commit of the journal in a folder; 0 when there is no journal or it cannot be read.
func HeadOf(ctx context.Context, dir string) uint64 {
	log, err := OpenJournal(dir)
	if err != nil {
		return 0
	}
	defer log.Close()
	head, err := log.Head(ctx)
	if err != nil {
		return 0
	}
	return head
}

// SavedCommit is the newest commit that a journal is known to have had, also when its end is lost.
func SavedCommit(ctx context.Context, log journal.Reader) (uint64, error) {
	for c, err := range log.ReadBackward(ctx, 0) {
		if lost, ok := errors.AsType[*journal.DamageError](err); ok {
			return lost.Seq, nil
		}
		return c.Seq, err
	}
	var last uint64 // in a log without commits, only reading forward finds what is lost
	for _, err := range log.Read(ctx, 1) {
		var lost *journal.DamageError
		if !errors.As(err, &lost) {
			return last, err
		}
		last = lost.Seq
	}
	return last, nil
}

// LockJournal locks the existing journal of a task without taking the task over: no process can own the task
// until the journal is closed. known is a commit that the journal is known to have had, 0 when nothing is known.
// It fails with ErrMoved when the context expects another head; see Expecting.
func (s *Store) LockJournal(ctx context.Context, ref Ref, known uint64) (journal.Owner, error) {
	o := s.logOptions(ref)
	o.Existing, o.Known, o.Meets = true, known, expected(ctx, ref).check()
	return ownLog(ctx, ref.Log, o)
}

// logOptions are the options of a task's journal for an owner that no process needs to reach.
func (s *Store) logOptions(ref Ref) filelog.Options {
	return filelog.Options{
		FS: s.opt.FS, Clock: s.opt.Now, By: s.opt.Program, Seal: s.seal(ref),
		Owner: journal.OwnerInfo{PID: os.Getpid(), Program: s.opt.Program},
	}
}

// OwnNewJournal owns the journal in a folder that is about to become the folder of a new task. Its commits are sealed with
// the task's key.
func (s *Store) OwnNewJournal(ctx context.Context, ref Ref, dir string) (journal.Owner, error) {
	return filelog.Own(ctx, dir, s.logOptions(ref))
}

// adoptedFrom is the folder from which the task of a journal was adopted, and the tool that made it; "" when the first
// commits hold no adoption.
func adoptedFrom(ctx context.Context, logDir string) (dir, tool string) {
	log, err := OpenJournal(logDir)
	if err != nil {
		return "", ""
	}
	defer log.Close()
	tries := 0
	for c, err := range log.Read(ctx, 1) {
		if tries++; err != nil || tries > 16 { // epochs of killed owners may come first
			return "", ""
		}
		for _, raw := range c.Events {
			if e, err := task.Decode(raw); err == nil {
				if a, ok := e.(task.Adopted); ok {
					return a.Dir, a.Tool
				}
			}
		}
	}
	return "", ""
}

// empty reports whether a journal holds no commit yet. A journal whose first commit is damaged is not empty: the files
// are its projections.
func empty(s *task.State) bool {
	return s.ID == "" && len(s.Problems) == 0 && s.NextMessage() == 1
}

// Follow opens a task's log for reading on, beside its owner.
func (s *Store) Follow(ref Ref) (journal.Reader, error) {
	log, err := OpenJournal(ref.Log)
	if err != nil {
		return nil, fmt.Errorf("follow task %s: %w", ref.ID, err)
	}
	return log, nil
}

// FeedDir is the folder of the root's feed: the order in which the commits of all its tasks became durable.
func (s *Store) FeedDir() string { return filepath.Join(s.opt.Root, "feed") }

// announcer announces what an owner syncs in the feed. The next sync announces what one could not: the feed is derived,
// and no owner waits for it.
func (s *Store) announcer(ref Ref) func(epoch, head uint64, last bool) {
	w := feed.NewWriter(s.FeedDir(), s.opt.Now)
	var announced uint64
	return func(epoch, head uint64, last bool) {
		if head == announced && !last || head == 0 {
			return
		}
		from := announced + 1
		if announced == 0 {
			from = head // the commit that opened the epoch; readers have the earlier ones
		}
		if w.Append(feed.Line{Source: ref.Source, Task: ref.ID, Epoch: epoch, From: from, To: head, End: last}) == nil {
			announced = head
		}
	}
}

// Announce announces in the feed how far a task's journal goes, for an owner that could not: one that was killed, or
// one that wrote the journal before its folder was in place.
func (s *Store) Announce(ctx context.Context, ref Ref) error {
	held := s.Held(ref) // before its head is read: an owner that comes later announces more
	if IsOverlay(ref) && !held {
		if err := s.repairAfterKill(ctx); err != nil {
			return err
		}
	}
	log, err := s.Follow(ref)
	if err != nil {
		return err
	}
	defer log.Close()
	for c, err := range journal.Whole(log.ReadBackward(ctx, 0)) {
		if err != nil {
			return err
		}
		return feed.NewWriter(s.FeedDir(), s.opt.Now).Append(feed.Line{Source: ref.Source, Task: ref.ID, Epoch: c.Epoch, From: c.Seq, To: c.Seq, End: !held})
	}
	return nil
}

// Held reports whether a process owns a task's journal now.
func (s *Store) Held(ref Ref) bool {
	_, held := filelog.Holder(ref.Log)
	return held
}

// LogRef is a reference to a task's journal alone, by its names in a feed. It does not check that the journal exists.
func (s *Store) LogRef(source, id string) (Ref, bool) {
	switch {
	case source == overlaySource && id == overlayID:
		return s.overlayRef(), true
	case !api.ValidTaskID(id) || !api.ValidTaskID(source):
		return Ref{}, false
	case source == OwnSource:
		return s.OwnRef(id), true
	}
	dir := filepath.Join(s.AdoptedDir(source), id)
	return Ref{ID: id, Source: source, Dir: dir, Log: dir}, true
}

// FirstSince is the first commit of a journal that is not older than a time, in Unix milliseconds; head+1 when all are
// older.
func FirstSince(ctx context.Context, log journal.Reader, at int64) (uint64, error) {
	head, err := log.Head(ctx)
	if err != nil {
		return 0, err
	}
	low, high := uint64(1), head+1
	for low < high { // times rise, as far as clocks do
		mid := (low + high) / 2
		old := false
		for c, err := range journal.Whole(log.Read(ctx, mid)) {
			if err != nil {
				return 0, err
			}
			old = c.At < at
			break
		}
		if old {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low, nil
}
