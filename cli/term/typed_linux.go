package term

import "golang.org/x/sys/unix"

// getMode and setMode are the requests that read and set a terminal's mode.
const getMode, setMode = unix.TCGETS, unix.TCSETS

func flushInput(fd int) error { return unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }
