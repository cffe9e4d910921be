//go:build unix && !linux

package shell

import "syscall"

// serving is a session of its own, as for a command.
func serving() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
