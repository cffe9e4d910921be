//go:build !linux

package filelog

import "os"

// datasync is Sync, which on macOS also flushes the drive's cache.
func datasync(f *os.File) error { return f.Sync() }
