package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/roost-dev/roost/internal/inputfile"
)

// folder is an open folder: work in it stays in it even when its path is moved or replaced.
type folder struct {
	*os.Root
	made []madeFolder
}

// madeFolder is a folder that was made on the way to the pinned one.
type madeFolder struct {
	in   *os.Root
	name string
}

// pinFolder opens the folder at a path without links, as Path.Real is, and creates its missing parts. A link that
// appeared in the path a moment ago could lead a plain open elsewhere; so pinFolder opens the folder first, then
// walks the path, which must lead to the same folder. Opening the path from the top, folder by folder, was rejected:
// it requires the right to read each of them.
func (w *Workspace) pinFolder(path string) (*folder, error) { return w.pinFolderSync(path, true) }

// pinFolderSync is pinFolder; without sync, the names of folders that it made are not durable yet.
func (w *Workspace) pinFolderSync(path string, sync bool) (*folder, error) {
	base, rest, err := w.deepestExisting(path)
	if err != nil {
		return nil, err
	}
	root, err := w.openRoot(base)
	if err != nil {
		return nil, err
	}
	f := &folder{Root: root}
	for i := 0; err == nil && i < len(rest); i++ {
		err = f.enter(rest[i], sync)
	}
	if err != nil {
		f.release(false)
		return nil, err
	}
	return f, nil
}

// deepestExisting returns the part of a path that exists and the names that do not. The workspace itself is never
// created again.
func (w *Workspace) deepestExisting(path string) (base string, rest []string, err error) {
	_, inside := within(w.root, path)
	for base = path; ; base = filepath.Dir(base) {
		info, err := os.Lstat(base)
		switch {
		case err == nil && info.IsDir():
			return base, rest, nil
		case err == nil:
			return "", nil, &fs.PathError{Op: "open folder", Path: base, Err: syscall.ENOTDIR}
		case !errors.Is(err, fs.ErrNotExist) && !isNotDir(err):
			return "", nil, err
		case inside && base == w.root:
			return "", nil, fmt.Errorf("%w: %s does not exist any more", ErrMissing, w.root)
		case filepath.Dir(base) == base:
			return "", nil, err
		}
		rest = append([]string{filepath.Base(base)}, rest...)
	}
}

// enter makes a folder unless it exists, and opens it.
func (f *folder) enter(name string, sync bool) error {
	here := f.Root
	switch err := here.Mkdir(name, 0o777); {
	case err == nil:
		f.made = append(f.made, madeFolder{here, name})
		if !sync {
			break
		}
		if err := syncFolder(here); err != nil {
			return err
		}
	case errors.Is(err, fs.ErrExist):
		defer here.Close()
	default:
		return err
	}
	want, err := here.Lstat(name)
	if err != nil {
		return err
	}
	next, err := inputfile.OpenDirIn(here, name)
	if err != nil {
		return err
	}
	f.Root = next
	if got, err := next.Stat("."); err != nil || !want.IsDir() || !os.SameFile(want, got) {
		return errors.Join(fmt.Errorf("%w: %s is another folder by now", ErrChanged, name), err)
	}
	return nil
}

// release closes the folder. Unless keep is set, release removes the folders that enter made,
// as far as they are empty.
func (f *folder) release(keep bool) {
	deeper := f.Root
	for _, m := range slices.Backward(f.made) {
		if deeper != m.in {
			deeper.Close() // where an open folder cannot be removed
		}
		if !keep {
			_ = m.in.Remove(m.name)
		}
		deeper = m.in
	}
	deeper.Close()
}

// syncFile makes a file or a folder durable; tests replace it to see when that happens.
var syncFile = (*os.File).Sync

func syncFolder(dir *os.Root) error {
	if runtime.GOOS == "windows" {
		return nil // folders cannot be synced there
	}
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	return syncFile(f)
}

// resolveLinks is followLinks, except that it does not walk down to the root again while the root is the same folder.
func (w *Workspace) resolveLinks(abs string) (string, fs.FileInfo, error) {
	sep := string(filepath.Separator)
	if rest, ok := strings.CutPrefix(abs, w.root); ok && (rest == "" || rest[0] == filepath.Separator) {
		if now, err := os.Lstat(w.root); err == nil && os.SameFile(now, w.info) {
			if rest == "" {
				return w.root, now, nil
			}
			return followLinks(abs, w.root, strings.Split(rest[1:], sep))
		}
	}
	vol := filepath.VolumeName(abs)
	return followLinks(abs, vol+sep, strings.Split(strings.TrimPrefix(abs[len(vol):], sep), sep))
}

// Dir is a folder that is kept open to read many of its files: OpenDir checks only once, and not for each file, that
// the path leads to it and through no link. It is not safe for concurrent use.
type Dir struct {
	root *os.Root
	path string
}

// OpenDir opens a folder at an absolute path without links, as Path.Real is. It creates nothing.
func (w *Workspace) OpenDir(path string) (*Dir, error) {
	root, err := w.openRoot(path)
	if err != nil {
		return nil, err
	}
	return &Dir{root: root, path: path}, nil
}

// ReadDir lists a folder in name order, at most most names, by an absolute path without links, as Path.Real is. It
// does not list through a Dir: there, the os package would ask the system about each name once more.
func (w *Workspace) ReadDir(path string, most int) ([]fs.DirEntry, error) {
	f, err := os.OpenFile(path+string(filepath.Separator), os.O_RDONLY|OpenNonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !w.leadsTo(path, info) {
		err = leadsElsewhere(path)
	}
	if err != nil {
		return nil, err
	}
	list, err := f.ReadDir(most)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

func leadsElsewhere(path string) error {
	return fmt.Errorf("%w: the path now leads elsewhere than %s", ErrChanged, path)
}

// openRoot opens a folder, and then checks that its path leads to it.
func (w *Workspace) openRoot(path string) (*os.Root, error) {
	root, err := inputfile.OpenDir(path)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err == nil && !w.leadsTo(path, info) {
		err = leadsElsewhere(path)
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

// Path returns the path by which the folder was opened.
func (d *Dir) Path() string { return d.path }

// Open opens a regular file of the folder for reading and returns its size in bytes. It does not follow links, and
// refuses folders, devices and pipes with ErrNotRegular.
func (d *Dir) Open(name string) (*os.File, int64, error) {
	f, info, err := openIn(d.root, name)
	if err != nil {
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// openIn opens a regular file of an open folder for reading. It follows no link.
func openIn(dir *os.Root, name string) (*os.File, fs.FileInfo, error) {
	want, err := dir.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if !want.Mode().IsRegular() {
		return nil, nil, ErrNotRegular
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|OpenNonblock, 0)
	if err != nil {
		return nil, nil, err
	}
	got, err := f.Stat()
	if err != nil || !os.SameFile(want, got) {
		f.Close()
		return nil, nil, errors.Join(ErrChanged, err)
	}
	return f, got, nil
}

// Close closes the folder; open files stay open.
func (d *Dir) Close() error { return d.root.Close() }

// maxLinks is the number of links that one path may lead through; Linux gives up at 40.
const maxLinks = 40

// followLinks resolves every symbolic link in a clean absolute path. done is the part that is resolved already, and
// todo are the names after it. Unlike filepath.EvalSymlinks, followLinks continues where nothing exists yet, even
// after a dangling link: callers need the place where a new file would appear. info describes the end of the path,
// nil when nothing is there.
//
// followLinks returns a path that leads through a file unchanged, since nothing can be there.
func followLinks(abs, done string, todo []string) (string, fs.FileInfo, error) {
	sep := string(filepath.Separator)
	links := 0
	var last fs.FileInfo
	looked := false // last is the info of done
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			done, looked = filepath.Dir(done), false
			continue
		}
		if len(part) > 255 {
			return "", nil, fmt.Errorf("%w: a name longer than 255 bytes", ErrPath)
		}
		next := filepath.Join(done, part)
		info, err := os.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			// Continue: the rest may hold ".." from a link's target.
			done, last, looked = next, nil, true
			continue
		}
		if err != nil {
			if isNotDir(err) {
				return abs, nil, nil
			}
			return "", nil, err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			if len(todo) > 0 && !info.IsDir() {
				return abs, nil, nil
			}
			done, last, looked = next, info, true
			continue
		}
		if links++; links > maxLinks {
			return "", nil, fmt.Errorf("%w: more than %d symbolic links", ErrPath, maxLinks)
		}
		target, err := os.Readlink(next)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EINVAL) {
			todo = append([]string{part}, todo...) // removed or replaced since the look: look again
			continue
		}
		if err != nil {
			return "", nil, err
		}
		if filepath.IsAbs(target) {
			vol := filepath.VolumeName(target)
			done, looked = vol+sep, false
			target = target[len(vol):]
		}
		todo = append(strings.Split(filepath.FromSlash(target), sep), todo...)
	}
	if !looked {
		last, _ = os.Lstat(done) // nil when nothing is there
	}
	return done, last, nil
}

// isNotDir reports whether an error means that a path leads through a file or a link.
func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

// namesOf returns the names in a clean path.
func namesOf(path string) []string {
	if path == "." {
		return nil
	}
	return strings.FieldsFunc(path, func(r rune) bool { return r == filepath.Separator })
}

// within returns path relative to root when path is inside; both are absolute and clean. It compares whole names, so
// that /a/bc is not in /a/b.
func within(root, path string) (string, bool) {
	const sep = string(filepath.Separator)
	if sep != "/" { // letter case does not count there
		rel, err := filepath.Rel(root, path)
		if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+sep) {
			return "", false
		}
		return rel, true
	}
	if path == root {
		return ".", true
	}
	rest, ok := strings.CutPrefix(path, root)
	if ok && root != sep {
		rest, ok = strings.CutPrefix(rest, sep)
	}
	if !ok {
		return "", false
	}
	return rest, true
}
