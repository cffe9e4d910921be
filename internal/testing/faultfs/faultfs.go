// Package faultfs is a file system for tests that fails on request. It passes everything else to filelog.OS.
package faultfs

import (
	"io/fs"
	"path/filepath"
	"strings"
	"sync"

	"github.com/roost-dev/roost/journal/filelog"
)

// FS fails the calls that Fail returns an error for. A write that fails still
// writes the first half of its bytes, as a full disk does.
type FS struct {
	filelog.FS
	mu   sync.Mutex
	fail func(op, name string) error
}

// New returns an FS that fails nothing.
func New() *FS { return &FS{FS: filelog.OS} }

// Fail sets the judge: op is open, write, sync, stat, truncate, rename, mkdir or
// syncdir; name is the base name. It may be called from several goroutines, and
// may block, as a disk does. nil ends the faults.
func (f *FS) Fail(judge func(op, name string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = judge
}

// Ops returns a judge that fails some operations ("write sync") with err on
// names that start with prefix.
func Ops(ops, prefix string, err error) func(op, name string) error {
	return func(op, name string) error {
		if strings.Contains(" "+ops+" ", " "+op+" ") && strings.HasPrefix(name, prefix) {
			return err
		}
		return nil
	}
}

func (f *FS) judge(op, name string) error {
	f.mu.Lock()
	fail := f.fail
	f.mu.Unlock()
	if fail == nil {
		return nil
	}
	if err := fail(op, filepath.Base(name)); err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

// OpenFile implements filelog.FS.
func (f *FS) OpenFile(name string, flag int, perm fs.FileMode) (filelog.File, error) {
	if err := f.judge("open", name); err != nil {
		return nil, err
	}
	g, err := f.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &file{g, f, name}, nil
}

// Rename implements filelog.FS.
func (f *FS) Rename(from, to string) error {
	if err := f.judge("rename", to); err != nil {
		return err
	}
	return f.FS.Rename(from, to)
}

// Mkdir implements filelog.FS.
func (f *FS) Mkdir(name string, perm fs.FileMode) error {
	if err := f.judge("mkdir", name); err != nil {
		return err
	}
	return f.FS.Mkdir(name, perm)
}

// SyncDir implements filelog.FS.
func (f *FS) SyncDir(name string) error {
	if err := f.judge("syncdir", name); err != nil {
		return err
	}
	return f.FS.SyncDir(name)
}

type file struct {
	filelog.File
	fs   *FS
	name string
}

func (f *file) WriteAt(b []byte, off int64) (int, error) {
	if err := f.fs.judge("write", f.name); err != nil {
		n, _ := f.File.WriteAt(b[:len(b)/2], off)
		return n, err
	}
	return f.File.WriteAt(b, off)
}

func (f *file) Append(b []byte) (int, error) {
	if err := f.fs.judge("write", f.name); err != nil {
		n, _ := f.File.Append(b[:len(b)/2])
		return n, err
	}
	return f.File.Append(b)
}

func (f *file) Stat() (fs.FileInfo, error) {
	if err := f.fs.judge("stat", f.name); err != nil {
		return nil, err
	}
	return f.File.Stat()
}

func (f *file) Datasync() error {
	if err := f.fs.judge("sync", f.name); err != nil {
		return err
	}
	return f.File.Datasync()
}

func (f *file) Truncate(n int64) error {
	if err := f.fs.judge("truncate", f.name); err != nil {
		return err
	}
	return f.File.Truncate(n)
}
