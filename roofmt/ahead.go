package roofmt

import (
	"os"
	"path/filepath"
)

// readAhead is from which size on, in bytes, a file is asked for before it is read, and mostAhead how much of it: what is asked
// for too early may have to go again for something that is needed now.
const (
	readAhead = 16 << 10
	mostAhead = 8 << 20
)

// Ahead asks the system to have a task folder's histories in memory soon. A disk gives several files at once in hardly more time
// than one, but only if they are asked for at once. It reads nothing and waits for no byte of a message; what cannot be asked for
// will say why when it is read. It reports whether there was anything to ask for: who finds that all is in memory can leave it until
// a folder was on the disk again (Folder.Cold).
func Ahead(dir string) (asked bool) {
	for _, name := range []string{UIName, APIName} {
		f, err := os.OpenFile(filepath.Join(dir, name), openFlags, 0)
		if err != nil {
			continue
		}
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() >= readAhead && onDisk(f, info.Size()) {
			ahead(f, info.Size())
			asked = true
		}
		_ = f.Close() // nothing was written
	}
	return asked
}
