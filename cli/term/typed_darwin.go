package term

import "golang.org/x/sys/unix"

// readSide is FREAD of sys/fcntl.h.
const readSide = 1

func flushInput(fd int) error { return unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, readSide) }
