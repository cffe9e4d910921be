package store

import (
	"os"
	"path/filepath"
)

// Once reports whether this is the first call for a name with this root, and records the call: for a question that comes
// once. It is false when it cannot be recorded. name is a file name.
func (s *Store) Once(name string) bool {
	dir := filepath.Join(s.opt.Root, "asked")
	if err := s.EnsureDir(dir, "cannot be written"); err != nil {
		return false
	}
	// Of two processes only one creates it.
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return false
	}
	return f.Close() == nil
}
