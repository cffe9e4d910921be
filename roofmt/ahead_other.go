//go:build !linux

package roofmt

import "os"

// ahead does nothing: this system takes no advice on reading ahead.
func ahead(*os.File, int64) {}

// onDisk is always false: this system cannot answer without blocking.
func onDisk(*os.File, int64) bool { return false }
