package roofmt

import (
	"os"
	"path/filepath"
)

// readAhead is the size in bytes from which on Ahead requests a file before it is read, and mostAhead is how much of
// it: data that is requested too early may push out data that is needed now.
const (
	readAhead = 16 << 10
	mostAhead = 8 << 20
)

// Ahead asks the system to load a task folder's histories into memory soon. A disk delivers several files at once in
// hardly more time than one, but only if they are requested at once. Ahead reads nothing and waits for no byte of a
// message; a file that it cannot request gives its error when it is read. It reports whether there was anything to
// request: a caller that finds everything in memory can stop asking until a folder was on the disk again
// (Folder.Cold).
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
