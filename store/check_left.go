package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/roofmt"
)

// leftAge is how long a half-written file of ours must have stood still to be taken
// for left, where no lock says that its writer is gone.
const leftAge = time.Minute

// leftovers is what interrupted work left in a task's folders. log is nil when the
// task has no journal.
func (s *Store) leftovers(ctx context.Context, ref Ref, log journal.Reader) []Finding {
	var out []Finding
	left := func(path, problem, keeps string, remove bool) {
		f := ref.finding(path, problem, keeps, "").of(leftover)
		if remove {
			f.remove = path
		}
		out = append(out, f)
	}
	for _, dir := range []string{ref.Dir, filepath.Join(ref.Dir, "command-output")} {
		list, err := roofmt.Leftovers(dir, time.Now())
		if err != nil {
			continue // a folder that cannot be read is told of where it is read
		}
		for _, l := range list {
			keeps := "nothing needs it"
			if !l.Ours {
				keeps = "it stays: it may hold messages"
			}
			if strings.HasSuffix(l.Name, ".json.lock") {
				keeps = "the next write removes it"
			}
			left(filepath.Join(dir, l.Name), l.What, keeps, l.Ours)
		}
	}
	if _, held := filelog.Holder(ref.Log); held || log == nil {
		return out
	}
	for _, dir := range []string{ref.Log, filepath.Join(ref.Log, "blobs")} {
		for _, e := range old(dir, leftAge) {
			name := e.Name()
			if dir == ref.Log && (strings.HasPrefix(name, markTemp) || strings.HasPrefix(name, "journal.idx.tmp")) || dir != ref.Log && strings.HasPrefix(name, "tmp-") {
				left(filepath.Join(dir, name), "half written by a process that is gone", "no commit names it", true)
			}
		}
	}
	unnamed, bytes, err := unnamedBlobs(ctx, ref.Log, log)
	switch {
	case err != nil:
		out = append(out, ref.finding(filepath.Join(ref.Log, "blobs"), err.Error(), "", ""))
	case len(unnamed) > 0:
		left(unnamed[0], fmt.Sprintf("%d payloads of %d bytes in all are named by no commit; this is the first", len(unnamed), bytes), "they stay: what was written is not destroyed", false)
	}
	return out
}

// old lists the files and folders that have stood still for a while.
func old(dir string, age time.Duration) []fs.DirEntry {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		info, err := e.Info()
		return err != nil || time.Since(info.ModTime()) < age
	})
}

// unnamedBlobs are the payloads that no commit names, and how many bytes they take: a
// kill between a payload and its commit leaves such.
func unnamedBlobs(ctx context.Context, dir string, log journal.Reader) (paths []string, size int64, err error) {
	there := map[journal.Hash]fs.DirEntry{}
	groups, err := os.ReadDir(filepath.Join(dir, "blobs"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	for _, g := range groups {
		if !g.IsDir() {
			continue
		}
		files, err := os.ReadDir(filepath.Join(dir, "blobs", g.Name()))
		if err != nil {
			return nil, 0, err
		}
		for _, f := range files {
			if h := journal.Hash(f.Name()); h.Valid() && f.Name()[:2] == g.Name() {
				there[h] = f
			}
		}
	}
	for c, err := range log.Read(ctx, 1) {
		var lost *journal.DamageError
		switch {
		case errors.As(err, &lost):
			return nil, 0, nil // what the lost commit named nobody can tell
		case err != nil:
			return nil, 0, err
		}
		for _, h := range c.Blobs {
			delete(there, h)
		}
	}
	for h, f := range there {
		if info, err := f.Info(); err == nil && time.Since(info.ModTime()) > leftAge {
			paths = append(paths, filepath.Join(dir, blobFile(h)))
			size += info.Size()
		}
	}
	slices.Sort(paths)
	return paths, size, nil
}

// sweep removes the leftovers that may be, and gives what stays and what went.
func sweep(found []Finding) (stays, gone []Finding) {
	for _, f := range found {
		if f.remove == "" {
			stays = append(stays, f)
			continue
		}
		if err := remove(f.remove); err != nil {
			f.Recovered = "it could not be removed: " + err.Error()
			stays = append(stays, f)
			continue
		}
		f.Recovered = "removed"
		gone = append(gone, f)
	}
	return stays, gone
}

// remove removes one leftover. Those of a writer of Roo's files are judged once more
// under its lock.
func remove(path string) error {
	dir, name := filepath.Split(path)
	if strings.HasPrefix(name, ".roost-tmp_") || strings.HasPrefix(name, ".roost-lock_") || strings.HasSuffix(name, ".json.lock") {
		if err := roofmt.Sweep(context.Background(), dir); err != nil {
			return err
		}
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return errors.New("it is in use again")
	}
	return os.RemoveAll(path)
}
