package workspace

import (
	"errors"
	"fmt"
	"os"
)

// Dir is a folder that is held open to read many of its files: OpenDir checks once, not for
// each file, that the path leads to it and through no link. It is not safe for
// concurrent use.
type Dir struct {
	root *os.Root
	path string
}

// OpenDir opens a folder at an absolute path without links, as Path.Real has it. It
// makes nothing.
func (w *Workspace) OpenDir(path string) (*Dir, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err == nil && !w.leadsTo(path, info) {
		err = fmt.Errorf("%w: the path now leads elsewhere than %s", ErrChanged, path)
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return &Dir{root: root, path: path}, nil
}

// Path is what the folder was opened as.
func (d *Dir) Path() string { return d.path }

// Open opens a regular file of the folder for reading and returns its size in bytes.
// Links are not followed; folders, devices and pipes are refused with ErrNotRegular.
func (d *Dir) Open(name string) (*os.File, int64, error) {
	want, err := d.root.Lstat(name)
	if err != nil {
		return nil, 0, err
	}
	if !want.Mode().IsRegular() {
		return nil, 0, ErrNotRegular
	}
	f, err := d.root.OpenFile(name, os.O_RDONLY|OpenNonblock, 0)
	if err != nil {
		return nil, 0, err
	}
	got, err := f.Stat()
	if err != nil || !os.SameFile(want, got) {
		f.Close()
		return nil, 0, errors.Join(ErrChanged, err)
	}
	return f, got.Size(), nil
}

// Close lets go of the folder; files that are open stay so.
func (d *Dir) Close() error { return d.root.Close() }
