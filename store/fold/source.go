package fold

import (
	"context"
	"fmt"
	"iter"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// Source is what a state reads payloads and older commits from: a journal, a folder of another tool, or both while a
// reader folds in a foreign change that is not taken in yet. It implements task.Source.
type Source struct {
	ctx    context.Context //nolint:containedctx // folding is pure and has no context of its own
	log    journal.Reader
	folder *roofmt.Folder
}

// FromLog is a source that reads a journal. The end of ctx does not end it: a state lives longer than the call that
// opens it.
func FromLog(ctx context.Context, log journal.Reader) Source {
	return FromBoth(ctx, log, nil)
}

// FromBoth is a source that reads a journal and a folder; either may be nil.
func FromBoth(ctx context.Context, log journal.Reader, folder *roofmt.Folder) Source {
	return Source{ctx: context.WithoutCancel(ctx), log: log, folder: folder}
}

// Payloads lets a state that is folded from a journal load the payloads that its events name.
func Payloads(log journal.Reader) task.Blobs { return FromLog(context.Background(), log) }

// Range implements task.Blobs. Of a folder, the name of a file takes the place of a hash.
func (src Source) Range(name string, off, length int64) ([]byte, error) {
	h := journal.Hash(name)
	switch {
	case h.Valid() && src.log != nil:
		return blobRange(src.ctx, src.log, h, off, length)
	case src.folder != nil:
		return folderRange(src.folder, name, off, length)
	}
	return nil, fmt.Errorf("blob %q: not a blob's name", name)
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
	if length < 0 {
		length = blob.Size() - off
	}
	if off < 0 || length < 0 || off > blob.Size() || length > blob.Size()-off {
		return nil, fmt.Errorf("blob %.12s: bytes %d+%d are outside its %d", h, off, length, blob.Size())
	}
	data := make([]byte, length)
	if _, err := blob.ReadAt(data, off); err != nil {
		return nil, fmt.Errorf("blob %.12s: %w", h, err)
	}
	return data, nil
}

// folderRange reads the open file that the folder was read from, not the file that has that name by now.
func folderRange(folder *roofmt.Folder, name string, off, length int64) ([]byte, error) {
	for _, doc := range []*roofmt.Document{folder.UI, folder.API} {
		if doc.Source != name {
			continue
		}
		if length < 0 {
			length = doc.SourcePrint.Size - off
		}
		if off < 0 || length < 0 || off > doc.SourcePrint.Size || length > doc.SourcePrint.Size-off {
			return nil, fmt.Errorf("%s: bytes %d+%d are outside its %d", name, off, length, doc.SourcePrint.Size)
		}
		data := make([]byte, length)
		if _, err := doc.ReadAt(data, off); err != nil {
			return nil, err
		}
		return data, nil
	}
	return nil, fmt.Errorf("%s: not one of the folder's histories", name)
}
