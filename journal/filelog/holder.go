package filelog

import (
	"os"
	"path/filepath"
	"time"

	"github.com/roost-dev/roost/internal/filelock"
	"github.com/roost-dev/roost/internal/process"
	"github.com/roost-dev/roost/journal"
)

// Holder reports whether an owner is alive in dir, and what its record holds. It takes no lock that an owner would
// notice and creates nothing. An owner without a name, or with a dead process's name, is just coming or going: Holder
// then looks again, some times.
func Holder(dir string) (journal.OwnerInfo, bool) {
	f, err := OS.OpenFile(filepath.Join(dir, lockName), os.O_RDWR, 0)
	if err != nil {
		return journal.OwnerInfo{}, false
	}
	defer f.Close()
	for try := 0; ; try++ {
		shared, err := filelock.Try(f, filelock.Shared)
		if err != nil {
			return journal.OwnerInfo{}, false
		}
		if shared {
			_ = filelock.Unlock(f) // the caller closes it anyway
			return journal.OwnerInfo{}, false
		}
		if who := readHolder(f); who.PID != 0 || try == 50 {
			return who, true
		}
		time.Sleep(time.Millisecond)
	}
}

// Here reports whether a holder's process number is one of this system: of this boot, and of
// this process's namespace. In a container or on a machine beside it means another process.
func Here(o journal.OwnerInfo) bool { return o.Boot == process.System() }
