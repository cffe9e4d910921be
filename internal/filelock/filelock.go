// Package filelock takes kernel locks on open files: flock on Unix, LockFileEx on Windows. It is the only package that
// calls the kernel for a lock.
//
// A lock belongs to the open file, not to the process: a second open file of the same process is refused as well. The
// lock ends with Unlock, or when its process ends, in any way. (fcntl locks belong to the process and vanish with any
// close of the file: rejected.)
//
// To end a lock, call Release; closing the file is not enough: while another goroutine starts a program, the child
// process holds the file, and with it the lock, until its exec.
//
// Locks are advisory on Unix: they bind only programs that take them. Network file systems may give one lock to two
// machines; a caller that depends on a lock checks filelog.Trusted first. On systems with neither call, Try fails
// with ErrUnsupported.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/roost-dev/roost/internal/sleep"
)

// Mode is the kind of a lock.
type Mode uint8

const (
	// Shared can have many holders, as long as none holds Exclusive.
	Shared Mode = 0
	// Exclusive has one holder.
	Exclusive Mode = 1
	// FirstByte, added to a mode, locks the first byte of the file on Windows, where other modes lock a byte far
	// after any content. Windows keeps others from reading a locked byte, so FirstByte is only for files that earlier
	// versions locked in this way.
	FirstByte Mode = 2
)

// ErrUnsupported: this system has no lock that belongs to an open file.
var ErrUnsupported = errors.New("kernel locks are not supported on this system")

// File is an open file that can be locked.
type File interface{ Fd() uintptr }

// Try takes the lock of an open file without waiting; ok is false while another holder excludes it. A holder changes
// the mode of its lock by another Try; if that fails, the old lock is lost on Unix.
func Try(f File, m Mode) (ok bool, err error) { return try(f.Fd(), m) }

// Wait takes the lock of an open file, and tries again after each pause until the context ends. It does not use the
// kernel's own wait, which a context cannot interrupt.
func Wait(ctx context.Context, f File, m Mode, pause time.Duration) error {
	return repeat(ctx, pause, func() (bool, error) { return Try(f, m) })
}

// repeat calls try until it succeeds or fails, with a pause after each call, or until the context ends.
func repeat(ctx context.Context, pause time.Duration, try func() (ok bool, err error)) error {
	for {
		if ok, err := try(); ok || err != nil {
			return err
		}
		if !sleep.For(ctx, pause) {
			return ctx.Err()
		}
	}
}

// Unlock ends a lock and leaves the file open. Without a lock it does nothing.
func Unlock(f File) error { return unlock(f.Fd()) }

// Release ends a lock, if there is one, and closes the file.
func Release(f interface {
	File
	io.Closer
}) error {
	return errors.Join(Unlock(f), f.Close())
}

// TryOpen opens a file, makes it with mode 0600 if there is none, and takes its lock without waiting. f is nil while
// another holder excludes the lock, and when the path leads to another file by the time the lock is taken.
func TryOpen(path string, m Mode) (f *os.File, err error) {
	if f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	ok, err := Try(f, m)
	switch {
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	case !ok:
		return nil, f.Close()
	case !Same(f, path):
		return nil, Release(f)
	}
	return f, nil
}

// Hold opens a file, makes it with mode 0600 if there is none, and takes its exclusive lock. While another holder
// excludes it, Hold tries again after each pause, until the context ends. release ends the lock. On a system without
// locks it holds nothing, and returns no error.
func Hold(ctx context.Context, path string, pause time.Duration) (release func() error, err error) {
	var f *os.File
	err = repeat(ctx, pause, func() (bool, error) {
		f, err = TryOpen(path, Exclusive)
		return f != nil, err
	})
	switch {
	case errors.Is(err, ErrUnsupported):
		return func() error { return nil }, nil
	case err != nil:
		return nil, fmt.Errorf("take the lock %s: %w", path, err)
	}
	return func() error { return Release(f) }, nil
}

// Same reports whether an open file is still the one at a path. A lock protects nothing if the file was removed or
// replaced between opening and locking: check after Try.
func Same(f interface{ Stat() (fs.FileInfo, error) }, path string) bool {
	held, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Lstat(path)
	return err == nil && os.SameFile(held, now)
}
