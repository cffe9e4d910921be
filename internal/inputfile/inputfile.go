// Package inputfile opens files and folders that a flag, a setting, a model, or a repository names as input. Opening
// never waits: it refuses a FIFO without a writer, or a device, at once, even if that has just replaced a file or a
// folder.
//
// It reads a pipe that the shell has opened already, as /dev/fd/63 for <(command): that has a writer, and the user
// named it on purpose.
package inputfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrIrregular: a name leads to something other than a regular file.
var ErrIrregular = errors.New("it is no regular file")

// readNow opens a pipe without waiting for its writer.
const readNow = os.O_RDONLY | syscall.O_NONBLOCK

// Open opens a file for reading. Errors wrap ErrIrregular or the system's.
func Open(path string) (*os.File, error) {
	info, err := os.Stat(path) // before it is opened: opening some devices does something
	if err == nil {
		err = judge(path, info)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, readNow, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil { // the path may name another file by now
		err = judge(path, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Read reads a whole file.
func Read(path string) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	return data, errors.Join(err, f.Close())
}

// Resolved returns a path with all links followed, or, where that is not possible, with only its form cleaned.
func Resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// OpenDir opens a folder, and refuses anything else. os.OpenRoot alone would wait for the writer of a pipe; with a
// separator at the end of the path, the system refuses the pipe.
func OpenDir(path string) (*os.Root, error) {
	root, err := os.OpenRoot(path + string(os.PathSeparator))
	if where, ok := errors.AsType[*fs.PathError](err); ok {
		where.Path = path
	}
	return root, err
}

// OpenDirIn opens a folder in an open folder, and refuses anything else: a pipe has no "." that could be opened.
func OpenDirIn(root *os.Root, name string) (*os.Root, error) { return root.OpenRoot(name + "/.") }

// OpenIn opens a file in an open folder for reading. Errors wrap ErrIrregular or the system's.
func OpenIn(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	f, err := root.OpenFile(name, readNow, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: ErrIrregular}
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// FS returns the files of an open folder, as root.FS does, but opening a pipe does not wait for its writer.
func FS(root *os.Root) fs.FS { return rootFS{root} }

type rootFS struct{ root *os.Root }

func (r rootFS) Stat(name string) (fs.FileInfo, error) { return r.root.Stat(name) }

func (r rootFS) Open(name string) (fs.File, error) {
	return r.root.OpenFile(name, readNow, 0)
}

// ReadFS reads the beginning of a file, at most most bytes. Errors do not name the path: the caller knows it.
func ReadFS(fsys fs.FS, name string, most int64) ([]byte, error) {
	info, err := fs.Stat(fsys, name) // before it is opened: opening some devices does something
	if err == nil && !info.Mode().IsRegular() {
		err = ErrIrregular
	}
	if err != nil {
		return nil, WithoutPath(err)
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, WithoutPath(err)
	}
	defer func() { _ = f.Close() }()                                  // it was only read
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() { // the name may be another file's by now
		err = ErrIrregular
	}
	if err != nil {
		return nil, WithoutPath(err)
	}
	data, err := io.ReadAll(io.LimitReader(f, most))
	return data, WithoutPath(err)
}

// WithoutPath returns an error without the path of its file.
func WithoutPath(err error) error {
	if where, ok := errors.AsType[*fs.PathError](err); ok {
		return where.Err
	}
	return err
}

func judge(path string, info fs.FileInfo) error {
	mode, what := info.Mode(), "something else"
	switch {
	case mode.IsRegular():
		return nil
	case mode&fs.ModeNamedPipe != 0 && passed(path):
		return nil
	case mode&fs.ModeNamedPipe != 0:
		what = "a pipe: write what comes out of it to a file and name that"
	case mode.IsDir():
		what = "a folder"
	case mode&fs.ModeDevice != 0:
		what = "a device"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	}
	return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%w but %s", ErrIrregular, what)}
}

// passed reports whether a name stands for a file that this process inherited open.
func passed(path string) bool {
	return path == "/dev/stdin" || strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/self/fd/")
}

// ContextReader ends a long read when its context does.
func ContextReader(ctx context.Context, r io.Reader) io.Reader { return contextReader{ctx, r} }

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
