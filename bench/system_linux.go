package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

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

// processTime is the time that a process had on processors, in all its threads.
func processTime(pid int) (all time.Duration, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, err
	}
	for _, file := range threads {
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // the thread has ended
		}
		if err != nil {
			return 0, err
		}
		first, _, _ := strings.Cut(string(data), " ")
		ns, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("the time of process %d: %w", pid, err)
		}
		all += time.Duration(ns)
	}
	return all, nil
}

// childrenTime is the time of the children of a process that live.
func childrenTime(parent int) (all time.Duration, err error) {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, folder := range processes {
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil || parentOf(pid) != parent {
			continue
		}
		one, err := processTime(pid)
		if err != nil {
			return 0, err
		}
		all += one
	}
	return all, nil
}

// parentOf is the process that started another one; 0 when that is gone.
func parentOf(pid int) int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// privateMemory is the memory that a process alone has written; 0 when it is gone.
func privateMemory(pid int) (bytes int64) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(data), "Private_Dirty:")
	if fields := strings.Fields(rest); len(fields) > 0 {
		bytes, _ = strconv.ParseInt(fields[0], 10, 64)
	}
	return bytes << 10
}
