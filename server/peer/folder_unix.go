//go:build unix

package peer

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const haveSockets = true

// safeFolder returns why other users could put a socket into a folder; nil if they cannot.
func safeFolder(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", dir) // it may be a link
	}
	if !mine(info) {
		return fmt.Errorf("%s belongs to another user", dir)
	}
	if mode := info.Mode().Perm(); mode != 0o700 {
		return fmt.Errorf("%s has the mode %04o and not 0700", dir, mode)
	}
	// A user who may rename files in the parent folder could replace this folder.
	above, err := os.Stat(filepath.Dir(dir))
	if err != nil {
		return err
	}
	if owner := ownerOf(above); owner != 0 && owner != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user", filepath.Dir(dir))
	}
	if above.Mode().Perm()&0o022 != 0 && above.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("other users may change %s", filepath.Dir(dir))
	}
	return nil
}

// safeSocket returns why a file is not a socket that this user alone may use.
func safeSocket(path string) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is not a socket", path)
	case !mine(info):
		return fmt.Errorf("%s belongs to another user", path)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s is open to other users", path)
	}
	return nil
}

func mine(info fs.FileInfo) bool { return ownerOf(info) == os.Geteuid() }

// ownerOf returns the user who owns a file; -1 if the system does not report it.
func ownerOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}
