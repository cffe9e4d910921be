//go:build unix

package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const haveSockets = true

// safeFolder says why a folder is none in which only this user can put a socket.
func safeFolder(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is no folder", dir) // a link, maybe
	}
	if !mine(info) {
		return fmt.Errorf("%s is another user's", dir)
	}
	if mode := info.Mode().Perm(); mode != 0o700 {
		return fmt.Errorf("%s has the mode %04o and not 0700", dir, mode)
	}
	// Who may rename things in the folder above could put another one in its place.
	above, err := os.Stat(filepath.Dir(dir))
	if err != nil {
		return err
	}
	if owner := ownerOf(above); owner != 0 && owner != os.Geteuid() {
		return fmt.Errorf("%s is another user's", filepath.Dir(dir))
	}
	if above.Mode().Perm()&0o022 != 0 && above.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("others may change what %s holds", filepath.Dir(dir))
	}
	return nil
}

// safeSocket says why a file is no socket of this user's that nobody else may use.
func safeSocket(path string) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is no socket", path)
	case !mine(info):
		return fmt.Errorf("%s is another user's", path)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s is open to others", path)
	}
	return nil
}

func mine(info fs.FileInfo) bool { return ownerOf(info) == os.Geteuid() }

// ownerOf is the user whom a file belongs to, -1 when that is not known.
func ownerOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

// alive reports whether a process with that number is there, as far as can be seen.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
