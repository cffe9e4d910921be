//go:build unix

package hosting

import "syscall"

// detached makes a process that the end of this terminal does not end.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
