package importer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/failpoint"
)

// readTree reads every file, for its digest.
func (im *importer) readTree(ctx context.Context, from fileSet) (taskTree, error) {
	tree, err := from.scan(ctx)
	for i := range tree.Files {
		if err != nil {
			break
		}
		tree.Files[i].Sum, tree.Files[i].Size, err = im.read(ctx, from, tree.Files[i].Path, io.Discard)
	}
	return tree, err
}

// A folder may change copyRetries times while it is copied. After each change, copying pauses for copyPause, so that
// the program at work in it can finish.
const (
	copyRetries = 5
	copyPause   = 100 * time.Millisecond
)

// copyTree copies a folder until a listing of it equals what was copied: an editor may be at work in it.
func (im *importer) copyTree(ctx context.Context, from fileSet, to *os.Root) (taskTree, error) {
	copied := map[string]treeFile{}
	for try := 0; ; try++ {
		tree, err := from.scan(ctx)
		if err != nil {
			return tree, err
		}
		changed, err := im.copyOnce(ctx, from, to, tree, copied)
		switch {
		case err != nil:
			return tree, err
		case !changed && try > 0:
			for i := range tree.Files {
				tree.Files[i].Sum = copied[tree.Files[i].Path].Sum
			}
			return tree, syncTree(to, tree)
		case try == copyRetries:
			return tree, errors.New("it keeps changing while it is copied; close the program that works in it and import again")
		case try > 0:
			select {
			case <-ctx.Done():
				return tree, ctx.Err()
			case <-time.After(copyPause):
			}
		}
	}
}

// copyOnce copies the files that are new or changed since they were copied, and removes the copies of files that are
// gone.
func (im *importer) copyOnce(
	ctx context.Context, from fileSet, to *os.Root, tree taskTree, copied map[string]treeFile,
) (changed bool, err error) {
	now := map[string]treeFile{}
	for _, f := range tree.Files {
		now[f.Path] = f
	}
	for path, was := range copied {
		if f, ok := now[path]; ok && f.unchanged(was) {
			continue
		}
		changed = true
		delete(copied, path)
		if err := to.Remove(path); err != nil {
			return changed, err
		}
	}
	for _, dir := range tree.Dirs {
		if err := to.MkdirAll(dir, 0o700); err != nil {
			return changed, err
		}
	}
	var fresh []treeFile
	for _, f := range tree.Files {
		if _, ok := copied[f.Path]; ok {
			continue
		}
		changed = true
		f.Sum, err = im.copyFile(ctx, from, to, f)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another program just removed it; the next listing lacks it
		}
		if err != nil {
			return changed, err
		}
		copied[f.Path] = f
		fresh = append(fresh, f)
		failpoint.Hit("import.file")
	}
	if err := syncFiles(to, fresh); err != nil {
		return changed, err
	}
	for _, f := range fresh {
		back, _, err := im.read(ctx, folderFiles{to}, f.Path, io.Discard)
		if err != nil {
			return changed, fmt.Errorf("read the copy back: %w", err)
		}
		if back != f.Sum {
			return changed, fmt.Errorf("the copy of %s differs from the original when read back (%x, not %x); check the disk", f.Path, back, f.Sum)
		}
	}
	return changed, nil
}

// copyFile copies one file. The copy is not synced yet.
func (im *importer) copyFile(ctx context.Context, from fileSet, to *os.Root, f treeFile) (sum [32]byte, err error) {
	out, err := to.OpenFile(f.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return sum, err
	}
	sum, n, err := im.read(ctx, from, f.Path, out)
	if err = errors.Join(err, out.Close()); err != nil {
		return sum, errors.Join(err, to.Remove(f.Path))
	}
	im.progress.Files++
	im.progress.Bytes += n
	im.reportProgress(ctx)
	// A message without a time gets the file's time. That is why copies keep it; it needs no sync.
	return sum, to.Chtimes(f.Path, f.MTime, f.MTime)
}

// maxSyncs bounds how many files are synced at a time. A disk handles many small syncs together nearly as fast as one.
const maxSyncs = 16

// syncFiles makes the contents of copies durable.
func syncFiles(to *os.Root, list []treeFile) error {
	next := make(chan string)
	errs := make([]error, min(maxSyncs, len(list)))
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			for path := range next {
				if errs[i] == nil {
					errs[i] = syncFile(to, path)
				}
			}
		})
	}
	for _, f := range list {
		next <- f.Path
	}
	close(next)
	all.Wait()
	return errors.Join(errs...)
}

func syncFile(to *os.Root, path string) error {
	f, err := to.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("sync the copy: %w", err)
	}
	return errors.Join(f.Sync(), f.Close())
}

// read copies a file to a writer and returns its digest and size.
func (im *importer) read(ctx context.Context, from fileSet, path string, to io.Writer) (sum [32]byte, n int64, err error) {
	f, err := from.open(path)
	if err != nil {
		return sum, 0, err
	}
	defer f.Close()
	h := sha256.New()
	for {
		if err := ctx.Err(); err != nil {
			return sum, n, err
		}
		k, err := f.Read(im.buf)
		h.Write(im.buf[:k])
		if _, werr := to.Write(im.buf[:k]); werr != nil {
			return sum, n, werr
		}
		n += int64(k)
		if err == io.EOF {
			return [32]byte(h.Sum(nil)), n, nil
		}
		if err != nil {
			return sum, n, err
		}
	}
}

// syncTree makes the names of a copy durable.
func syncTree(to *os.Root, tree taskTree) error {
	for _, dir := range append(slices.Clone(tree.Dirs), ".") {
		if err := atomicfile.SyncDir(filepath.Join(to.Name(), dir)); err != nil {
			return err
		}
	}
	return nil
}
