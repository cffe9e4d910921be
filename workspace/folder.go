package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// folder is held open: work in it stays in it even when its path is moved or replaced.
type folder struct {
	*os.Root
	made []madeFolder
}

// madeFolder is a folder that was made on the way to the pinned one.
type madeFolder struct {
	in   *os.Root
	name string
}

// pinFolder opens the folder at a path without links, as Path.Real has it, and creates its missing parts. A link that
// was put into the path a moment ago could lead a plain open elsewhere; so pinFolder opens the folder first, then
// walks the path, which must lead to the very folder that is open. Opening the path from the top, folder by folder,
// was rejected: it needs the right to read each of them.
func (w *Workspace) pinFolder(path string) (*folder, error) { return w.pinFolderSync(path, true) }

// pinFolderSync is pinFolder; without sync the names of folders that it made are not durable yet.
func (w *Workspace) pinFolderSync(path string, sync bool) (*folder, error) {
	base, rest, err := w.deepestExisting(path)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return nil, err
	}
	f := &folder{Root: root}
	info, err := root.Stat(".")
	if err == nil && !w.leadsTo(base, info) {
		err = fmt.Errorf("%w: the path now leads elsewhere than %s", ErrChanged, base)
	}
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
	next, err := here.OpenRoot(name)
	if err != nil {
		return err
	}
	f.Root = next
	if got, err := next.Stat("."); err != nil || !want.IsDir() || !os.SameFile(want, got) {
		return errors.Join(fmt.Errorf("%w: %s is another folder by now", ErrChanged, name), err)
	}
	return nil
}

// release closes the folder and, unless keep is set, takes away what was made as
// far as it is empty.
func (f *folder) release(keep bool) {
	deeper := f.Root
	for i := len(f.made) - 1; i >= 0; i-- {
		m := f.made[i]
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

// resolveLinks is followLinks that does not walk down to the root again while the root is the same folder.
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
