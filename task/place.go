package task

import (
	"errors"
	"iter"

	"github.com/roost-dev/roost/journal"
)

// Blobs gives the payloads that events name.
type Blobs interface {
	// Range returns length bytes of a blob from off; length < 0 means to its end.
	Range(hash string, off, length int64) ([]byte, error)
}

// ErrNoBlobs is the error of a state without Blobs for each payload.
var ErrNoBlobs = errors.New("task: no blobs to load from")

// ErrNoSource is the error of a state that must keep no bytes and has no log to read them from.
var ErrNoSource = errors.New("task: no log to read messages from")

// Source is where a state that holds no bytes reads them: the payloads that
// events name, and the commits themselves.
type Source interface {
	Blobs
	// Commits yields the commits from seq on, in order, and damage in its place.
	Commits(from uint64) iter.Seq2[journal.Commit, error]
}

// place is the location of bytes: in an event of the log, or in a range of a blob. The zero value is no location.
type place struct {
	Seq   uint64
	Event int

	Blob     string
	Off, Len int64
}

func (p place) nowhere() bool { return p == place{} }
