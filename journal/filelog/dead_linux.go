package filelog

import (
	"bytes"
	"errors"
	"os"
	"strconv"
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

// gone reports whether no process has a number, or only one that was killed and waits for its
// parent to ask how it ended: its locks are free.
func gone(pid int) bool {
	if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat[max(bytes.LastIndexByte(stat, ')'), 0):]), " ")
	return strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X")
}
