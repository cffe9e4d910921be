// Package fold computes a task's state from its journal.
//
// A reader starts from the journal's snapshot when there is a usable one, and keeps only the newest messages in
// memory. Damaged commits, and commits that cannot be folded, are recorded in the state's problems; they are not
// errors.
package fold

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// MessageMemory bounds the bytes of messages that a reader keeps in memory. Older messages are read again on demand.
const MessageMemory = 8 << 20

// All folds a whole journal into memory, for its owner.
func All(ctx context.Context, log journal.Reader) (*task.State, error) {
	s := task.New(FromLog(ctx, log))
	return s, Into(ctx, s, log, 1)
}

// Lean returns the state of a journal for a reader: it starts from the snapshot if there is one.
func Lean(ctx context.Context, log journal.Reader) (*task.State, error) {
	if s, ok := restore(ctx, log); ok {
		return s, Into(ctx, s, log, s.Seq+1)
	}
	return EveryCommit(ctx, log)
}

// EveryCommit is Lean without the snapshot: it reads every commit, so it finds damage that a snapshot would hide.
func EveryCommit(ctx context.Context, log journal.Reader) (*task.State, error) {
	s := task.New(nil).Lean(FromLog(ctx, log), MessageMemory)
	return s, Into(ctx, s, log, 1)
}

// Runs folds the runs, the questions and the inputs of a journal, and nothing else: see task.NewRuns.
func Runs(ctx context.Context, log journal.Reader) (*task.State, error) {
	src := FromLog(ctx, log)
	if snap, err := log.Snapshot(ctx); err == nil {
		if s, err := task.RestoreRuns(snap.Data, src); err == nil && s.Seq == snap.Seq {
			return s, Into(ctx, s, log, s.Seq+1)
		}
	}
	s := task.NewRuns(src)
	return s, Into(ctx, s, log, 1)
}

// To returns the state of a journal after commit `to`, or at the journal's head when that comes first. Like the state
// of Lean, it can be folded further.
func To(ctx context.Context, log journal.Reader, to uint64) (*task.State, error) {
	s, ok := restore(ctx, log)
	if !ok || s.Seq > to {
		s = task.New(nil).Lean(FromLog(ctx, log), MessageMemory)
	}
	if s.Seq >= to {
		return s, nil
	}
	return s, between(ctx, s, log, s.Seq+1, to)
}

// Into folds the commits of a journal from a sequence on into a state.
func Into(ctx context.Context, s *task.State, log journal.Reader, from uint64) error {
	return between(ctx, s, log, from, math.MaxUint64)
}

func between(ctx context.Context, s *task.State, log journal.Reader, from, to uint64) error {
	for c, err := range log.Read(ctx, from) {
		var lost *journal.DamageError
		switch {
		case errors.As(err, &lost):
			if lost.Seq > to {
				return nil
			}
			s.Lost(lost.Damage)
			continue
		case err != nil:
			return fmt.Errorf("read journal: %w", err)
		case c.Seq > to:
			return nil
		}
		_ = s.Apply(c) // the state records a commit that it cannot fold
	}
	return nil
}

// Event folds in an event that the journal does not have, as its next commit.
func Event(s *task.State, at int64, e task.Event) error {
	raw, err := task.Encode(e)
	if err != nil {
		return err
	}
	return s.Apply(journal.Commit{Seq: s.Seq + 1, Epoch: s.Epoch, At: at, Events: []journal.Event{raw}})
}

// restore starts from the journal's snapshot. The snapshot is derived: an unusable one costs time and is no error.
func restore(ctx context.Context, log journal.Reader) (*task.State, bool) {
	snap, err := log.Snapshot(ctx)
	if err != nil {
		return nil, false
	}
	s, err := task.Restore(snap.Data, FromLog(ctx, log), MessageMemory)
	if err != nil || s.Seq != snap.Seq {
		return nil, false
	}
	return s, true
}

// Raws yields the bytes of messages in order, and loads some at a time: a history may be larger than memory. A
// message that cannot be read gives an error, and the next one follows. When the context ends, its error is the last.
func Raws(ctx context.Context, s *task.State, list []*task.Message) iter.Seq2[[]byte, error] {
	const (
		atOnce = 50
		room   = 4 << 20 // bytes
	)
	return func(yield func([]byte, error) bool) {
		for rest := list; len(rest) > 0; {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			n, size := 1, rest[0].Stored()
			for ; n < min(atOnce, len(rest)) && size+rest[n].Stored() <= room; n++ {
				size += rest[n].Stored()
			}
			all, together := s.Raws(rest[:n])
			for i := range n {
				var raw []byte
				err := together
				if err == nil {
					raw = all[i]
				} else if one, alone := s.Raws(rest[i : i+1]); alone == nil {
					raw, err = one[0], nil
				} else {
					err = alone
				}
				if !yield(raw, err) {
					return
				}
			}
			rest = rest[n:]
		}
	}
}

// Source is where a state reads payloads and older commits: a journal, a folder of another tool, or both while a
// reader folds in a foreign change that is not taken in yet. It implements task.Source.
type Source struct {
	ctx    context.Context //nolint:containedctx // folding is pure and has no context of its own
	log    journal.Reader
	folder *roofmt.Folder
}

// FromLog returns a source that reads a journal. The end of ctx does not end it: a state lives longer than the call
// that opens it.
func FromLog(ctx context.Context, log journal.Reader) Source {
	return FromBoth(ctx, log, nil)
}

// FromBoth returns a source that reads a journal and a folder; either may be nil.
func FromBoth(ctx context.Context, log journal.Reader, folder *roofmt.Folder) Source {
	return Source{ctx: context.WithoutCancel(ctx), log: log, folder: folder}
}

// Payloads lets a state that is folded from a journal load the payloads that its events name.
func Payloads(log journal.Reader) task.Blobs { return FromLog(context.Background(), log) }

// Range implements task.Blobs. For a folder, name is the name of a file and not a hash.
func (src Source) Range(name string, off, length int64) ([]byte, error) {
	h := journal.Hash(name)
	switch {
	case h.Valid() && src.log != nil:
		return blobRange(src.ctx, src.log, h, off, length)
	case src.folder != nil:
		return folderRange(src.folder, name, off, length)
	}
	return nil, fmt.Errorf("read blob %q: this is not the name of a blob", name)
}

// Commits implements task.Source.
func (src Source) Commits(from uint64) iter.Seq2[journal.Commit, error] {
	if src.log == nil {
		return func(func(journal.Commit, error) bool) {}
	}
	return src.log.Read(src.ctx, from)
}

func blobRange(ctx context.Context, log journal.Reader, h journal.Hash, off, length int64) ([]byte, error) {
	blob, err := log.Blob(ctx, h)
	if err != nil {
		return nil, fmt.Errorf("blob %.12s: %w", h, err)
	}
	defer blob.Close()
	if off == 0 && length < 0 {
		return blob.ReadAll()
	}
	return rangeOf(blob, fmt.Sprintf("blob %.12s", h), blob.Size(), off, length)
}

// folderRange reads from the open file that the folder was read from. The file that has that name now may be another
// one.
func folderRange(folder *roofmt.Folder, name string, off, length int64) ([]byte, error) {
	for _, doc := range []*roofmt.Document{folder.UI, folder.API} {
		if doc.Source == name {
			return rangeOf(doc, name, doc.SourcePrint.Size, off, length)
		}
	}
	return nil, fmt.Errorf("%s is not one of the folder's histories", name)
}

// rangeOf reads length bytes of r from off on; a negative length reads to the end. name and size are those of r.
func rangeOf(r io.ReaderAt, name string, size, off, length int64) ([]byte, error) {
	if length < 0 {
		length = size - off
	}
	if off < 0 || length < 0 || off > size || length > size-off {
		return nil, fmt.Errorf("%s: bytes %d+%d are outside its %d bytes", name, off, length, size)
	}
	data := make([]byte, length)
	_, err := r.ReadAt(data, off)
	return data, api.Failed(err, "%s", name)
}
