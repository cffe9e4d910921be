//go:build !linux && !darwin

package screen

import (
	"os"
	"syscall"
)

func openPTY() (master, slave *os.File, err error) { return nil, nil, ErrNone }

func setSize(*os.File, Size) error { return ErrNone }

func ownSession() *syscall.SysProcAttr { return nil }
