//go:build !unix

package store

import (
	"io/fs"
	"os"
	"path/filepath"
)

// place is a folder below which is looked at files.
type place struct{ dir string }

// foldersTell: whether a folder's times change with every name in it, at once. It
// depends on the file system.
const foldersTell = false

func openPlace(dir string) (*place, error) {
	_, err := os.Stat(dir)
	return &place{dir: dir}, err
}

func (p *place) close() {}

// look is what the system says of a file. Here it tells no change time and no number
// of the file: one that is rewritten to the same length and given its old time back is
// taken for the old one.
func (p *place) look(name []byte, follow bool) (seen, error) {
	get := os.Lstat
	if follow {
		get = os.Stat
	}
	info, err := get(filepath.Join(p.dir, string(name)))
	if err != nil {
		return seen{}, err
	}
	at := info.ModTime().UnixNano()
	return seen{mode: uint64(info.Mode()), size: info.Size(), changed: at, written: at}, nil
}

func (s seen) regular() bool { return fs.FileMode(s.mode).IsRegular() }
