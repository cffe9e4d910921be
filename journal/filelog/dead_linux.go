package filelog

import (
	"errors"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// system is what the numbers of processes are of: a boot, and a namespace in it. "" when
// that cannot be told.
var system = sync.OnceValue(func() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + space
})

// gone reports whether no process has a number.
func gone(pid int) bool { return errors.Is(unix.Kill(pid, 0), unix.ESRCH) }
