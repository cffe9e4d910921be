package process

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func boot() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}

func namespace() string {
	s, _ := os.Readlink("/proc/self/ns/pid")
	return s
}

func system() string {
	if Boot() == "" || Namespace() == "" {
		return ""
	}
	return Boot() + " " + Namespace()
}

func alive(pid int) bool {
	if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return false
	}
	s := stat(pid) // nil: this user may not read it
	return len(s) == 0 || !strings.Contains("ZXx", s[statState])
}

func start(pid int) int64 {
	s := stat(pid)
	if len(s) <= statStart {
		return 0
	}
	ticks, _ := strconv.ParseInt(s[statStart], 10, 64)
	return ticks
}

// Positions of fields in the result of stat. The manual counts from 1, and the name is field 2.
const (
	statState = 0  // field 3
	statStart = 19 // field 22
)

// stat returns the fields of /proc/PID/stat after the name. A process may have any characters in its name, so the
// last ")" ends it.
func stat(pid int) []string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}
