package screen

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func openPTY() (master, slave *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	master = os.NewFile(uintptr(fd), "pty")
	var name [128]byte // the size is in the number of the request
	for _, request := range []uintptr{unix.TIOCPTYGRANT, unix.TIOCPTYUNLK, unix.TIOCPTYGNAME} {
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(&name[0])))
		if errno != 0 {
			_ = master.Close()
			return nil, nil, fmt.Errorf("open a pseudo-terminal: %w", errno)
		}
	}
	path, _, _ := bytes.Cut(name[:], []byte{0})
	if slave, err = os.OpenFile(string(path), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		_ = master.Close()
		return nil, nil, fmt.Errorf("open a pseudo-terminal: %w", err)
	}
	return master, slave, nil
}
