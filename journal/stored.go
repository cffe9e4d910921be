package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
)

// Base is how much of another log a log begins with. The stored lines that follow it are numbered from 1 again, and so
// are their epochs: a fork's own lines do not change when its base does.
type Base struct {
	Seq   uint64 `json:"seq"`   // the last commit that counts
	Epoch uint64 `json:"epoch"` // own epochs come behind it
}

// Own is the number in the log's own part of a commit of the whole.
func (b Base) Own(seq uint64) uint64 { return max(seq, b.Seq) - b.Seq }

// BaseOf is the base that the stored line of commit seq is numbered behind. The bases of a log are in their order; each
// counts its own bases in.
func BaseOf(bases []Base, seq uint64) (b Base) {
	for _, next := range bases {
		if next.Seq < seq {
			b = next
		}
	}
	return b
}

// Line is a commit as it is stored.
type Line struct {
	Seq  uint64 // in the whole log
	Text []byte // with its newline; valid until the next line is read
}

// Stored is a Reader that gives the log as it is stored: another backend can store the same bytes. Both backends are.
type Stored interface {
	Reader
	// Bases are what the log begins with, in order. Most logs have none.
	Bases() []Base
	// Lines yields what Read yields, as it is stored. A lost commit is a *DamageError in its place.
	Lines(ctx context.Context, from uint64) iter.Seq2[Line, error]
}

// Sum is a hash of a log as it is stored, up to the commits that were asked for.
type Sum struct {
	Head uint64
	Hash [sha256.Size]byte
}

// Sums reads a log and returns its sum up to each of the given commits, which rise, and up to its head. Those that the log
// does not have are left out. Any damage is an error.
func Sums(ctx context.Context, log Stored, at ...uint64) (list []Sum, err error) {
	bases, all, head := log.Bases(), sha256.New(), uint64(0)
	note := func() { list = append(list, Sum{Head: head, Hash: [sha256.Size]byte(all.Sum(nil))}) }
	for l, err := range log.Lines(ctx, 1) {
		if err != nil {
			return nil, err
		}
		if l.Seq != head+1 {
			return nil, fmt.Errorf("commit %d follows commit %d", l.Seq, head)
		}
		b := BaseOf(bases, l.Seq)
		seq, _, err := CheckCommit(l.Text)
		if err != nil {
			return nil, fmt.Errorf("commit %d: %w", l.Seq, err)
		}
		if b.Seq+seq != l.Seq {
			return nil, fmt.Errorf("commit %d is stored as commit %d behind %d", l.Seq, seq, b.Seq)
		}
		if head++; BaseOf(bases, head+1).Seq == head { // its end is part of what is stored
			fmt.Fprintf(all, "base %d %d\n", head, BaseOf(bases, head+1).Epoch)
		}
		all.Write(l.Text)
		if len(at) > 0 && at[0] == head {
			note()
			at = at[1:]
		}
	}
	note()
	return list, nil
}

// Named are the payloads that a stored line names.
func (l Line) Named() ([]Hash, error) {
	if !bytes.Contains(l.Text, []byte(`,"blobs":[`)) {
		return nil, nil
	}
	c, err := DecodeCommit(l.Text)
	return c.Blobs, err
}
