//go:build !linux && !darwin

package workspace

import "io/fs"

const (
	// OpenNonblock is a flag of os.OpenFile; see the other systems.
	OpenNonblock = 0
	openNoLink   = 0
)

// Identity returns zeros: they are unknown on this system.
func Identity(fs.FileInfo) (ctime int64, inode, device uint64) { return 0, 0, 0 }

func owner(fs.FileInfo) (uid, gid int, ok bool) { return 0, 0, false }
