package filelog

import (
	"io"
	"io/fs"
	"os"

	"github.com/roost-dev/roost/internal/atomicfile"
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
	// Append writes at the end, wherever that is by now. The file must be opened
	// with os.O_APPEND.
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

// OpenFile opens with close-on-exec (package os always does), so that commands
// the process starts do not inherit the lock.
func (osFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
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
