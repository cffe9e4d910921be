package filelog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/internal/filelock"
	"github.com/roost-dev/roost/journal"
)

// Restore makes dir a journal that is stored like from: with the same lines, in the same parts, and the payloads that
// they name. dir must exist and hold no journal. Everything is durable when it returns. After a kill or an error dir
// holds a part of the journal, and the caller removes it.
func Restore(ctx context.Context, dir string, from journal.Stored) error {
	bases, next := from.Bases(), uint64(1)
	for i := range len(bases) + 1 { // what a part begins with is in its folder base
		at, last := filepath.Join(dir, strings.Repeat(baseDir+"/", len(bases)-i)), uint64(math.MaxUint64)
		if i < len(bases) {
			last = bases[i].Seq
		}
		err := restorePart(ctx, at, from, next, last)
		if err == nil && i < len(bases) {
			err = nameBase(filepath.Dir(at), bases[i])
		}
		if err != nil {
			return fmt.Errorf("restore journal %s: %w", dir, err)
		}
		next = last + 1
	}
	return nil
}

// restorePart writes the commits [next, last] and their payloads.
func restorePart(ctx context.Context, dir string, from journal.Stored, next, last uint64) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, logName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return copyLines(ctx, f, dir, from, next, last)
}

// copyLines appends the commits [next, last] to a log, and stores their payloads in its folder.
func copyLines(ctx context.Context, log *os.File, dir string, from journal.Stored, next, last uint64) error {
	w := bufio.NewWriterSize(log, chunk)
	for l, err := range from.Lines(ctx, next) {
		if err != nil {
			return err
		}
		if l.Seq > last {
			break
		}
		if l.Seq != next {
			return fmt.Errorf("commit %d comes where commit %d should", l.Seq, next)
		}
		next++
		if _, err := w.Write(l.Text); err != nil {
			return err
		}
		named, err := l.Named()
		if err != nil {
			return err
		}
		for _, h := range named {
			if err := restoreBlob(ctx, dir, from, h); err != nil {
				return err
			}
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	failpoint.Hit("restore.copied")
	if err := log.Sync(); err != nil {
		return err
	}
	return atomicfile.SyncDir(dir)
}

func restoreBlob(ctx context.Context, dir string, from journal.Reader, h journal.Hash) (err error) {
	path, err := blobPath(dir, h)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil // an earlier line named it
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b, err := from.Blob(ctx, h)
	if err != nil {
		return err
	}
	defer b.Close()
	if err := journal.CopyBlob(f, b, h); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	for _, d := range []string{filepath.Dir(path), filepath.Dir(filepath.Dir(path))} {
		if err := atomicfile.SyncDir(d); err != nil {
			return err
		}
	}
	return nil
}

// Extend appends to a journal the commits that it lacks of from, which begins with the same commits. over is the
// journal's head, and no process may own it. A kill leaves the journal with some of the commits.
func Extend(ctx context.Context, dir string, over uint64, from journal.Stored) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("extend journal %s: %w", dir, err)
		}
	}()
	if list := from.Bases(); len(list) > 0 && list[len(list)-1].Seq >= over {
		return errors.New("it ends within the base of the other journal")
	}
	path := filepath.Join(dir, logName)
	before, err := endOf(ctx, dir, path)
	if err != nil {
		return err
	}
	lock, err := acquire(ctx, OS, dir, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, filelock.Release(lock)) }()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	switch info, err := f.Stat(); {
	case err != nil:
		return err
	case before.head != over || info.Size() != before.size:
		return fmt.Errorf("it ends with commit %d, not %d", before.head, over)
	}
	return copyLines(ctx, f, dir, from, over+1, math.MaxUint64)
}

// end is the place where a log ends.
type end struct {
	head uint64
	size int64
}

// endOf returns the place where the whole lines of a log end; an error when other bytes follow them.
func endOf(ctx context.Context, dir, path string) (e end, err error) {
	r, err := OpenReader(dir)
	if err != nil {
		return e, err
	}
	defer r.Close()
	if e.head, err = r.Head(ctx); err != nil {
		return e, err
	}
	f, err := os.Open(path)
	if err != nil {
		return e, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return e, err
	}
	e.size = info.Size()
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, e.size-1); err != nil || last[0] != '\n' {
		return e, errors.Join(errors.New("its last line is not finished: the task's next owner sets it aside"), err)
	}
	return e, nil
}
