//go:build !linux

package main

import (
	"errors"
	"os"
	"time"
)

func datasync(f *os.File) error { return f.Sync() }

// dropPages cannot be done here: the page is measured warm, and the output notes that.
func dropPages(string) (bool, error) { return false, nil }

// peakMemory is not known here.
func peakMemory(int) int64 { return 0 }

func processTime(int) (time.Duration, error) { return 0, errors.ErrUnsupported }

func childrenTime(int) (time.Duration, error) { return 0, errors.ErrUnsupported }

func parentOf(int) int { return 0 }

func privateMemory(int) int64 { return 0 }
