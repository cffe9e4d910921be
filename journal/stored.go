package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
)

// Base is the part of another log with which a log begins. The stored lines after it are numbered from 1 again, and
// so are their epochs: a fork's own lines do not change when its base does.
type Base struct {
	Seq   uint64 `json:"seq"`   // the last commit that counts
	Epoch uint64 `json:"epoch"` // epochs of the log's own part follow it
}

// Own returns the number that a commit of the whole log has in the log's own part.
func (b Base) Own(seq uint64) uint64 { return max(seq, b.Seq) - b.Seq }

// BaseOf returns the base that precedes the stored line of commit seq. The bases of a log are in their order; each
// one includes the bases before it.
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

// Stored is a Reader that returns the log as it is stored, so that another backend can store the same bytes. Readers
// of both backends are Stored.
type Stored interface {
	Reader
	// Bases returns the parts of other logs with which the log begins, in order. Most logs have none.
	Bases() []Base
	// Lines yields the commits of Read as they are stored. In place of a lost commit it yields a *DamageError.
	Lines(ctx context.Context, from uint64) iter.Seq2[Line, error]
}

// Sum is a hash of a log as it is stored, up to a commit.
type Sum struct {
	Head uint64
	Hash [sha256.Size]byte
}

// Sums reads a log and returns its sum up to each of the given commits, which ascend, and up to its head. It leaves
// out commits that the log does not have. Any damage is an error.
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
			return nil, fmt.Errorf("commit %d is stored in the place of commit %d, after commit %d", l.Seq, seq, b.Seq)
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

// Named returns the payloads that a stored line names.
func (l Line) Named() ([]Hash, error) {
	if !bytes.Contains(l.Text, []byte(`,"blobs":[`)) {
		return nil, nil
	}
	c, err := DecodeCommit(l.Text)
	return c.Blobs, err
}
