package filelog

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
	"syscall"
)

// EnsureDir makes a folder and what leads to it, each name durable before anything is made
// in it. A folder that is there may have been made by a process that was killed before it
// synced the name: its parent is synced once a process. The folders above that need no
// sync, because their names were synced before anything was made in them.
//
// An error of a sync is journal.ErrNotSaved, one of making a folder is not.
func EnsureDir(fsys FS, dir string) error {
	parent, made := filepath.Dir(dir), false
	fi, err := fsys.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) && parent != dir {
		if err := EnsureDir(fsys, parent); err != nil {
			return err
		}
		if err = fsys.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		made = err == nil
		fi, err = fsys.Lstat(dir)
	}
	if err == nil && fi.Mode().IsRegular() {
		err = &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return err
	}
	key := namedDir{dir, fileID(fi)}
	if _, known := named.Load(key); known && !made {
		return nil
	}
	err = fsys.SyncDir(parent)
	if err != nil && (made || !errors.Is(err, fs.ErrPermission)) { // in a folder that we may not open we made nothing
		return notSaved(fsys, "sync folder", parent, err)
	}
	named.Store(key, true)
	return nil
}

// named are the folders whose names this process knows to be durable.
var named sync.Map

type namedDir struct {
	path  string
	inode uint64
}

// ensureDir is EnsureDir for an owner: every failure means that the log is not saved.
func ensureDir(fsys FS, dir string) error {
	if err := EnsureDir(fsys, dir); err != nil {
		return notSaved(fsys, "make folder", dir, err)
	}
	return nil
}
