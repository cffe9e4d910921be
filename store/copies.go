package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/roost-dev/roost/roofmt"
)

// A task that is in two places with the same content is one task with a copy:
// a storage that was copied to another editor, or an import. Content is judged by
// the bytes of both histories. One that was continued in one of the places is two tasks.

// Groups sorts the places of one id into those with the same content, the best
// place of each first.
func (s *Store) Groups(ctx context.Context, places []Ref) [][]Ref {
	places = slices.Clone(places)
	slices.SortStableFunc(places, func(a, b Ref) int { return rank(a) - rank(b) })
	var out [][]Ref
next:
	for _, r := range places {
		for i, group := range out {
			if sameTask(ctx, group[0], r) {
				out[i] = append(group, r)
				continue next
			}
		}
		out = append(out, []Ref{r})
	}
	return out
}

// rank: what is ours goes first, then what we continued, then the order of the
// sources.
func rank(r Ref) int {
	switch {
	case r.Own:
		return 0
	case HasJournal(r.Log):
		return 1
	}
	return 2
}

// sameTask reports whether two folders hold the same histories. Two that were both
// continued here have journals of their own and are never one. What cannot be read is not
// the same as anything.
func sameTask(ctx context.Context, a, b Ref) bool {
	if rank(a) < 2 && rank(b) < 2 && HasJournal(a.Log) && HasJournal(b.Log) {
		return false
	}
	for _, name := range HistoryNames(a.ID) {
		if sizeOf(historyFile(a, name)) != sizeOf(historyFile(b, name)) {
			return false
		}
	}
	one, err := contentOf(ctx, a)
	if err != nil || one == noContent { // two empty folders have nothing in common
		return false
	}
	other, err := contentOf(ctx, b)
	return err == nil && one == other
}

// sizeOf is the size of a plain file in bytes; -1 when there is none.
func sizeOf(path string) int64 {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return -1
	}
	return info.Size()
}

// historyFile is where a file of a task is, or would be. A subagent has but one.
func historyFile(r Ref, name string) string {
	if roofmt.FolderOf(r.Dir) == r.Dir {
		return filepath.Join(r.Dir, name)
	}
	if name == roofmt.TranscriptName(r.ID) {
		return r.Dir
	}
	return r.Dir + ".absent"
}

// noContent is the digest of histories without a byte: two of them have nothing in
// common.
var noContent = [16]byte{1}

// contentOf is a digest of what sameTask compares.
func contentOf(ctx context.Context, ref Ref) (out [16]byte, err error) {
	h, bytes := sha256.New(), int64(0)
	for _, name := range HistoryNames(ref.ID) {
		path := historyFile(ref, name)
		info, err := os.Lstat(path)
		if os.IsNotExist(err) {
			h.Write([]byte{0})
			continue
		}
		if err == nil && !info.Mode().IsRegular() {
			err = &os.PathError{Op: "read", Path: path, Err: os.ErrInvalid}
		}
		if err != nil {
			return out, err
		}
		n, err := hashFile(ctx, h, path, info.Size())
		if err != nil {
			return out, err
		}
		bytes += n
	}
	if bytes == 0 {
		return noContent, nil
	}
	copy(out[:], h.Sum(nil))
	return out, nil
}

// hashFile adds a file, its length first, which must be what it was a moment ago.
func hashFile(ctx context.Context, h hash.Hash, path string, size int64) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	h.Write(binary.AppendVarint([]byte{1}, size))
	n, err := io.Copy(h, roofmt.ContextReader(ctx, f))
	if err != nil {
		return n, err
	}
	if n != size {
		return n, fmt.Errorf("read %s: it changed", path)
	}
	return n, nil
}
