package filelog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/atomicfile"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/journal"
)

// FS is the file system under an owner. It is an interface so that tests can
// make any call fail; OS is the real one.
type FS interface {
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	Rename(from, to string) error
	Remove(name string) error
	Mkdir(name string, perm fs.FileMode) error
	Lstat(name string) (fs.FileInfo, error)
	ReadDir(name string) ([]fs.DirEntry, error)
	// SyncDir makes the names in a directory durable.
	SyncDir(name string) error
	// LocksTrusted reports whether kernel locks work at the path name, and the kind of file system if not.
	LocksTrusted(name string) (kind string, ok bool, err error)
	// FreeSpace returns the bytes free to this user and in all, for messages.
	FreeSpace(name string) (free, total uint64, err error)
}

// File is an open file of an FS.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Append writes at the present end of the file. The file must be opened with os.O_APPEND.
	Append(b []byte) (int, error)
	// Datasync makes content and length durable.
	Datasync() error
	Truncate(size int64) error
	Stat() (fs.FileInfo, error)
	Fd() uintptr
}

// OS is the operating system's file system.
var OS FS = osFS{}

type osFS struct{}

type osFile struct{ *os.File }

// OpenFile opens with close-on-exec (package os always does), so that commands that the process starts do not inherit
// the lock. For reading it opens no pipe: in an imported folder one may have the name of a file of ours.
func (osFS) OpenFile(name string, flag int, perm fs.FileMode) (_ File, err error) {
	var file *os.File
	if flag == os.O_RDONLY {
		file, err = inputfile.Open(name)
	} else {
		file, err = os.OpenFile(name, flag, perm)
	}
	if err != nil {
		return nil, err
	}
	return osFile{file}, nil
}

func (osFS) Rename(from, to string) error                { return atomicfile.Rename(from, to) }
func (osFS) Remove(name string) error                    { return os.Remove(name) }
func (osFS) Mkdir(name string, perm fs.FileMode) error   { return os.Mkdir(name, perm) }
func (osFS) Lstat(name string) (fs.FileInfo, error)      { return os.Lstat(name) }
func (osFS) ReadDir(name string) ([]fs.DirEntry, error)  { return os.ReadDir(name) }
func (osFS) SyncDir(name string) error                   { return atomicfile.SyncDir(name) }
func (osFS) LocksTrusted(n string) (string, bool, error) { return locksTrusted(n) }
func (osFS) FreeSpace(n string) (uint64, uint64, error)  { return freeSpace(n) }
func (f osFile) Append(b []byte) (int, error)            { return f.Write(b) }
func (f osFile) Datasync() error                         { return datasync(f.File) }

// FileID distinguishes a file from one that takes its name later: its inode; 0 where a system has none.
func FileID(fi fs.FileInfo) uint64 { return fileID(fi) }

// EnsureDir makes a folder and its missing parents, each name durable before anything is made in it. A folder that
// exists may have been made by a process that was killed before it synced the name, so EnsureDir syncs its parent
// once in each process. The folders above need no sync, because their names were synced before anything was made in
// them.
//
// An error of a sync wraps journal.ErrNotSaved; an error of making a folder does not.
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
	return whetherSaved(fsys, "make folder", dir, EnsureDir(fsys, dir))
}

// saveError explains in plain words why a commit is not on disk. It wraps journal.ErrNotSaved and the cause.
type saveError struct {
	op, path string
	cause    error
	advice   string
}

func (e *saveError) Error() string {
	return fmt.Sprintf("not saved: %s %s: %s (%v)", e.op, e.path, e.advice, e.cause)
}

func (e *saveError) Unwrap() []error { return []error{journal.ErrNotSaved, e.cause} }

// whetherSaved returns the error of notSaved for a failed call; nil for one that succeeded.
func whetherSaved(fsys FS, op, path string, err error) error {
	if err == nil {
		return nil
	}
	return notSaved(fsys, op, path, err)
}

// notSaved returns an error that explains a failed call.
func notSaved(fsys FS, op, path string, cause error) error {
	if cause == nil {
		cause = io.ErrShortWrite
	}
	if _, ok := errors.AsType[*saveError](cause); ok {
		return cause
	}
	return &saveError{op: op, path: path, cause: cause, advice: advice(fsys, path, cause)}
}

func advice(fsys FS, path string, cause error) string {
	switch {
	case errors.Is(cause, syscall.ENOSPC):
		space := ""
		if free, total, err := fsys.FreeSpace(filepath.Dir(path)); err == nil && total > 0 {
			of := api.SizeText(int64(total))                                      //nolint:gosec // no disk is so large
			space = fmt.Sprintf(", %s of %s free", api.SizeText(int64(free)), of) //nolint:gosec // as above
		}
		return "the disk is full" + space + "; make room"
	case errors.Is(cause, syscall.EDQUOT):
		return "your disk quota is used up; delete files of yours or ask for more"
	case errors.Is(cause, syscall.EROFS):
		return "the file system is read-only; mount it writable"
	case errors.Is(cause, syscall.EIO):
		return "the disk reports an input/output error; look at its health (dmesg) and keep a copy of this folder"
	case errors.Is(cause, syscall.EACCES), errors.Is(cause, syscall.EPERM):
		return "permission denied; make the folder writable for this user"
	case errors.Is(cause, syscall.EFBIG):
		return "the file would exceed the size limit; raise it (ulimit -f)"
	case errors.Is(cause, syscall.EMFILE), errors.Is(cause, syscall.ENFILE):
		return "too many files are open; raise the limit (ulimit -n)"
	case errors.Is(cause, io.ErrShortWrite):
		return "the disk took only a part of it"
	}
	return "the disk refused"
}
