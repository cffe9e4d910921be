package roofmt

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// ErrNotRegular: a folder, a pipe or a device has a file's name.
var ErrNotRegular = errors.New("not a regular file")

// errNothingThere: a link has a file's name, and its target may come back. It is no fs.ErrNotExist, which would mean
// that nothing is lost by writing the file.
var errNothingThere = errors.New("it is a link to nothing")

// UnreadError means that a file of a task exists and cannot be read.
type UnreadError struct {
	Path string
	Err  error
}

func (e *UnreadError) Error() string {
	return fmt.Sprintf("%s is there and cannot be read: %s", e.Path, Reason(e.Err))
}

func (e *UnreadError) Unwrap() error { return e.Err }

// reasons are what the system's errors mean to whoever looks for the messages.
var reasons = []struct {
	err   error
	means string
}{
	{ErrNotRegular, "it is not a regular file"},
	{fs.ErrPermission, "this user may not read it (permission denied)"},
	{syscall.ELOOP, "it is a link that leads in a circle (too many levels of symbolic links)"},
	{syscall.EIO, "the disk does not give it back (input/output error)"},
	{syscall.ENOTDIR, "a file is where a folder should be"},
	{fs.ErrNotExist, "it is a link to nothing, or it was removed (no such file or directory)"},
}

// Reason explains in plain words why a file could not be read: the system names its calls, and a path that "escapes"
// for a link that leads elsewhere. For an error that it does not know, it returns the innermost error, in the
// system's words.
func Reason(err error) string {
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.means
		}
	}
	var at *fs.PathError
	if !errors.As(err, &at) {
		return err.Error()
	}
	if strings.Contains(at.Err.Error(), "escapes from parent") { // os has no name for it
		return "it is a link that leads out of the task's folder, and such links are not followed"
	}
	return at.Err.Error()
}
