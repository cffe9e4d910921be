package journal

import (
	"context"
	"encoding/json"
	"io"
	"iter"
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
	// call, in order. A commit that is damaged in the middle of the log is yielded as a *DamageError in its place,
	// and the sequence continues after it if the caller does. Any other error ends it.
	Read(ctx context.Context, from uint64) iter.Seq2[Commit, error]

	// ReadBackward yields the commits before sequence `before` (0 = from the head, inclusive), newest first, reading
	// only as much as the caller takes.
	ReadBackward(ctx context.Context, before uint64) iter.Seq2[Commit, error]

	// Follow yields like Read and then waits for what is committed after, by this
	// process or another one, until ctx ends (then it yields ctx's error and stops).
	Follow(ctx context.Context, from uint64) iter.Seq2[Commit, error]

	// Blob opens a payload. A missing one is ErrBlobMissing, one whose bytes do
	// not match its name ErrBlobDamaged (checked by ReadBlob, not by ReadAt).
	Blob(ctx context.Context, h Hash) (Blob, error)

	// Snapshot returns the newest derived snapshot that is verified against the
	// log, or ErrNoSnapshot. It is a cache: callers must manage without.
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

	// Append puts a commit into the log and returns its sequence. It may buffer
	// up to 200 ms; Barrier makes it durable. Readers and followers see it only
	// once it is synced. Append itself blocks only for memory, never for the disk.
	// After a failed write Append still accepts (nothing is lost while the process
	// lives), up to a bound; over it, it returns ErrNotSaved.
	Append(ctx context.Context, d Draft) (uint64, error)

	// Barrier returns nil once everything appended before the call is synced.
	// While the disk refuses, it returns an error that wraps ErrNotSaved and the
	// cause; a later Barrier tries again and continues without a gap.
	Barrier(ctx context.Context) error

	// PutBlob stores a payload and syncs it. Storing the same bytes again costs reading
	// them, and heals a stored payload that was damaged.
	PutBlob(ctx context.Context, data []byte) (Hash, error)

	// PutBlobFrom stores everything r gives, for payloads too big for memory.
	PutBlobFrom(ctx context.Context, r io.Reader) (Hash, int64, error)

	// SaveSnapshot replaces the derived snapshot (see Reader.Snapshot). A failure
	// costs speed, never data.
	SaveSnapshot(ctx context.Context, s Snapshot) error

	// Unsaved is nil while everything before the last Barrier is durable, else
	// the reason why saving does not get on.
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

// Snapshot is a derived, opaque image of the state that the log up to Seq folds
// into, in a format that its writer versions itself.
type Snapshot struct {
	Seq  uint64
	Data []byte
}
