package roofmt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Reach is whether a storage can be read.
type Reach uint8

// Absent: there is no such directory. Unreachable: it may be there, but it can not be read now (rights, a dead mount);
// what is in it is unknown, not gone.
const (
	Absent Reach = iota
	Reachable
	Unreachable
)

// ErrUnreachable is wrapped by errors about a place that can not be looked into. Such a place is never "empty": a disk that is
// not mounted must not look like deleted tasks.
var ErrUnreachable = errors.New("can not be reached")

// probe reports whether a directory can be listed.
func probe(dir string) (Reach, error) {
	d, err := os.Open(dir)
	if err == nil {
		_, err = d.Readdirnames(1)
		_ = d.Close()
		if err == nil || errors.Is(err, io.EOF) {
			return Reachable, nil
		}
	}
	// A link whose target is not there now is a disk that is not mounted, and not an absent place.
	if _, there := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) && there != nil {
		return Absent, nil
	}
	return Unreachable, fmt.Errorf("looking into %s: %w: %w", dir, ErrUnreachable, err)
}
