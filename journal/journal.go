// Package journal is the append-only log of one task: an ordered, checksummed,
// fenced sequence of commits, each of one or more opaque events, and the blobs
// that those events name.
//
// A journal does not know what a task is. It knows order (contiguous sequence
// numbers from 1), ownership (at most one owner, each with an epoch higher than
// any before it), durability (a commit exists for readers once it is synced,
// and not earlier) and integrity (every commit carries a crc32c).
//
// This package holds the types, interfaces and the queue of commits (Writer) that every backend shares.
// Package journal/filelog is the embedded default: one folder of local files.
// Package journal/journaltest is the behaviour suite each backend passes.
//
// # Commits
//
// A commit is one line (see EncodeCommit). All events of a line happened together: both histories, the outcome of a
// tool, the file records and the cost of a step cannot drift apart. A line without its newline is not a commit. Damage
// in the middle of a log loses that commit, which DamageError names; no later commit gets its number.
//
// # Trust
//
// A log decides which runs start, which questions are open and who answers them. So a program obeys only a log that
// this root wrote, in this place. Each commit carries a MAC (Seal): HMAC-SHA-256 over the name of the log (root id and
// task), the MAC of the commit before it, and its line. The record in journal.lock and the index are signed, too: the
// chain of MACs does not show that its end is missing; the record does, and it is durable before the first commit.
// Package store/rootkey holds the keys. A Proof names the newest commits that are not proven; store.Standing is what
// follows.
//
// Rejected: a mark of trust in each event, because every reader of a state would have to check it, and a forgotten
// check is a hole; a list of trusted tasks outside the root, because it costs a second sync for each grant, and does
// not show whether a commit was removed or inserted.
package journal

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/process"
)

// Event is one opaque JSON object. It must be valid JSON on one line.
type Event = json.RawMessage

// Commit is one synced step of a task. All its events happened together.
type Commit struct {
	Seq    uint64  // 1, 2, 3, ... without a gap
	Epoch  uint64  // the ownership it was written under; never falls
	At     int64   // Unix milliseconds, given by the writer
	By     string  // the run or actor that wrote it
	Blobs  []Hash  // payloads its events name, each synced before the commit
	Events []Event // at least one
}

// Draft is a commit that has no place in the log yet.
type Draft struct {
	At     int64
	By     string
	Blobs  []Hash
	Events []Event
}

// Reader reads one task's log. It never writes, creates or repairs anything,
// and never waits for the owner. A Reader is safe for concurrent use.
type Reader interface {
	// Head is the sequence of the newest readable commit, 0 when there is none.
	Head(ctx context.Context) (uint64, error)

	// Read yields the commits from sequence `from` (0 and 1 both mean the start) up to the head at the time of the
	// call, in order. In place of a commit that is damaged in the middle of the log it yields a *DamageError, and the
	// sequence continues after it if the caller does. Any other error ends it.
	Read(ctx context.Context, from uint64) iter.Seq2[Commit, error]

	// ReadBackward yields the commits before sequence `before` (0 = from the head, inclusive), newest first, reading
	// only as much as the caller takes.
	ReadBackward(ctx context.Context, before uint64) iter.Seq2[Commit, error]

	// Follow yields like Read, and then waits for commits that this process or another one makes later, until ctx
	// ends: then it yields ctx's error and stops.
	Follow(ctx context.Context, from uint64) iter.Seq2[Commit, error]

	// Blob opens a payload. The error is ErrBlobMissing for a missing payload, and ErrBlobDamaged for one whose bytes
	// do not match its name (ReadAll checks that, ReadAt does not).
	Blob(ctx context.Context, h Hash) (Blob, error)

	// Snapshot returns the newest derived snapshot that is verified against the log, or ErrNoSnapshot. It is a cache:
	// callers must work without it.
	Snapshot(ctx context.Context) (Snapshot, error)

	// Health reports what is known to be wrong, from a full verification.
	Health(ctx context.Context) (Health, error)

	Close() error
}

// Owner is the one writer of a task's log. Opening an Owner takes the task's
// lock, sets a torn tail aside, and commits `epoch.opened` before it returns.
type Owner interface {
	Reader

	// Epoch is this ownership's epoch.
	Epoch() uint64

	// Append puts a commit into the log and returns its sequence. It may buffer up to 200 ms; Barrier makes it
	// durable. Readers and followers see it only once it is synced. Append itself blocks only for memory, never for
	// the disk. After a failed write Append still accepts (nothing is lost while the process lives), up to a bound;
	// beyond that bound it returns ErrNotSaved.
	Append(ctx context.Context, d Draft) (uint64, error)

	// Barrier returns nil once everything appended before the call is synced.
	// While the disk refuses, it returns an error that wraps ErrNotSaved and the
	// cause; a later Barrier tries again and continues without a gap.
	Barrier(ctx context.Context) error

	// PutBlob stores a payload and syncs it. Storing the same bytes again costs a read and a sync, and repairs a stored
	// payload that was damaged.
	PutBlob(ctx context.Context, data []byte) (Hash, error)

	// PutBlobFrom stores all bytes of r, for payloads too big for memory.
	PutBlobFrom(ctx context.Context, r io.Reader) (Hash, int64, error)

	// SaveSnapshot replaces the derived snapshot (see Reader.Snapshot). A failure
	// costs speed, never data.
	SaveSnapshot(ctx context.Context, s Snapshot) error

	// Unsaved returns nil while everything before the last Barrier is durable, else the reason why saving fails at
	// present.
	Unsaved() error

	// Close flushes, syncs and releases the task. The log can be opened again whether or not Close returns an error.
	Close() error
}

// Blob is a stored payload.
type Blob interface {
	io.ReaderAt
	io.Closer
	Size() int64
	// ReadAll reads and verifies the whole payload.
	ReadAll() ([]byte, error)
}

// CopyBlob writes a payload to w. The error wraps ErrBlobDamaged when the bytes do not match the name.
func CopyBlob(w io.Writer, b Blob, name Hash) error {
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(w, sum), io.NewSectionReader(b, 0, b.Size())); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != string(name) {
		return fmt.Errorf("blob %s: %w", name, ErrBlobDamaged)
	}
	return nil
}

// CheckBlob reads a payload and compares it with its name.
func CheckBlob(ctx context.Context, r Reader, name Hash) error {
	b, err := r.Blob(ctx, name)
	if err != nil {
		return err
	}
	defer b.Close()
	return CopyBlob(io.Discard, b, name)
}

// Snapshot is a derived, opaque image of the state that a fold of the log up to Seq gives. Its writer versions the
// format.
type Snapshot struct {
	Seq  uint64
	Data []byte
}

// Hash names a blob: the lower-case hex SHA-256 of its bytes.
type Hash string

// Valid reports whether h is a well-formed name. Hashes come from log lines that anyone may have edited, and become
// paths: check them before use.
func (h Hash) Valid() bool {
	return len(h) == 2*sha256.Size && strings.Trim(string(h), "0123456789abcdef") == ""
}

// Errors of opening a journal.
var (
	// ErrNotFound: there is no journal here. Nothing was created.
	ErrNotFound = errors.New("no journal here")
	// ErrUntrustedLocks: the file system is not known to keep kernel locks, so
	// writing is refused. Reading works.
	ErrUntrustedLocks = errors.New("this file system does not keep locks reliably")
)

// Errors of reading a journal.
var (
	// ErrBlobMissing: a commit names a payload whose file is not there.
	ErrBlobMissing = errors.New("blob is missing")
	// ErrBlobDamaged: a payload's bytes do not match its name.
	ErrBlobDamaged = errors.New("blob is damaged")
	// ErrReplaced: another file has taken the log's place since it was opened. This reader yields nothing more; open
	// the journal again.
	ErrReplaced = errors.New("the journal was replaced by another file")
	// ErrNoSnapshot: no usable snapshot; fold from the start instead.
	ErrNoSnapshot = errors.New("no usable snapshot")
)

// Errors of writing a journal.
var (
	// ErrNotSaved: the disk refused, and the appended commits are in memory only. Unlike damage, this may pass: try
	// again.
	ErrNotSaved = errors.New("not saved")
	// ErrFenced: another owner opened a later epoch; this one must stop.
	ErrFenced = errors.New("another owner has taken this task over")
	// ErrClosed: the journal was closed.
	ErrClosed = errors.New("journal is closed")
)

// OwnerInfo describes the process that owns a task. A process that is refused ownership shows it to its user.
type OwnerInfo struct {
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`           // when the process took ownership
	Boot    string    `json:"boot,omitempty"`    // the boot, and the namespace in it, in which the pid is valid
	Host    string    `json:"host,omitempty"`    //
	Address string    `json:"address,omitempty"` // the address for input, e.g. http://127.0.0.1:7878
	Program string    `json:"program,omitempty"` // e.g. "roost run"
}

// Filled returns the record with missing members filled in from this process. started is when the process took
// ownership.
func (o OwnerInfo) Filled(started time.Time) OwnerInfo {
	o.PID = cmp.Or(o.PID, os.Getpid())
	o.Boot = cmp.Or(o.Boot, process.System())
	if o.Host == "" {
		o.Host, _ = os.Hostname() // without it the message is shorter
	}
	if o.Started.IsZero() {
		o.Started = started
	}
	return o
}

// Opened returns the event that an owner commits first. It leaves out members that matter only while the owner lives:
// the log is kept for ever.
func (o OwnerInfo) Opened() (Event, error) {
	o.Address, o.Host = "", ""
	return json.Marshal(struct {
		Type  string    `json:"type"`
		Owner OwnerInfo `json:"owner"`
	}{"epoch.opened", o})
}

// BusyError: the task is owned by someone else.
type BusyError struct {
	Dir    string
	Holder OwnerInfo // zero when the lock file could not be read
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("task %s is in use by %s", e.Dir, e.Holder.Who())
}

// Who names an owner, with its machine or container when that differs from this process's.
func (o OwnerInfo) Who() string {
	who := cmp.Or(o.Program, "another program")
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

// DamageError takes the place of a lost commit in Read. Damage needs a rebuild or a confirmation; a retry does not
// help.
type DamageError struct{ Damage }

func (e *DamageError) Error() string {
	return fmt.Sprintf("journal: commit %d is damaged at byte %d: %s", e.Seq, e.Offset, e.Reason)
}

// Whole yields the commits of a list without the errors for lost ones.
func Whole(list iter.Seq2[Commit, error]) iter.Seq2[Commit, error] {
	return func(yield func(Commit, error) bool) {
		for c, err := range list {
			if _, lost := errors.AsType[*DamageError](err); !lost && !yield(c, err) {
				return
			}
		}
	}
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

// CheckBlobs reads payloads of a log, and adds those that are missing or damaged.
func (h *Health) CheckBlobs(ctx context.Context, r Reader, names map[Hash]bool) error {
	for name := range names {
		switch err := CheckBlob(ctx, r, name); {
		case errors.Is(err, ErrBlobMissing):
			h.MissingBlobs = append(h.MissingBlobs, name)
		case errors.Is(err, ErrBlobDamaged):
			h.DamagedBlobs = append(h.DamagedBlobs, name)
		case err != nil:
			return err
		}
	}
	return nil
}

// OK reports whether nothing acknowledged is lost or unreadable.
func (h Health) OK() bool {
	return len(h.Damaged) == 0 && len(h.MissingBlobs) == 0 && len(h.DamagedBlobs) == 0
}
