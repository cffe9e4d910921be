//go:build !linux

package main

import "os"

func datasync(f *os.File) error { return f.Sync() }

// dropPages cannot be done here: the page is measured warm, and the output notes that.
func dropPages(string) (bool, error) { return false, nil }

// peakMemory is not known here.
func peakMemory(int) int64 { return 0 }
