package filelog

import (
	"os"
	"path/filepath"

	"github.com/roost-dev/roost/journal"
)

// Holder reports whether an owner is alive in dir, and what it says of itself.
// It takes no lock that an owner would notice and creates nothing.
func Holder(dir string) (journal.OwnerInfo, bool) {
	f, err := OS.OpenFile(filepath.Join(dir, lockName), os.O_RDWR, 0)
	if err != nil {
		return journal.OwnerInfo{}, false
	}
	defer f.Close()
	shared, err := tryLock(f.Fd(), false)
	if err != nil {
		return journal.OwnerInfo{}, false
	}
	if shared {
		unlock(f.Fd())
		return journal.OwnerInfo{}, false
	}
	return readOwner(f), true
}
