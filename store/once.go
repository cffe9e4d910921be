package store

import (
	"os"
	"path/filepath"
)

// Once reports whether something is done for the first time with this root, and
// remembers that it was: a question that a person is asked once. It is false when
// that cannot be remembered. name is a file name.
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
