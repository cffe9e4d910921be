package crashtest

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Alive lists the processes whose command line holds mark. It reads /proc; where
// there is none it finds nothing.
func Alive(mark string) []int {
	var out []int
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !bytes.Contains(line, []byte(mark)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err == nil && pid != os.Getpid() {
			out = append(out, pid)
		}
	}
	return out
}

// Gone waits until no such process is left and returns those that stay.
func Gone(mark string, patience time.Duration) []int {
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if left := Alive(mark); len(left) == 0 || time.Now().After(end) {
			return left
		}
	}
}
