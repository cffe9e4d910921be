package shell

import "syscall"

// serving is a session of its own, as for a command, and a signal should this
// process die.
func serving() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
}
