//go:build !unix

package atomicfile

// SyncDir makes the names in a folder durable. It does nothing here: Windows syncs no folder, and its file system keeps
// a journal of names.
func SyncDir(string) error { return nil }
