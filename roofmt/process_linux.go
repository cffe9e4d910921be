package roofmt

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}

func pidNamespace() string {
	s, _ := os.Readlink("/proc/self/ns/pid")
	return s
}

// startTime reads field 22 of /proc/<pid>/stat.
func startTime(pid int) string {
	if f := stat(pid); len(f) > 19 {
		return string(f[19])
	}
	return "0"
}

// ended reports whether a process was killed and only waits for its parent to read its exit status: it still has a
// number and a start, and holds nothing.
func ended(pid int) bool {
	f := stat(pid)
	return len(f) > 0 && (string(f[0]) == "Z" || string(f[0]) == "X")
}

// stat gives the fields of /proc/<pid>/stat from the third on. The command name before them
// may hold anything, so they are counted from its end.
func stat(pid int) [][]byte {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	if i := bytes.LastIndexByte(b, ')'); i >= 0 {
		return bytes.Fields(b[i+1:])
	}
	return nil
}
