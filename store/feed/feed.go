// Package feed is a root's log of the order in which the commits of all its tasks became durable. The stream of all
// tasks is made from it.
//
// A line names a task and how far its journal is synced; the events stay in the journal. The process that syncs a
// journal adds the line. The log is derived and may be deleted. A lost line costs nothing, because what is new in a line
// is counted from the task's line before it, not from what the writer believes. So two writers may add the same line, any
// process may add a line for an owner that was killed, and all readers find the same events after the same place,
// whenever they read.
//
// A place is a line with its checksum. A place that the log does not have, because the log was made again or dropped the
// line, is ErrUnknown.
//
// For a task that the log never named, the commits since the log began are new. Older commits were not meant for
// followers of this log.
//
// Rejected: one counter for all tasks, as an id in each event. Every sync would wait for all others, and restored copies
// would repeat numbers.
//
// Log is what a log must do, and package feedtest the behaviour that each passes: Files, and store/feed/postgres for
// servers that share a database.
//
// # Files
//
// Nothing is synced. Segments follow each other, 4 MiB each; 32 are kept. A segment begins with a table of how far
// the log before it announces each task, so that no reader needs an older segment.
//
// Limits: a kernel lock on the newest segment orders its writers; where there are no such locks (see journal/filelog)
// nothing is written and no reader gets anything. Tasks never leave the table, which takes about 90 bytes for each.
package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"time"

	"github.com/roost-dev/roost/esjson"
)

// Log is a feed as writers and readers use it. It is safe for concurrent use, also by several processes.
type Log interface {
	// Append adds a line.
	Append(ctx context.Context, l Line) error

	// Open opens the log. The zero place is the oldest line that is kept; a log that does not exist yet is read from
	// its beginning, once it exists. For any other place, Next first returns the line at that place; without such a
	// line the error is ErrUnknown.
	Open(ctx context.Context, from Place) (Reader, error)

	// OpenEnd opens the log after its newest line, and returns that line's place. For a log that does not exist yet,
	// it returns the zero place: all lines will be new.
	OpenEnd(ctx context.Context) (Reader, Place, error)
}

// Reader reads a log forward. It is for one goroutine, and writes nothing.
type Reader interface {
	// Next gives the next line; ok is false when there is none yet. The error is ErrGone when what follows is lost.
	Next(ctx context.Context) (e Entry, ok bool, err error)

	// Changes tells a caller when to call Next again. The log sends to wake when lines were added; nil = it sends
	// nothing. poll is the time after which to call Next even without a wake.
	Changes() (wake <-chan struct{}, poll time.Duration)

	// Left are the tasks that some process may own.
	Left(ctx context.Context) ([]Task, error)

	// Orphans are the tasks whose owners were killed, perhaps before they announced all that they committed.
	Orphans(ctx context.Context) ([]Task, error)

	Close() error
}

// Line announces how far a task's journal is synced. Source and Task are as store.Ref has them.
type Line struct {
	Source string `json:"source"`
	Task   string `json:"task"`
	Epoch  uint64 `json:"epoch"` // of the newest of the commits
	From   uint64 `json:"from"`  // From to To are the commits that the line's writer has not announced before
	To     uint64 `json:"to"`
	End    bool   `json:"end,omitempty"` // its owner releases it
}

// Place is a line of the log. The zero Place is before all that is kept.
type Place struct {
	Feed    string
	Segment uint64
	Offset  int64  // of the line in its segment; 0 is the head, before all lines
	Sum     uint32 // the line's checksum
}

// Entry is a line and the commits that it announces first.
type Entry struct {
	Line
	At Place
	// New are the commits that no line before it announces; none when To is less than From. From 0 is the first commit
	// since Birth, or Line.From if that comes first.
	New   struct{ From, To uint64 }
	Birth int64 // when the log began
}

// Reasons why a log cannot be read from a place, or not any further.
var (
	ErrUnknown = errors.New("the feed has no such place")
	ErrGone    = errors.New("the feed was deleted, or dropped what follows")
)

// errNone: there is no such segment yet, or it is not complete.
var errNone = errors.New("there is no feed yet")

// Task names a task of a root.
type Task struct{ Source, ID string }

// Announced is how far the lines before some line announce a task.
type Announced struct {
	Epoch, To uint64
}

// After gives the commits that a line announces first; none when to is less than from. before is nil when no line before
// it names the task. from 0 is the first commit since the log began, or the line's own From if that comes first.
func (l Line) After(before *Announced) (from, to uint64) {
	switch {
	case before == nil && l.From > 1:
		return 0, l.To
	case before == nil:
		return 1, l.To
	case l.Epoch < before.Epoch: // of an earlier owner: a later owner announces what it left
		return 1, 0
	case l.Epoch > before.Epoch && l.From > 0 && l.From <= before.To:
		return l.From, l.To // an older copy of the journal was restored, and continued
	}
	return before.To + 1, l.To
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const sealBytes = len(`,"crc":"00000000"}`)

// seal ends a JSON object that lacks its brace with its checksum.
func seal(b []byte) []byte {
	return fmt.Appendf(b, ",\"crc\":\"%08x\"}\n", crc32.Checksum(b, castagnoli))
}

// unseal splits a line into its content and its checksum; ok is false when the line is damaged.
func unseal(b []byte) (body []byte, sum uint32, ok bool) {
	at := len(b) - sealBytes
	if at < 0 {
		return nil, 0, false
	}
	sum = crc32.Checksum(b[:at], castagnoli)
	return b[:at], sum, string(b[at:]) == fmt.Sprintf(`,"crc":"%08x"}`, sum)
}

// Sum returns the line's checksum.
func (l Line) Sum() uint32 {
	text, _ := json.Marshal(l) // texts and numbers
	return crc32.Checksum(text[:len(text)-1], castagnoli)
}

// Check refuses a line whose names a feed cannot hold.
func (l Line) Check() error {
	if !plain(l.Source) || !plain(l.Task) {
		return fmt.Errorf("announce task %q of %q: a feed cannot hold these names", l.Task, l.Source)
	}
	return nil
}

// append adds the line to b.
func (l Line) append(b []byte) []byte {
	text, _ := json.Marshal(l) // texts and numbers
	return append(b, seal(text[:len(text)-1])...)
}

// parse reads a line without its newline.
func parse(b []byte) (l Line, sum uint32, ok bool) {
	if _, sum, ok = unseal(b); !ok {
		return l, sum, false
	}
	_, err := esjson.Take(b, "source", &l.Source, "task", &l.Task, "epoch", &l.Epoch, "from", &l.From, "to", &l.To,
		"end", &l.End)
	return l, sum, err == nil && plain(l.Source) && plain(l.Task)
}

// plain reports whether a name may be part of a line and of a path. Readers make no path of any other name.
func plain(name string) bool {
	return name != "" && len(name) <= 255 && name[0] != '.' && !strings.ContainsFunc(name, func(c rune) bool {
		return c < ' ' || c == '"' || c == '\\' || c == '/' || c == ':' || c == '\x7f'
	})
}
