package filelog

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/roost-dev/roost/journal"
)

// tailBytes is how much of the log's end an owner keeps in memory for followers
// in its own process: some turns. Whoever is further behind reads the file.
const tailBytes = 64 << 10

// entry is a commit and the bytes of the log that it takes.
type entry struct {
	commit journal.Commit
	start  int64
	size   int64
}

// handover gives a commit as a reader of its line would find it. Followers in
// this process get it without the way through the disk, and must not see a
// difference.
func handover(c journal.Commit, line []byte) entry {
	e := entry{commit: c, size: int64(len(line))}
	broken := func(event journal.Event) bool { return bytes.ContainsAny(event, "\r\n") }
	if !utf8.ValidString(c.By) || slices.ContainsFunc(c.Events, broken) { // the line spells it in other bytes
		if back, err := journal.DecodeCommit(line); err == nil {
			e.commit = back
		}
	}
	if len(e.commit.Blobs) == 0 {
		e.commit.Blobs = nil
	}
	return e
}

// tail is the newest synced commits of an owner, each beginning where the one before ends. It is bounded, so that a
// stuck follower costs nothing: it reads the file when it comes back. The newest commit is kept at any size: a
// follower that keeps up needs the disk for none.
type tail struct {
	mu      sync.Mutex
	entries []entry
	end     int64 // how far the log is synced
	bytes   int64
}

// begin sets the offset of the owner's first commit.
func (t *tail) begin(off int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries, t.bytes, t.end = nil, 0, off
}

// add takes commits that were just synced.
func (t *tail) add(list []entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range list {
		e.start = t.end
		t.end += e.size
		t.bytes += e.size
		t.entries = append(t.entries, e)
	}
	gone := 0
	for ; gone < len(t.entries)-1 && t.bytes > tailBytes; gone++ {
		t.bytes -= t.entries[gone].size
		t.entries[gone] = entry{} // the slice must not keep the payload
	}
	t.entries = t.entries[gone:]
}

// handed bounds what a follower takes at once: it copies this much while the
// owner would have to wait for it.
const handed = 64

// from returns the next commits after an offset of the log. ok reports whether the tail knows the offset; only then
// an empty list means that there is nothing more. A nil tail knows none.
func (t *tail) from(off int64) (list []entry, ok bool) {
	if t == nil {
		return nil, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if off == t.end {
		return nil, true
	}
	i, ok := slices.BinarySearchFunc(t.entries, off, func(e entry, off int64) int { return cmp.Compare(e.start, off) })
	if !ok {
		return nil, false
	}
	return append(list, t.entries[i:min(i+handed, len(t.entries))]...), true
}
