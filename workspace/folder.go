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
// it requires the right to read each of them. Without sync, the names of folders that it made are not durable yet.
func (w *Workspace) pinFolder(path string, sync bool) (*folder, error) {
	base, rest, err := w.deepestExisting(path)
	if err != nil {
		return nil, err
	}
	root, err := w.OpenDir(base)
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
	_, inside := Within(w.root, path)
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

// ReadDir lists a folder in name order, at most most names, by an absolute path without links, as Path.Real is. It
// does not list through OpenDir: there, the os package would ask the system about each name once more.
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

// OpenDir opens a folder at an absolute path without links, as Path.Real is, and then checks that its path leads to it
// and through no link. It creates nothing. OpenIn reads the folder's files.
func (w *Workspace) OpenDir(path string) (*os.Root, error) {
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

// OpenIn opens a regular file of an open folder for reading. It does not follow links, and refuses folders, devices and
// pipes with ErrNotRegular.
func OpenIn(dir *os.Root, name string) (*os.File, fs.FileInfo, error) {
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

// maxLinks is the number of links that one path may lead through; Linux gives up at 40.
const maxLinks = 40

// followLinks resolves every symbolic link in a clean absolute path. Unlike filepath.EvalSymlinks, followLinks continues
// where nothing exists yet, even after a dangling link: callers need the place where a new file would appear. info
// describes the end of the path, nil when nothing is there.
//
// followLinks returns a path that leads through a file unchanged, since nothing can be there.
func followLinks(abs string) (real string, info fs.FileInfo, err error) {
	sep := string(filepath.Separator)
	vol := filepath.VolumeName(abs)
	real = vol + sep
	todo := strings.Split(abs[len(vol):], sep)
	links := 0
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			real = filepath.Dir(real)
			continue
		}
		if len(part) > 255 {
			return "", nil, fmt.Errorf("%w: a name longer than 255 bytes", ErrPath)
		}
		next := filepath.Join(real, part)
		info, err := os.Lstat(next)
		isLink := err == nil && info.Mode()&fs.ModeSymlink != 0
		switch {
		case errors.Is(err, fs.ErrNotExist): // the rest may hold ".." from a link's target
			real = next
			continue
		case isNotDir(err), err == nil && !isLink && !info.IsDir() && len(todo) > 0:
			return abs, nil, nil
		case err != nil:
			return "", nil, err
		case !isLink:
			real = next
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
			real, target = vol+sep, target[len(vol):]
		}
		todo = append(strings.Split(filepath.FromSlash(target), sep), todo...)
	}
	info, _ = os.Lstat(real) // nil when nothing is there
	return real, info, nil
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

// Within returns path relative to root when path is inside; both are absolute and clean. It compares whole names, so
// that /a/bc is not in /a/b.
func Within(root, path string) (string, bool) {
	rel, err := filepath.Rel(root, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", false
	}
	return rel, true
}
