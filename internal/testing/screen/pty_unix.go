//go:build linux || darwin

package screen

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func setSize(master *os.File, s Size) error {
	size := unix.Winsize{Row: uint16(s.Lines), Col: uint16(s.Columns)} //nolint:gosec // sizes of screens
	raw, err := master.SyscallConn()
	if err != nil {
		return fmt.Errorf("size a terminal: %w", err)
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &size) }); err != nil {
		return fmt.Errorf("size a terminal: %w", err)
	}
	return failed
}

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true, Setctty: true} }
