package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Tree is the open folder of the workspace. It resolves names one by one, so that no link leads out of the folder or to
// another path in it. Its paths are relative to the folder, in the disk's form. It remembers what folders lead to.
type Tree struct {
	*os.Root
	folders map[string]folderState
}

// folderState is what a path of a folder leads to.
type folderState byte

const (
	aFolder     folderState = iota + 1
	noFolder                // nothing there, or a file
	throughLink             // a link on the way
)

// OpenTree opens the folder. The error wraps ErrMissing when its path leads to no folder, or to another one than before.
func (w *Workspace) OpenTree() (*Tree, error) {
	root, err := w.OpenDir(w.root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%w: there is no such folder", ErrMissing)
	case errors.Is(err, ErrChanged):
		err = fmt.Errorf("%w: the path now leads elsewhere", ErrMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("open workspace %s: %w", w.root, err)
	}
	return (&Tree{Root: root}).Fresh(), nil
}

// Fresh returns the same open folder, without what the tree remembers: for another goroutine.
func (t *Tree) Fresh() *Tree {
	return &Tree{Root: t.Root, folders: map[string]folderState{".": aFolder}}
}

// folder finds out what the path of a folder leads to.
func (t *Tree) folder(dir string) (folderState, error) {
	if s := t.folders[dir]; s != 0 {
		return s, nil
	}
	s, err := t.folder(filepath.Dir(dir))
	if err != nil {
		return 0, err
	}
	if s == aFolder {
		info, err := t.Lstat(dir)
		switch {
		case CannotExist(err):
			s = noFolder
		case err != nil:
			return 0, err
		case info.Mode()&fs.ModeSymlink != 0:
			s = throughLink
		case !info.IsDir():
			s = noFolder
		}
	}
	t.folders[dir] = s
	return s, nil
}

// Missing returns how many of the folders above a path do not exist, or are links or behind one.
func (t *Tree) Missing(path string) (n int) {
	for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
		if s, err := t.folder(dir); err != nil || s == aFolder {
			break
		}
		n++
	}
	return n
}

// Look returns what is at a path: nil for nothing, or a folder. ok is false when the path leads through a link.
func (t *Tree) Look(path string) (info fs.FileInfo, ok bool, err error) {
	s, err := t.folder(filepath.Dir(path))
	switch {
	case err != nil:
		return nil, false, err
	case s == throughLink:
		return nil, false, nil
	case s == noFolder:
		return nil, true, nil
	}
	info, err = t.Lstat(path)
	if CannotExist(err) || err == nil && info.IsDir() {
		return nil, true, nil
	}
	return info, true, err
}

// OpenRegular opens a regular file for reading; see OpenIn. What lies behind a link does not exist.
func (t *Tree) OpenRegular(path string) (*os.File, fs.FileInfo, error) {
	if s, err := t.folder(filepath.Dir(path)); err != nil || s != aFolder {
		return nil, nil, cmp.Or(err, fs.ErrNotExist)
	}
	return OpenIn(t.Root, path)
}

// CannotExist reports whether an error means that a path cannot exist now.
func CannotExist(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG)
}
