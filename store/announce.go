package store

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/store/feed"
)

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
	for c, err := range log.ReadBackward(ctx, 0) {
		var lost *journal.DamageError
		if errors.As(err, &lost) {
			continue
		}
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
		for c, err := range log.Read(ctx, mid) {
			var lost *journal.DamageError
			if errors.As(err, &lost) {
				continue
			}
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
