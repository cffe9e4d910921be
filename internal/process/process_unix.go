//go:build unix && !linux && !darwin

package process

import (
	"errors"
	"syscall"
)

func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func start(int) int64 { return 0 }
