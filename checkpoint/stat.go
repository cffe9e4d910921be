package checkpoint

import (
	"io/fs"
	"time"

	"github.com/roost-dev/roost/workspace"
)

// stat is what is cheap to see of a file. While it stays the same, and had settled when the file was read, the content
// is unchanged.
type stat struct {
	mode          fs.FileMode
	size          int64
	mtime, ctime  int64 // Unix nanoseconds; ctime 0 where unknown
	inode, device uint64
}

func statOf(info fs.FileInfo) stat {
	s := stat{mode: info.Mode(), size: info.Size(), mtime: info.ModTime().UnixNano()}
	s.ctime, s.inode, s.device = workspace.Identity(info)
	return s
}

// settling is how much older than the read the times of a file must be to be trusted: some file systems keep them in
// steps of two seconds, and a second change within one step would not show. Git calls such entries racy.
const settling = int64(2 * time.Second)

// settled reports whether a file with these times that was read at a moment (Unix nanoseconds) must show any later
// change. The change time moves with every write and no program sets it; the modification time may be anything, also in
// the future, and would then cause endless rereading.
func (s stat) settled(read int64) bool {
	at := s.ctime
	if at == 0 {
		at = s.mtime
	}
	return at < read-settling
}
