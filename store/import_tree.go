package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/roofmt"
)

// source is what a task is imported from: a folder, or a list of an archive's files.
type source interface {
	scan(ctx context.Context) (taskTree, error)
	open(path string) (io.ReadCloser, error)
	saved(ctx context.Context) (uint64, error) // see View.Saved; 0 where there never was a journal
	close()
}

// folderSource reads inside one folder and follows no link out of it.
type folderSource struct{ root *os.Root }

func (s folderSource) scan(ctx context.Context) (taskTree, error) { return scanTree(ctx, s.root) }

func (s folderSource) close() { s.root.Close() }

func (s folderSource) open(path string) (io.ReadCloser, error) {
	f, err := s.root.Open(path)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, errors.Join(err, fmt.Errorf("%s is not a regular file", path))
	}
	return f, nil
}

func (s folderSource) saved(ctx context.Context) (uint64, error) {
	if info, err := s.root.Lstat("journal.jsonl"); err == nil && !info.Mode().IsRegular() {
		return 0, nil // it is left out of the copy, which says so
	}
	log, err := OpenJournal(s.root.Name())
	if errors.Is(err, journal.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer log.Close()
	return SavedCommit(ctx, log)
}

// archiveSource gives the files of a list. Each is compared with the sum that the
// archive has of it.
type archiveSource struct {
	list []ArchiveFile
	at   map[string]int // the first of each path
	head uint64         // what the archive says of its journal
}

func newArchiveSource(list []ArchiveFile, saved uint64) archiveSource {
	s := archiveSource{list, make(map[string]int, len(list)), saved}
	for i, f := range list {
		if _, ok := s.at[f.Path]; !ok {
			s.at[f.Path] = i
		}
	}
	return s
}

func (s archiveSource) close() {}

func (s archiveSource) saved(context.Context) (uint64, error) { return s.head, nil }

func (s archiveSource) scan(context.Context) (taskTree, error) {
	var tree taskTree
	dirs := map[string]bool{}
	for i, f := range s.list {
		switch {
		case !filepath.IsLocal(f.Path) || f.Path != filepath.Clean(f.Path):
			return tree, fmt.Errorf("%q is no path inside a task folder", f.Path)
		case ofPlace(f.Path, false):
			continue
		case s.at[f.Path] != i:
			tree.Left = append(tree.Left, ImportNote{f.Path, "it is in the archive twice; the first is taken"})
			continue
		}
		if err := tree.room(f.Path); err != nil {
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

func (s archiveSource) open(path string) (io.ReadCloser, error) {
	i, ok := s.at[path]
	if !ok {
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	in, err := s.list[i].Open()
	if err != nil {
		return nil, err
	}
	return &proven{ReadCloser: in, left: s.list[i].Size, want: s.list[i].SHA256, h: sha256.New(), path: path}, nil
}

// proven reads a file of an archive, no further than its size, and ends in an error
// when it is not what the archive's list says.
type proven struct {
	io.ReadCloser
	left int64
	want string
	path string
	h    hash.Hash
}

func (p *proven) Read(b []byte) (int, error) {
	n, err := p.ReadCloser.Read(b)
	p.left -= int64(n)
	p.h.Write(b[:n])
	if p.left < 0 || err == io.EOF && (p.left != 0 || hexOf([32]byte(p.h.Sum(nil))) != p.want) {
		return 0, fmt.Errorf("%s is not what the archive's list says; the archive is damaged", p.path)
	}
	return n, err
}

// treeFile is one file of a task folder, by its path inside it.
type treeFile struct {
	Path  string
	Size  int64
	MTime time.Time
	Sum   [32]byte // once it was read
}

func (f treeFile) stands(as treeFile) bool { return f.Size == as.Size && f.MTime.Equal(as.MTime) }

// taskTree is what of a task folder is the task's.
type taskTree struct {
	Dirs  []string
	Files []treeFile // by path
	Left  []ImportNote
}

const (
	// deepest is how many folders deep a file of a task may lie, and mostEntries how many files
	// and folders a task may have. What Roost and its relatives write stays far below; each
	// folder of a path costs each file below it a look, and each file a sync.
	deepest     = 32
	mostEntries = 1 << 18
)

// room reports an error where the tree cannot take one more entry at path.
func (t *taskTree) room(path string) error {
	if strings.Count(path, string(filepath.Separator)) > deepest {
		return fmt.Errorf("%.80q... lies more than %d folders deep", path, deepest)
	}
	if len(t.Files)+len(t.Dirs) >= mostEntries {
		return fmt.Errorf("it has more than %d files and folders", mostEntries)
	}
	return nil
}

// leftLink says why a link is not in a copy.
const leftLink = "a symbolic link; what it leads to is not copied"

// scanTree lists a folder and what is below it. Links are named and not followed,
// so that a folder can bring in nothing but itself, and none that loops is endless.
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
			if ofPlace(path, e.IsDir()) {
				continue
			}
			if err := tree.room(path); err != nil {
				return tree, err
			}
			info, err := root.Lstat(path)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				continue // it went in this moment
			case err != nil:
				return tree, err
			case info.IsDir():
				tree.Dirs, queue = append(tree.Dirs, path), append(queue, path)
			case info.Mode().IsRegular():
				tree.Files = append(tree.Files, treeFile{Path: path, Size: info.Size(), MTime: info.ModTime()})
			case info.Mode()&fs.ModeSymlink != 0:
				tree.Left = append(tree.Left, ImportNote{path, leftLink})
			default:
				tree.Left = append(tree.Left, ImportNote{path, "not a regular file"})
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

// ofPlace tells what belongs to the place and not to the task: locks, half-written
// files of ours, and what is derived from a journal and names inodes.
func ofPlace(path string, dir bool) bool {
	switch path {
	case "journal.idx", "journal.lock", watermarkName:
		return !dir
	}
	if path != filepath.Base(path) {
		return false
	}
	return strings.HasPrefix(path, ".roost-") || strings.HasPrefix(path, markTemp) || dir && strings.HasSuffix(path, ".json.lock")
}

// sum is the digest of the files' paths and sums.
func (t taskTree) sum() string {
	h := sha256.New()
	for _, f := range t.Files {
		fmt.Fprintf(h, "%s\x00%x\n", f.Path, f.Sum)
	}
	return hexOf([32]byte(h.Sum(nil)))
}

func (t taskTree) size() (n int64) {
	for _, f := range t.Files {
		n += f.Size
	}
	return n
}

// transcriptSource is the one file of a subagent, which becomes a folder of its own.
type transcriptSource struct {
	folderSource
	name, as string // in the folder, and in the copy
}

func (s transcriptSource) scan(context.Context) (taskTree, error) {
	info, err := s.root.Lstat(s.name)
	if err != nil {
		return taskTree{}, err
	}
	return taskTree{Files: []treeFile{{Path: s.as, Size: info.Size(), MTime: info.ModTime()}}}, nil
}

func (s transcriptSource) saved(context.Context) (uint64, error) { return 0, nil }

func (s transcriptSource) open(path string) (io.ReadCloser, error) {
	if path != s.as {
		return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	return s.folderSource.open(s.name)
}

// session reports whether a folder holds a transcript of Cline's.
func (t taskTree) session() bool {
	return slices.ContainsFunc(t.Files, func(f treeFile) bool { return f.Path == filepath.Base(f.Path) && roofmt.IsTranscript(f.Path) })
}

// speaks reports whether a folder holds a byte of a message or of a journal.
func (t taskTree) speaks() bool {
	return slices.ContainsFunc(t.Files, func(f treeFile) bool {
		if f.Size == 0 || f.Path != filepath.Base(f.Path) {
			return false
		}
		return ofMessages(f.Path)
	})
}

// ofMessages tells whether a file of this name holds messages, also what an interrupted
// write left.
func ofMessages(name string) bool {
	return roofmt.IsTranscript(name) || slices.ContainsFunc([]string{roofmt.UIName, roofmt.APIName, roofmt.LegacyName, journalName}, func(known string) bool {
		return strings.Contains(name, known)
	})
}

// unread says what stands in the place of a folder's messages and is not copied: the list
// calls such a task damaged, and it is not empty. Of a folder that has other messages only a link counts: it leads to messages that
// the copy would lack. nil when nothing does.
func (t taskTree) unread(speaks bool) error {
	for _, dir := range t.Dirs {
		if !speaks && ofMessages(dir) && dir == filepath.Base(dir) {
			return fmt.Errorf("its messages are not there: %s is a folder", dir)
		}
	}
	for _, left := range t.Left {
		if left.File == filepath.Base(left.File) && ofMessages(left.File) && !t.has(left.File) && (!speaks || left.What == leftLink) {
			return fmt.Errorf("its messages are not there: %s is %s", left.File, left.What)
		}
	}
	return nil
}

func (t taskTree) has(path string) bool {
	return slices.ContainsFunc(t.Files, func(f treeFile) bool { return f.Path == path })
}
