package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// floor is the yardstick: a file that is appended to and synced, and nothing else.
type floor struct {
	file  *os.File
	at    int64
	taken times
}

func newFloor(dir, name string) (*floor, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make the yardstick file: %w", err)
	}
	return &floor{file: f}, nil
}

// add appends b, syncs it, and takes the time.
func (f *floor) add(b []byte) error {
	begun := time.Now()
	if _, err := f.file.WriteAt(b, f.at); err != nil {
		return fmt.Errorf("append to the yardstick file: %w", err)
	}
	if err := datasync(f.file); err != nil {
		return fmt.Errorf("sync the yardstick file: %w", err)
	}
	f.taken = append(f.taken, time.Since(begun))
	f.at += int64(len(b))
	return nil
}

func (f *floor) close() { f.file.Close() }
