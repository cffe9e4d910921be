package filelog

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/journal"
)

// Restore makes dir a journal that is stored as another one is: the same lines, in the same parts, with the payloads that
// they name. dir must be there and hold no journal. Everything is durable when it returns. After a kill or an error dir
// holds a part of it, and the caller removes it.
func Restore(ctx context.Context, dir string, from journal.Stored) error {
	bases, next := from.Bases(), uint64(1)
	for i := range len(bases) + 1 { // what a part begins with is in its folder base
		at, last := filepath.Join(dir, strings.Repeat(baseDir+"/", len(bases)-i)), uint64(math.MaxUint64)
		if i < len(bases) {
			last = bases[i].Seq
		}
		if err := restorePart(ctx, at, from, next, last); err != nil {
			return fmt.Errorf("restore journal %s: %w", dir, err)
		}
		if i < len(bases) {
			data, err := json.Marshal(bases[i])
			if err != nil {
				return err
			}
			if err := writeSynced(filepath.Join(at, baseName), data, filepath.Dir(at)); err != nil {
				return fmt.Errorf("restore journal %s: %w", dir, err)
			}
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
	w := bufio.NewWriterSize(f, chunk)
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
	if err := f.Sync(); err != nil {
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
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(f, sum), io.NewSectionReader(b, 0, b.Size())); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != string(h) {
		return fmt.Errorf("blob %s: %w", h, journal.ErrBlobDamaged)
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
