//go:build !linux

package roofmt

import "os"

// ahead does nothing where the system reads ahead as it likes.
func ahead(*os.File, int64) {}

// onDisk is always false: this system cannot answer it without waiting.
func onDisk(*os.File, int64) bool { return false }
