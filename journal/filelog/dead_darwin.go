package filelog

import (
	"errors"
	"sync"

	"golang.org/x/sys/unix"
)

// system is what the numbers of processes are of: a boot. "" when that cannot be told.
var system = sync.OnceValue(func() string {
	boot, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return boot
})

// gone reports whether no process has a number.
func gone(pid int) bool { return errors.Is(unix.Kill(pid, 0), unix.ESRCH) }
