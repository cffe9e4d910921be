package importer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/internal/sleep"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/projection"
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

// copyTree copies a folder again until a new listing equals what was copied: an editor may be writing in it.
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
			if !sleep.For(ctx, copyPause) {
				return tree, ctx.Err()
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
		if f, ok := now[path]; ok && f.Size == was.Size && f.MTime.Equal(was.MTime) {
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
	im.done.Files++
	im.done.Bytes += n
	progress.Report(ctx, im.done)
	// A message without a time gets the file's time. That is why copies keep it; it needs no sync.
	return sum, to.Chtimes(f.Path, f.MTime, f.MTime)
}

// maxSyncs bounds how many files are synced at a time. A disk handles many small syncs together nearly as fast as one.
const maxSyncs = 16

// syncFiles makes the contents of copies durable.
func syncFiles(to *os.Root, list []treeFile) error {
	errs := make([]error, len(list))
	store.Parallel(context.Background(), maxSyncs, len(list), func(i int) {
		f, err := to.OpenFile(list[i].Path, os.O_WRONLY, 0)
		if err != nil {
			errs[i] = fmt.Errorf("sync the copy: %w", err)
			return
		}
		errs[i] = errors.Join(f.Sync(), f.Close())
	})
	return errors.Join(errs...)
}

// read copies a file to a writer and returns its digest and size.
func (im *importer) read(ctx context.Context, from fileSet, path string, to io.Writer) (sum [32]byte, n int64, err error) {
	f, err := from.open(path)
	if err != nil {
		return sum, 0, err
	}
	defer f.Close()
	h, most := sha256.New(), int64(math.MaxInt64)
	if folder, ok := from.(folderFiles); ok {
		most = filelog.Counts(ctx, folder.root.Name(), path)
	}
	n, err = io.CopyBuffer(io.MultiWriter(h, to), inputfile.ContextReader(ctx, io.LimitReader(f, most)), im.buf)
	if err != nil {
		return sum, n, err
	}
	return [32]byte(h.Sum(nil)), n, nil
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

// fileSet is the files of one original.
type fileSet interface {
	scan(ctx context.Context) (taskTree, error)
	open(path string) (io.ReadCloser, error)
	saved(ctx context.Context) (uint64, error) // see store.View.Saved; 0 when there never was a journal
	close()
}

// folderFiles are the files in a folder. No link leads out of it.
type folderFiles struct{ root *os.Root }

func (s folderFiles) scan(ctx context.Context) (taskTree, error) { return scanTree(ctx, s.root) }

func (s folderFiles) close() { s.root.Close() }

func (s folderFiles) open(path string) (io.ReadCloser, error) {
	f, _, err := inputfile.OpenIn(s.root, path)
	return f, err
}

func (s folderFiles) saved(ctx context.Context) (uint64, error) {
	if info, err := s.root.Lstat(store.JournalName); err == nil && !info.Mode().IsRegular() {
		return 0, nil // the copy leaves it out, with a note
	}
	log, err := filelog.OpenKnowing(s.root.Name(), nil, projection.Read(s.root.Name()).Seq)
	if errors.Is(err, journal.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer log.Close()
	return store.SavedCommit(ctx, log)
}

// archiveFiles are the files of a task in an archive. Reading compares each with the digest in the archive's manifest.
type archiveFiles struct {
	list []ArchiveFile
	at   map[string]int // the first of each path
	head uint64         // the newest saved commit of its journal, by the manifest
}

func newArchiveFiles(list []ArchiveFile, saved uint64) archiveFiles {
	s := archiveFiles{list, make(map[string]int, len(list)), saved}
	for i, f := range list {
		if _, ok := s.at[f.Path]; !ok {
			s.at[f.Path] = i
		}
	}
	return s
}

func (s archiveFiles) close() {}

func (s archiveFiles) saved(context.Context) (uint64, error) { return s.head, nil }

func (s archiveFiles) scan(context.Context) (taskTree, error) {
	var tree taskTree
	dirs := map[string]bool{}
	for i, f := range s.list {
		switch {
		case !filepath.IsLocal(f.Path) || f.Path != filepath.Clean(f.Path):
			return tree, fmt.Errorf("%q is not a path inside a task folder", f.Path)
		case projection.IsLocalFile(f.Path, false):
			continue
		case s.at[f.Path] != i:
			tree.Left = append(tree.Left, api.FileNote{File: f.Path, What: "the archive holds it twice; only the first was imported"})
			continue
		}
		if err := tree.checkRoom(f.Path); err != nil {
			return tree, err
		}
		tree.Files = append(tree.Files, treeFile{Path: f.Path, Size: f.Size, MTime: f.MTime})
		for dir := filepath.Dir(f.Path); dir != "." && !dirs[dir]; dir = filepath.Dir(dir) {
			dirs[dir] = true
			tree.Dirs = append(tree.Dirs, dir)
		}
	}
	tree.sort()
	return tree, nil
}

func (s archiveFiles) open(path string) (io.ReadCloser, error) {
	i, ok := s.at[path]
	if !ok {
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	return s.list[i].verified()
}

func (f ArchiveFile) verified() (*verifiedFile, error) {
	in, err := f.Open()
	if err != nil {
		return nil, err
	}
	return &verifiedFile{
		ReadCloser: in,
		left:       f.Size,
		want:       f.SHA256,
		h:          sha256.New(),
		path:       f.Path,
	}, nil
}

// verifiedFile reads a file of an archive, no further than its size. Reading fails when the file is not as the
// archive's manifest describes it.
type verifiedFile struct {
	io.ReadCloser
	left int64
	want string
	path string
	h    hash.Hash
}

func (p *verifiedFile) Read(b []byte) (int, error) {
	n, err := p.ReadCloser.Read(b)
	p.left -= int64(n)
	p.h.Write(b[:n])
	if p.left < 0 || err == io.EOF && (p.left != 0 || hex.EncodeToString(p.h.Sum(nil)) != p.want) {
		return 0, fmt.Errorf("%s differs from its entry in the archive's manifest; the archive is damaged", p.path)
	}
	return n, err
}

// treeFile is one file of a task folder, by its path inside it.
type treeFile struct {
	Path  string
	Size  int64
	MTime time.Time
	Sum   [32]byte // set once the file was read
}

// taskTree lists the files of a task folder that belong to the task.
type taskTree struct {
	Dirs  []string
	Files []treeFile // by path
	Left  []api.FileNote
}

const (
	// maxDepth bounds how many folders deep a file of a task may be (each fork of a fork lies one deeper), and maxEntries
	// how many files and folders a task may have. Tasks stay far below both bounds. Each folder of a path costs a lookup for
	// each file below it, and each file costs a sync.
	maxDepth   = 256
	maxEntries = 1 << 18
)

// checkRoom returns an error when the tree cannot take one more entry at path.
func (t *taskTree) checkRoom(path string) error {
	if strings.Count(path, string(filepath.Separator)) > maxDepth {
		return fmt.Errorf("%.80q... is more than %d folders deep", path, maxDepth)
	}
	if len(t.Files)+len(t.Dirs) >= maxEntries {
		return fmt.Errorf("it has more than %d files and folders", maxEntries)
	}
	return nil
}

// linkLeftOut is the note about a link.
const linkLeftOut = "a symbolic link; its target was not copied"

// scanTree lists a folder and everything below it. It names links without following them, so a folder brings in
// nothing but itself, and a loop of links ends.
func scanTree(ctx context.Context, root *os.Root) (taskTree, error) {
	var tree taskTree
	for queue := []string{"."}; len(queue) > 0; queue = queue[1:] {
		if err := ctx.Err(); err != nil {
			return tree, err
		}
		dir := queue[0]
		d, err := root.Open(dir)
		if err != nil {
			return tree, err
		}
		entries, err := d.ReadDir(-1)
		d.Close()
		if err != nil {
			return tree, err
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if projection.IsLocalFile(path, e.IsDir()) {
				continue
			}
			if err := tree.checkRoom(path); err != nil {
				return tree, err
			}
			info, err := root.Lstat(path)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				continue // another program just removed it
			case err != nil:
				return tree, err
			case info.IsDir():
				tree.Dirs, queue = append(tree.Dirs, path), append(queue, path)
			case info.Mode().IsRegular():
				tree.Files = append(tree.Files, treeFile{Path: path, Size: info.Size(), MTime: info.ModTime()})
			case info.Mode()&fs.ModeSymlink != 0:
				tree.Left = append(tree.Left, api.FileNote{File: path, What: linkLeftOut})
			default:
				tree.Left = append(tree.Left, api.FileNote{File: path, What: "not a regular file"})
			}
		}
	}
	tree.sort()
	return tree, nil
}

func (t *taskTree) sort() {
	slices.Sort(t.Dirs)
	slices.SortFunc(t.Files, func(a, b treeFile) int { return strings.Compare(a.Path, b.Path) })
}

// sum returns the digest of the paths and digests of all files.
func (t taskTree) sum() string {
	h := sha256.New()
	for _, f := range t.Files {
		fmt.Fprintf(h, "%s\x00%x\n", f.Path, f.Sum)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (t taskTree) size() (n int64) {
	for _, f := range t.Files {
		n += f.Size
	}
	return n
}

// transcriptFile is the transcript of a subagent. Its copy is a task folder with this one file.
type transcriptFile struct {
	folderFiles
	name, copyName string // in the folder, and in the copy
}

func (s transcriptFile) scan(context.Context) (taskTree, error) {
	info, err := s.root.Lstat(s.name)
	if err != nil {
		return taskTree{}, err
	}
	return taskTree{Files: []treeFile{{Path: s.copyName, Size: info.Size(), MTime: info.ModTime()}}}, nil
}

func (s transcriptFile) saved(context.Context) (uint64, error) { return 0, nil }

func (s transcriptFile) open(path string) (io.ReadCloser, error) {
	if path != s.copyName {
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	return s.folderFiles.open(s.name)
}

// hasTranscript reports whether a folder holds a transcript of Cline.
func (t taskTree) hasTranscript() bool {
	return slices.ContainsFunc(t.Files, func(f treeFile) bool { return f.Path == filepath.Base(f.Path) && roofmt.IsTranscript(f.Path) })
}

// hasMessages reports whether a folder holds a byte of a message or of a journal.
func (t taskTree) hasMessages() bool {
	return slices.ContainsFunc(t.Files, func(f treeFile) bool {
		return f.Size > 0 && f.Path == filepath.Base(f.Path) && holdsMessages(f.Path)
	})
}

// holdsMessages reports whether a file of this name holds messages. Files that an interrupted write left count, too.
func holdsMessages(name string) bool {
	known := []string{roofmt.UIName, roofmt.APIName, roofmt.LegacyName, store.JournalName}
	return roofmt.IsTranscript(name) || slices.ContainsFunc(known, func(k string) bool { return strings.Contains(name, k) })
}

// messagesMissing returns an error when something that cannot be copied has the name of a messages file: lists call
// such a task damaged, so it is not empty. In a folder with other messages only a link counts, because it leads to
// messages that the copy would lack.
func (t taskTree) messagesMissing(hasMessages bool) error {
	for _, dir := range t.Dirs {
		if !hasMessages && holdsMessages(dir) && dir == filepath.Base(dir) {
			return fmt.Errorf("its messages are missing: %s is a folder", dir)
		}
	}
	for _, left := range t.Left {
		if left.File == filepath.Base(left.File) && holdsMessages(left.File) && !t.has(left.File) && (!hasMessages || left.What == linkLeftOut) {
			return fmt.Errorf("its messages are missing: %s is %s", left.File, left.What)
		}
	}
	return nil
}

func (t taskTree) has(path string) bool {
	return slices.ContainsFunc(t.Files, func(f treeFile) bool { return f.Path == path })
}
