//go:build !linux

package filelog

import "os"

// datasync is Sync, which on macOS flushes the drive's cache too.
func datasync(f *os.File) error { return f.Sync() }
