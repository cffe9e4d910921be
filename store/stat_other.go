//go:build !unix

package store

import (
	"io/fs"
	"os"
	"path/filepath"
)

// dirHandle is a folder below which files are asked for.
type dirHandle struct{ dir string }

// foldersShowNames: whether a folder's times change with every name in it, at once. It
// depends on the file system.
const foldersShowNames = false

func openDir(dir string) (*dirHandle, error) {
	_, err := os.Stat(dir)
	return &dirHandle{dir: dir}, err
}

func (d *dirHandle) close() {}

// stat stats a file. Here it has no change time and no number of
// the file: one that is rewritten to the same length and given its old time back is
// taken for the old one.
func (d *dirHandle) stat(name string, follow bool) (fileStat, error) {
	get := os.Lstat
	if follow {
		get = os.Stat
	}
	info, err := get(filepath.Join(d.dir, name))
	if err != nil {
		return fileStat{}, err
	}
	at := info.ModTime().UnixNano()
	return fileStat{mode: uint64(info.Mode()), size: info.Size(), changed: at, written: at}, nil
}

func (s fileStat) regular() bool { return fs.FileMode(s.mode).IsRegular() }
