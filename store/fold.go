package store

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// room is how many bytes of messages a reader keeps in memory; the rest is read
// again when it is asked for.
const room = 8 << 20

// ground is what a state stands on: a journal, a folder of another tool, or both
// while a foreign change is folded in that nobody has taken in yet.
type ground struct {
	ctx    context.Context //nolint:containedctx // folding is pure and has no context of its own
	log    journal.Reader
	folder *roofmt.Folder
}

// Range implements task.Blobs. In a folder a file's name stands for a hash.
func (g ground) Range(name string, off, length int64) ([]byte, error) {
	h := journal.Hash(name)
	switch {
	case h.Valid() && g.log != nil:
		return blobRange(g.ctx, g.log, h, off, length)
	case g.folder != nil:
		return folderRange(g.folder, name, off, length)
	}
	return nil, fmt.Errorf("blob %q: not a blob's name", name)
}

// Commits implements task.Source.
func (g ground) Commits(from uint64) iter.Seq2[journal.Commit, error] {
	if g.log == nil {
		return func(func(journal.Commit, error) bool) {}
	}
	return g.log.Read(g.ctx, from)
}

// Lines implements task.Lines.
func (g ground) Lines(from uint64) iter.Seq2[journal.Line, error] {
	if log, ok := g.log.(journal.LineReader); ok {
		return log.Lines(g.ctx, from)
	}
	return nil
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
	if length < 0 {
		length = blob.Size() - off
	}
	if off < 0 || length < 0 || off > blob.Size() || length > blob.Size()-off {
		return nil, fmt.Errorf("blob %.12s: bytes %d+%d lie outside its %d", h, off, length, blob.Size())
	}
	data := make([]byte, length)
	if _, err := blob.ReadAt(data, off); err != nil {
		return nil, fmt.Errorf("blob %.12s: %w", h, err)
	}
	return data, nil
}

// folderRange reads the file that the folder was read from, and not what lies
// under that name by now.
func folderRange(folder *roofmt.Folder, name string, off, length int64) ([]byte, error) {
	for _, doc := range []*roofmt.Document{folder.UI, folder.API} {
		if doc.Source != name {
			continue
		}
		if length < 0 {
			length = doc.SourcePrint.Size - off
		}
		if off < 0 || length < 0 || off > doc.SourcePrint.Size || length > doc.SourcePrint.Size-off {
			return nil, fmt.Errorf("%s: bytes %d+%d lie outside its %d", name, off, length, doc.SourcePrint.Size)
		}
		data := make([]byte, length)
		if _, err := doc.ReadAt(data, off); err != nil {
			return nil, err
		}
		return data, nil
	}
	return nil, fmt.Errorf("%s: not one of the folder's histories", name)
}

// Fold reads a whole journal into memory, for its owner.
func Fold(ctx context.Context, log journal.Reader) (*task.State, error) {
	s := task.New(ground{ctx: context.WithoutCancel(ctx), log: log})
	return s, foldInto(ctx, s, log, 1)
}

// foldLean gives the state of a log for a reader: from the snapshot if there is
// one, and with the newest messages in memory only.
func foldLean(ctx context.Context, log journal.Reader, whole bool) (*task.State, error) {
	src := ground{ctx: context.WithoutCancel(ctx), log: log}
	if !whole {
		if s, ok := restore(ctx, log, src); ok {
			return s, foldInto(ctx, s, log, s.Seq+1)
		}
	}
	s := task.New(nil).Lean(src, room)
	return s, foldInto(ctx, s, log, 1)
}

// FoldRuns gives the runs, the questions and the inputs of a log: see task.NewRuns.
func FoldRuns(ctx context.Context, log journal.Reader) (*task.State, error) {
	src := ground{ctx: context.WithoutCancel(ctx), log: log}
	if snap, err := log.Snapshot(ctx); err == nil {
		if s, err := task.RestoreRuns(snap.Data, src); err == nil && s.Seq == snap.Seq {
			return s, foldInto(ctx, s, log, s.Seq+1)
		}
	}
	s := task.NewRuns(src)
	return s, foldInto(ctx, s, log, 1)
}

// restore starts from the log's snapshot. One that cannot be used costs time, and
// is no error: it is derived.
func restore(ctx context.Context, log journal.Reader, src task.Source) (*task.State, bool) {
	snap, err := log.Snapshot(ctx)
	if err != nil {
		return nil, false
	}
	s, err := task.Restore(snap.Data, src, room)
	if err != nil || s.Seq != snap.Seq {
		return nil, false
	}
	return s, true
}

// foldInto folds the commits from a sequence on. Damaged ones are noted in the
// state, not returned.
func foldInto(ctx context.Context, s *task.State, log journal.Reader, from uint64) error {
	for c, err := range log.Read(ctx, from) {
		var lost *journal.DamageError
		switch {
		case errors.As(err, &lost):
			s.Lost(lost.Damage)
			continue
		case err != nil:
			return fmt.Errorf("read journal: %w", err)
		}
		// A commit that cannot be folded is noted in the state's problems.
		_ = s.Apply(c)
	}
	return nil
}
