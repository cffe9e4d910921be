//go:build unix

package spool

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

const noFollow = syscall.O_NOFOLLOW

// tryLock takes the lock if nobody has it. It is the open file's: a program that is
// started keeps it only until it runs, because the file is closed on exec.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// letGo gives a lock back and closes its file. To close it is not enough: while another
// goroutine starts a program, that has the file open as well until it runs, and the lock with it.
func letGo(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

// removeLocked removes a folder whose lock is held, so that two sweepers do not meet.
func removeLocked(path string, _ *os.File) { _ = os.RemoveAll(path) } // tried again by the next one

// ours reports whether a folder is this user's.
func ours(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
