// Package atomicfile replaces whole files: another process, or a reader after a crash, finds the old content or the
// new one.
//
// Write writes new content to a temporary file in the same folder (mode 0600), syncs it, gives it its name by one
// rename or link, and syncs the folder. Temporary files of killed processes stay: their names begin with a dot and
// end with ".tmp", unless the caller gives another pattern.
//
// Files that need more have their own steps, which use Rename and SyncDir: those under the lock of an editor, those
// of the user's workspace, and those whose temporary file is locked while it is written.
package atomicfile

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// Write replaces a file, or creates it, and returns when content and name are durable. If path is a link, Write
// replaces the link itself.
func Write(path string, data []byte) error {
	temp, err := writeTemp(path, "", data, true)
	if err != nil {
		return err
	}
	return named(temp, path, Rename(temp, path))
}

// WriteDerived is Write without a sync, for data that can be derived again: after a power cut the file may be old,
// empty or gone. temp is the pattern of the temporary file, as for os.CreateTemp; "" is the usual one.
func WriteDerived(path, temp string, data []byte) error {
	name, err := writeTemp(path, temp, data, false)
	if err != nil {
		return err
	}
	if err := Rename(name, path); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// Create is Write for a file that must not exist yet. If it exists, the error is fs.ErrExist, the file stays
// unchanged, and its name is durable. If several processes create it at once, one succeeds. On a file system without
// links two may succeed, and one file stays.
func Create(path string, data []byte) error {
	temp, err := writeTemp(path, "", data, true)
	if err != nil {
		return err
	}
	err = os.Link(temp, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		if failed := errors.Join(os.Remove(temp), SyncDir(filepath.Dir(path))); failed != nil {
			return failed
		}
		return err
	}
	if _, there := os.Lstat(path); there == nil {
		return errors.Join(&fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}, os.Remove(temp))
	}
	return named(temp, path, Rename(temp, path))
}

// named finishes a write whose rename returned err.
func named(temp, path string, err error) error {
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return SyncDir(filepath.Dir(path))
}

// syncFile makes a file, or the names in a folder, durable. Tests replace it to observe it or to make it fail.
var syncFile = (*os.File).Sync

// writeTemp writes a temporary file beside path.
func writeTemp(path, pattern string, data []byte, sync bool) (temp string, err error) {
	pattern = cmp.Or(pattern, "."+filepath.Base(path)+"-*.tmp")
	f, err := os.CreateTemp(filepath.Dir(path), pattern) // mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err == nil && sync {
		err = syncFile(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// Rename renames a file or folder and replaces a file that has the new name. The rename is visible at once and durable
// after SyncDir.
func Rename(from, to string) error {
	return patiently(func() error { return os.Rename(from, to) })
}

// RenameIn is Rename of names below an open folder.
func RenameIn(dir *os.Root, from, to string) error {
	return patiently(func() error { return dir.Rename(from, to) })
}

// Move is Rename, durable when it returns.
func Move(from, to string) error {
	if err := Rename(from, to); err != nil {
		return err
	}
	err := SyncDir(filepath.Dir(to))
	if filepath.Dir(from) != filepath.Dir(to) {
		err = errors.Join(err, SyncDir(filepath.Dir(from)))
	}
	return err
}

const (
	// busyTries bounds the repeats of a rename that Windows refuses: half a second in all. Programs that read a file,
	// and virus scanners, hold it open for a shorter time.
	busyTries = 50
	busyPause = 10 * time.Millisecond
)

// patiently repeats a rename on systems that cannot rename or replace an open file.
func patiently(rename func() error) error {
	err := rename()
	for try := 1; err != nil && !errors.Is(err, fs.ErrNotExist) && runtime.GOOS == "windows" && try < busyTries; try++ {
		time.Sleep(busyPause)
		err = rename()
	}
	return err
}
