package filelog

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/journal"
)

// snapMax bounds the snapshot that is read into memory.
const snapMax = 1 << 30

// Snapshot implements journal.Reader.
func (r *reader) Snapshot(ctx context.Context) (journal.Snapshot, error) {
	if err := r.check(ctx); err != nil {
		return journal.Snapshot{}, err
	}
	limit, _, err := r.visible()
	if err != nil {
		return journal.Snapshot{}, err
	}
	s, err := r.snapshot(limit)
	if err != nil {
		return journal.Snapshot{}, fmt.Errorf("snapshot of %s: %v: %w", r.dir, err, journal.ErrNoSnapshot)
	}
	head, err := r.Head(ctx)
	if err != nil {
		return journal.Snapshot{}, err
	}
	if head == s.Seq && r.touched() {
		return journal.Snapshot{}, fmt.Errorf("snapshot of %s: the log was written to after it, and holds no commit more: "+
			"%w", r.dir, journal.ErrNoSnapshot)
	}
	return s, nil
}

// touched reports whether the log was written to after journal.idx. With no new commit behind it that is damage, or a
// user's editor: such a log is read whole. A kill leaves commits behind the snapshot, and is neither.
func (r *reader) touched() bool {
	log, err := r.fs.Lstat(filepath.Join(r.dir, logName))
	if err != nil {
		return false
	}
	idx, err := r.fs.Lstat(filepath.Join(r.dir, idxName))
	return err == nil && log.ModTime().After(idx.ModTime())
}

func (r *reader) snapshot(limit int64) (s journal.Snapshot, err error) {
	f, err := r.fs.OpenFile(filepath.Join(r.dir, idxName), os.O_RDONLY, 0)
	if err != nil {
		return s, err
	}
	defer f.Close()
	x, err := readIdx(f, r.seal)
	if err != nil {
		return s, err
	}
	if x.snapSeq == 0 || x.snapLen > snapMax || x.ino != r.ino || int64(x.headLen) > limit || r.seal != nil && !x.proven {
		return s, errNoIndex
	}
	if sum, err := headSum(r.log, int64(x.headLen)); err != nil || sum != x.headCRC {
		return s, errNoIndex
	}
	if sum, ok := r.commitSum(index{spots: x.spots}, x.snapSeq, limit); !ok || sum != x.snapLine {
		return s, errNoIndex
	}
	s = journal.Snapshot{Seq: x.snapSeq, Data: make([]byte, x.snapLen)}
	at := int64(idxHeader + idxSpot*len(x.spots))
	if _, err := io.ReadFull(io.NewSectionReader(f, at, x.snapLen), s.Data); err != nil {
		return journal.Snapshot{}, err
	}
	if sha256.Sum256(s.Data) != x.snapSum {
		return journal.Snapshot{}, errNoIndex
	}
	return s, nil
}

// commitSum returns the checksum of the surviving commit seq.
func (r *reader) commitSum(x index, seq uint64, limit int64) (sum uint32, ok bool) {
	sp, i := x.before(seq)
	if i >= 0 {
		if _, err := lineAt(r.log, sp.off, limit, sp.seq); err != nil {
			return 0, false
		}
	}
	c := cursorAt(sp, i, seq)
	err := r.walk(context.Background(), &c.off, &c.order, limit, func(it item) bool {
		if it.commit && it.seq == seq {
			sum, ok = lineSum(it.raw.text), true
		}
		return !it.commit || it.seq < seq
	})
	return sum, ok && err == nil
}
