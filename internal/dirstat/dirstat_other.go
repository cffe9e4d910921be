//go:build !unix

package dirstat

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Dir is a folder whose files can be statted.
type Dir struct{ dir string }

// FoldersShowNames: on this system, whether the times of a folder change at once with every name in it depends on the
// file system.
const FoldersShowNames = false

// Open opens a folder.
func Open(dir string) (*Dir, error) {
	_, err := os.Stat(dir)
	return &Dir{dir: dir}, err
}

// Close closes the folder.
func (d *Dir) Close() {}

// Stat stats a file of the folder. This system reports no change time and no inode: a file that is rewritten with the
// same length and gets its old time back counts as unchanged.
func (d *Dir) Stat(name string, follow bool) (File, error) {
	get := os.Lstat
	if follow {
		get = os.Stat
	}
	info, err := get(filepath.Join(d.dir, name))
	if err != nil {
		return File{}, err
	}
	at := info.ModTime().UnixNano()
	return File{Mode: uint64(info.Mode()), Size: info.Size(), Changed: at, Written: at}, nil
}

// Regular reports whether the file is a regular file.
func (s File) Regular() bool { return fs.FileMode(s.Mode).IsRegular() }
