//go:build unix

package workspace

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// leadsTo reports whether a clean absolute path leads to info without passing a link. It holds each folder on the way
// open while it looks up the next name in it: a link that replaces a folder already passed cannot lead it astray, as
// it could lead a check of one path after the other.
func (w *Workspace) leadsTo(path string, info fs.FileInfo) bool {
	want, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	here, names, err := w.walkFrom(path)
	if err != nil {
		return false
	}
	for len(names) > 1 {
		next, err := openFolder(here, names[0])
		_ = unix.Close(here)
		if err != nil {
			return false
		}
		here, names = next, names[1:]
	}
	defer func() { _ = unix.Close(here) }()
	var got unix.Stat_t
	if len(names) == 0 {
		err = interrupted(func() error { return unix.Fstat(here, &got) })
	} else {
		err = interrupted(func() error { return unix.Fstatat(here, names[0], &got, unix.AT_SYMLINK_NOFOLLOW) })
	}
	return err == nil && got.Dev == want.Dev && got.Ino == want.Ino
}

// walkFrom opens the folder where the walk along path begins, and returns the names below that folder: the workspace
// while its path still leads to the same folder, otherwise the top of the file system.
func (w *Workspace) walkFrom(path string) (fd int, names []string, err error) {
	if rest, ok := Within(w.root, path); ok {
		var now unix.Stat_t
		root, isStat := w.info.Sys().(*syscall.Stat_t)
		if fd, err := openFolder(unix.AT_FDCWD, w.root); err == nil {
			if isStat && interrupted(func() error { return unix.Fstat(fd, &now) }) == nil && now.Dev == root.Dev && now.Ino == root.Ino {
				return fd, namesOf(rest), nil
			}
			_ = unix.Close(fd)
		}
	}
	fd, err = openFolder(unix.AT_FDCWD, "/")
	return fd, namesOf(path), err
}

// openFolder opens a folder by its name in another folder. It refuses anything that is no folder.
func openFolder(in int, name string) (fd int, err error) {
	err = interrupted(func() error {
		fd, err = unix.Openat(in, name, openToPass|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return -1, &os.PathError{Op: "openat", Path: name, Err: err}
	}
	return fd, nil
}

// interrupted repeats call while a signal interrupts it.
func interrupted(call func() error) (err error) {
	for {
		if err = call(); err != unix.EINTR { //nolint:errorlint // a bare number
			return err
		}
	}
}
