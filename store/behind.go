package store

import (
	"context"
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/store/projection"
)

// Behind are the tasks whose Roo files show less than their journal holds: the process that would have written them was
// killed, or the disk refused. Owning such a task and closing it writes them. Behind leaves out tasks that a process
// owns, and damaged ones, which wait for a user's decision.
func (s *Store) Behind(ctx context.Context) ([]Ref, error) {
	refs, _, err := s.refs(ctx)
	if err != nil {
		return nil, err
	}
	var out []Ref
	for _, ref := range refs {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if s.behind(ctx, ref) {
			out = append(out, ref)
		}
	}
	return out, nil
}

func (s *Store) behind(ctx context.Context, ref Ref) bool {
	log, err := os.Lstat(filepath.Join(ref.Log, journalName))
	if err != nil || !exists(ref.Log, "journal.lock") || !exists(ref.Dir, "") { // without a lock file no process owned it here
		return false
	}
	written := projection.Read(ref.Log)
	mark, err := os.Lstat(filepath.Join(ref.Log, projection.Name))
	if err == nil && len(written.Writing) == 0 && !log.ModTime().After(mark.ModTime()) {
		return false // the record is written after the last commit
	}
	if _, held := filelog.Holder(ref.Log); held {
		return false
	}
	if head := HeadOf(ctx, ref.Log); head == 0 || head <= written.Seq {
		return false
	}
	v, err := s.read(ctx, ref, false)
	if err != nil {
		return false // opening the task reports why
	}
	whole := len(v.State.Problems) == 0 && !v.unborn
	return v.Close() == nil && whole
}
