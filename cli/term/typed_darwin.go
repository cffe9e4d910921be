package term

import "golang.org/x/sys/unix"

// readSide is FREAD of sys/fcntl.h.
const readSide = 1

// getMode and setMode are the requests that read and set a terminal's mode.
const getMode, setMode = unix.TIOCGETA, unix.TIOCSETA

func flushInput(fd int) error { return unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, readSide) }
