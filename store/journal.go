package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/store/feed"
	"github.com/roost-dev/roost/store/fold"
	"github.com/roost-dev/roost/task"
)

// JournalName is the file of a task's journal.
const JournalName = "journal.jsonl"

// OpenJournal opens the journal of a task for reading; nothing verifies what it gives.
func (s *Store) OpenJournal(ctx context.Context, ref Ref) (journal.Stored, error) {
	return s.logs.open(ctx, ref.Log, nil)
}

// FoldJournal folds a task's journal; the state is nil when there is no journal. The messages of the state cannot be
// read.
func (s *Store) FoldJournal(ctx context.Context, ref Ref) (*task.State, error) {
	log, err := s.OpenJournal(ctx, ref)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer log.Close()
	return fold.Lean(ctx, log)
}

// HeadOf returns the newest commit of a task's journal; 0 when there is no journal or it cannot be read.
func (s *Store) HeadOf(ctx context.Context, ref Ref) uint64 {
	log, err := s.OpenJournal(ctx, ref)
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

// SavedCommit returns the newest commit that a journal is known to have had, also when its end is lost.
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

// LockJournal locks the existing journal of a task without taking the task over: no process can own the task until
// the journal is closed. known is the newest commit that the journal is known to have had; 0 = unknown. It fails with
// ErrMoved when the context expects another head; see Expecting.
func (s *Store) LockJournal(ctx context.Context, ref Ref, known uint64) (journal.Owner, error) {
	o := s.logOptions(ref)
	o.Existing, o.Known, o.Meets = true, known, expected(ctx, ref).meets
	return s.logs.own(ctx, ref.Log, o)
}

// logOptions returns the options of a task's journal for an owner that no process needs to reach.
func (s *Store) logOptions(ref Ref) filelog.Options {
	return filelog.Options{
		FS: s.opt.FS, Clock: s.opt.Now, By: s.opt.Program, Seal: s.seal(ref),
		Owner: journal.OwnerInfo{PID: os.Getpid(), Program: s.opt.Program},
	}
}

// OwnNewJournal owns the journal of a task that is not in its place yet. Its commits are sealed with the task's key.
func (s *Store) OwnNewJournal(ctx context.Context, ref, place Ref) (journal.Owner, error) {
	return s.logs.own(ctx, place.Log, s.logOptions(ref))
}

// Append commits an event to a journal that belongs to no open task.
func (s *Store) Append(ctx context.Context, log journal.Owner, e task.Event, blobs ...journal.Hash) error {
	raw, err := task.Encode(e)
	if err == nil {
		_, err = log.Append(ctx, journal.Draft{At: s.Now(), By: s.Program(), Blobs: blobs, Events: []journal.Event{raw}})
	}
	return err
}

// adoptedFrom returns the folder from which the task of a journal was adopted, and the tool that made it; "" when the
// first commits hold no adoption.
func (s *Store) adoptedFrom(ctx context.Context, ref Ref) (dir, tool string) {
	log, err := s.OpenJournal(ctx, ref)
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
func (s *Store) Follow(ctx context.Context, ref Ref) (journal.Reader, error) {
	log, err := s.OpenJournal(ctx, ref)
	return log, api.Failed(err, "follow task %s", ref.ID)
}

// Feed returns the order in which the commits of all tasks became durable.
func (s *Store) Feed() feed.Log { return s.feed }

// working reports whether a process owns a task of a feed now; in doubt, true.
func (s *Store) working(ctx context.Context, t feed.Task) bool {
	ref, ok := s.LogRef(t.Source, t.ID)
	return !ok || s.Held(ctx, ref)
}

// FeedDir returns the folder of a feed in files.
func (s *Store) FeedDir() string { return filepath.Join(s.opt.Root, "feed") }

// announcer announces in the feed what an owner syncs. When that fails, the next sync announces those commits too: the feed
// is derived, and no owner waits for it.
func (s *Store) announcer(ref Ref) func(epoch, head uint64, last bool) {
	var announced uint64
	return func(epoch, head uint64, last bool) {
		if head == announced && !last || head == 0 {
			return
		}
		from := announced + 1
		if announced == 0 {
			from = head // the commit that opened the epoch; readers have the earlier ones
		}
		l := feed.Line{Source: ref.Source, Task: ref.ID, Epoch: epoch, From: from, To: head, End: last}
		if s.feed.Append(context.Background(), l) == nil {
			announced = head
		}
	}
}

// seal returns the seal that signs and verifies a task's log.
func (s *Store) seal(ref Ref) *journal.Seal {
	if ref.Own {
		return s.Seal("tasks/" + ref.ID)
	}
	return s.Seal("adopted/" + ref.Source + "/" + ref.ID)
}

// Seal signs and verifies a log of this root, or other data that the root keeps under a name. When the keys cannot be read,
// the seal signs nothing and proves nothing: that is safe, and doctor reports it.
func (s *Store) Seal(log string) *journal.Seal {
	seal, err := s.seals.Seal(log)
	if err != nil {
		return &journal.Seal{Log: log}
	}
	return seal
}

// Verified is Follow for a reader that acts on the log's snapshot: it opens no snapshot that this root did not write.
func (s *Store) Verified(ctx context.Context, ref Ref) (journal.Reader, error) {
	log, err := s.logs.open(ctx, ref.Log, s.seal(ref))
	return log, api.Failed(err, "open the log of task %s", ref.ID)
}

// A caller that changes a task it has read wants the task to be as it read it. Another process may have changed the
// task since. So the heads are compared once the lock is held and before anything is written: a refused change leaves
// the task as it was.

// ErrMoved: the task changed since the caller read it.
var ErrMoved = errors.New("the task changed since it was read")

type expectKey struct{}

// expectation is the head that a caller expects a task's journal to have.
type expectation struct {
	log string

	mu   sync.Mutex
	seq  uint64
	over bool
}

// Expecting returns a context that allows to take a task over, delete or label it only while its journal ends with
// commit seq, 0 meaning that it has no journal; otherwise these fail with ErrMoved. Changes made in the context
// itself move the expected commit forward. The expectation holds until done is called.
func Expecting(ctx context.Context, ref Ref, seq uint64) (_ context.Context, done func()) {
	e := &expectation{log: ref.Log, seq: seq}
	return context.WithValue(ctx, expectKey{}, e), func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.over = true
	}
}

// expected returns the expectation that a context has of a task; nil when there is none.
func expected(ctx context.Context, ref Ref) *expectation {
	e, _ := ctx.Value(expectKey{}).(*expectation)
	if e == nil || e.log != ref.Log {
		return nil
	}
	return e
}

// MeetsExpectation returns an error that wraps ErrMoved when the journal does not end with the commit that the
// context expects. It is for a change that takes no lock on the journal.
func (s *Store) MeetsExpectation(ctx context.Context, ref Ref) error {
	if wants := expected(ctx, ref); wants != nil {
		return wants.meets(s.HeadOf(ctx, ref))
	}
	return nil
}

// MeetsExpectationAt is MeetsExpectation for a caller that has read the task up to a commit.
func MeetsExpectationAt(ctx context.Context, ref Ref, head uint64) error {
	return expected(ctx, ref).meets(head)
}

// meets returns an error that wraps ErrMoved when the journal's head is not the expected one. A nil expectation
// expects nothing.
func (e *expectation) meets(last uint64) error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over || e.seq == last {
		return nil
	}
	return fmt.Errorf("its newest commit is %d, not %d: %w", last, e.seq, ErrMoved)
}

// moved records that a change in the context moved the journal's head.
func (e *expectation) moved(last uint64) {
	if e != nil {
		e.mu.Lock()
		e.seq = last
		e.mu.Unlock()
	}
}
