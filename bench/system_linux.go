package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func datasync(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// dropPages takes every file below dir out of the page cache. Dirty pages do not
// go, so each file is synced first.
func dropPages(dir string) (bool, error) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		return errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
	})
	if err != nil {
		return false, fmt.Errorf("drop the pages of %s: %w", dir, err)
	}
	return true, nil
}

// peakMemory is the most a running process held so far, in bytes; 0 when it is
// gone. The child's resource usage was rejected: on Linux it also counts what the
// parent held at the fork.
func peakMemory(pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	return highWater(string(data))
}

func highWater(status string) int64 {
	_, rest, ok := strings.Cut(status, "\nVmHWM:")
	if !ok {
		return 0
	}
	line, _, _ := strings.Cut(rest, "\n")
	kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(line), "kB")), 10, 64)
	if err != nil {
		return 0
	}
	return kb << 10
}
