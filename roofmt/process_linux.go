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

// startTime reads field 22 of /proc/<pid>/stat. The command name before it may hold anything, so count from its end.
func startTime(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "0"
	}
	if i := bytes.LastIndexByte(b, ')'); i >= 0 {
		if f := bytes.Fields(b[i+1:]); len(f) > 19 {
			return string(f[19])
		}
	}
	return "0"
}
