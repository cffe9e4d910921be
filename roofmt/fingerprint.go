package roofmt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Fingerprint is a cheap check whether a file is still the one that was read. The zero value means "no such file".
// The change time is left out on purpose: making a hard link to keep the file would alter it.
type Fingerprint struct {
	Exists bool
	Size   int64  // bytes
	MTime  int64  // nanoseconds since 1970
	Inode  uint64 // 0 where the system has none
}

func fingerprintOf(info fs.FileInfo) Fingerprint {
	return Fingerprint{Exists: true, Size: info.Size(), MTime: info.ModTime().UnixNano(), Inode: inodeOf(info)}
}

// Prints are the fingerprints of a task folder's files by their names, without reading them. Links are not followed: such a
// file counts as absent, as Read takes it.
func Prints(dir string) (map[string]Fingerprint, error) {
	prints := map[string]Fingerprint{}
	if info, err := os.Lstat(dir); err == nil && info.Mode().IsRegular() && FolderOf(dir) != dir {
		prints[filepath.Base(dir)] = fingerprintOf(info)
		return prints, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("looking at task folder: %w", err)
	}
	defer root.Close()
	for _, name := range []string{UIName, APIName, ItemName, MetadataName} {
		info, err := root.Lstat(name)
		if err == nil && info.Mode().IsRegular() {
			prints[name] = fingerprintOf(info)
		}
	}
	return prints, nil
}

// String gives a short form for messages and logs.
func (f Fingerprint) String() string {
	if !f.Exists {
		return "absent"
	}
	return fmt.Sprintf("%d bytes, mtime %d, inode %d", f.Size, f.MTime, f.Inode)
}

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

// readAhead is the size in bytes from which on Ahead requests a file before it is read, and mostAhead is how much of
// it: data that is requested too early may push out data that is needed now.
const (
	readAhead = 16 << 10
	mostAhead = 8 << 20
)

// Ahead asks the system to load a task folder's histories into memory soon. A disk delivers several files at once in
// hardly more time than one, but only if they are requested at once. Ahead reads nothing and waits for no byte of a
// message; a file that it cannot request gives its error when it is read. It reports whether there was anything to
// request: a caller that finds everything in memory can stop asking until a folder was on the disk again
// (Folder.Cold).
func Ahead(dir string) (asked bool) {
	for _, name := range []string{UIName, APIName} {
		f, err := os.OpenFile(filepath.Join(dir, name), openFlags, 0)
		if err != nil {
			continue
		}
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() >= readAhead && onDisk(f, info.Size()) {
			ahead(f, info.Size())
			asked = true
		}
		_ = f.Close() // nothing was written
	}
	return asked
}
