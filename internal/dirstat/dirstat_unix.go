//go:build unix

package dirstat

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Dir is an open folder whose files can be statted. With the open folder, the kernel need not look up most of each
// path, which is half of the cost of a stat.
type Dir struct{ fd int }

// FoldersShowNames: the times of a folder change at once with every name in it.
const FoldersShowNames = true

// Open opens a folder.
func Open(dir string) (*Dir, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	return &Dir{fd: fd}, nil
}

// Close closes the folder. d may be nil.
func (d *Dir) Close() {
	if d != nil {
		_ = unix.Close(d.fd) // nothing was written to it
	}
}

// Stat stats a file of the folder. Changed includes the change time, which no program can set back, so it shows a file
// that was rewritten and got its old times.
func (d *Dir) Stat(name string, follow bool) (File, error) {
	flags := unix.AT_SYMLINK_NOFOLLOW
	if follow {
		flags = 0
	}
	var st unix.Stat_t
	for {
		switch err := unix.Fstatat(d.fd, name, &st, flags); {
		case err == nil:
			return File{
				Mode: uint64(st.Mode), Size: int64(st.Size), Inode: uint64(st.Ino),
				Changed: max(st.Mtim.Nano(), st.Ctim.Nano()), Written: st.Mtim.Nano(),
			}, nil
		case errors.Is(err, unix.EINTR):
		default:
			return File{}, fmt.Errorf("stat %s: %w", name, err)
		}
	}
}

// Regular reports whether the file is a regular file.
func (s File) Regular() bool { return s.Mode&unix.S_IFMT == unix.S_IFREG }
