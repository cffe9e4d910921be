package roofmt

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Fingerprint is a cheap check whether a file is still the one that was read. The zero value means "no such file".
// The change time is left out on purpose: making a hard link to keep the file would alter it.
type Fingerprint struct {
	Exists bool
	Size   int64  // bytes
	MTime  int64  // nanoseconds since 1970
	Inode  uint64 // 0 where the system has none
}

func fingerprintOf(info fs.FileInfo) Fingerprint {
	return Fingerprint{Exists: true, Size: info.Size(), MTime: info.ModTime().UnixNano(), Inode: inodeOf(info)}
}

// Prints are the fingerprints of a task folder's files by their names, without reading them. Links are not followed: such a
// file counts as absent, as Read takes it.
func Prints(dir string) (map[string]Fingerprint, error) {
	prints := map[string]Fingerprint{}
	if info, err := os.Lstat(dir); err == nil && info.Mode().IsRegular() && FolderOf(dir) != dir {
		prints[filepath.Base(dir)] = fingerprintOf(info)
		return prints, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("looking at task folder: %w", err)
	}
	defer root.Close()
	for _, name := range []string{UIName, APIName, ItemName, MetadataName} {
		info, err := root.Lstat(name)
		if err == nil && info.Mode().IsRegular() {
			prints[name] = fingerprintOf(info)
		}
	}
	return prints, nil
}

// String gives a short form for messages and logs.
func (f Fingerprint) String() string {
	if !f.Exists {
		return "absent"
	}
	return fmt.Sprintf("%d bytes, mtime %d, inode %d", f.Size, f.MTime, f.Inode)
}
