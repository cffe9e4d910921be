package workspace

import "golang.org/x/sys/unix"

// openToPass opens a folder that one may pass through, also when one may not list it.
const openToPass = unix.O_PATH
