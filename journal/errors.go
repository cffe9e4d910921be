package journal

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// Opening.
var (
	// ErrNotFound: there is no journal here. Nothing was created.
	ErrNotFound = errors.New("no journal here")
	// ErrUntrustedLocks: the file system is not known to keep kernel locks, so
	// writing is refused. Reading works.
	ErrUntrustedLocks = errors.New("this file system does not keep locks reliably")
)

// Reading.
var (
	// ErrBlobMissing: a commit names a payload whose file is not there.
	ErrBlobMissing = errors.New("blob is missing")
	// ErrBlobDamaged: a payload's bytes do not match its name.
	ErrBlobDamaged = errors.New("blob is damaged")
	// ErrReplaced: another file has taken the log's place since it was opened.
	// Nothing more comes from this reader; open the journal again.
	ErrReplaced = errors.New("the journal was replaced by another file")
	// ErrNoSnapshot: no usable snapshot; fold from the start instead.
	ErrNoSnapshot = errors.New("no usable snapshot")
)

// Writing.
var (
	// ErrNotSaved: the disk refused; what was appended is in memory only. It is
	// trouble (try again), not damage.
	ErrNotSaved = errors.New("not saved")
	// ErrFenced: another owner opened a later epoch; this one must stop.
	ErrFenced = errors.New("another owner has taken this task over")
	// ErrClosed: the journal was closed.
	ErrClosed = errors.New("journal is closed")
)

// OwnerInfo describes the process that owns a task. A refused owner shows it to its user.
type OwnerInfo struct {
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`           // when the process took ownership
	Boot    string    `json:"boot,omitempty"`    // what the pid is of: a boot, and a namespace in it
	Host    string    `json:"host,omitempty"`    //
	Address string    `json:"address,omitempty"` // where to send input, e.g. http://127.0.0.1:7878
	Program string    `json:"program,omitempty"` // e.g. "roost run"
}

// BusyError: the task is owned by someone else.
type BusyError struct {
	Dir    string
	Holder OwnerInfo // zero when the lock file could not be read
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("task %s is in use by %s", e.Dir, e.Holder.Who())
}

// Who names an owner, with its machine or container when that is another one.
func (o OwnerInfo) Who() string {
	who := orElse(o.Program, "another program")
	if o.PID == 0 {
		return who
	}
	if here, err := os.Hostname(); o.Host != "" && (err != nil || o.Host != here) {
		return fmt.Sprintf("%s (pid %d on %s)", who, o.PID, o.Host)
	}
	return fmt.Sprintf("%s (pid %d)", who, o.PID)
}

// Damage is one place in the log that cannot be read as a commit.
type Damage struct {
	Seq    uint64 `json:"seq"`    // the sequence that is lost, 0 when unknown
	Offset int64  `json:"offset"` // byte offset in the log
	Length int64  `json:"length"` // bytes
	Reason string `json:"reason"` // e.g. "checksum does not match", "not JSON"
}

// DamageError takes the place of a lost commit in Read. It is damage (rebuild or
// confirm), not trouble (retry).
type DamageError struct{ Damage }

func (e *DamageError) Error() string {
	return fmt.Sprintf("journal: commit %d is damaged at byte %d: %s", e.Seq, e.Offset, e.Reason)
}

// Health is the result of a full verification.
type Health struct {
	Head         uint64   `json:"head"`
	Epoch        uint64   `json:"epoch"`
	Commits      uint64   `json:"commits"`
	TornTail     *Damage  `json:"torn_tail,omitempty"` // an unfinished last line: never was a commit
	Damaged      []Damage `json:"damaged,omitempty"`   // lost commits in the middle
	SetAside     []Damage `json:"set_aside,omitempty"` // commits of an older epoch behind a newer one
	MissingBlobs []Hash   `json:"missing_blobs,omitempty"`
	DamagedBlobs []Hash   `json:"damaged_blobs,omitempty"`
}

// OK reports whether nothing acknowledged is lost or unreadable.
func (h Health) OK() bool {
	return len(h.Damaged) == 0 && len(h.MissingBlobs) == 0 && len(h.DamagedBlobs) == 0
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
