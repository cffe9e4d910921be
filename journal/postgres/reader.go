package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/journal"
)

// Sizes of a batch of commits that is read at once. The first batches of a reading are small: most callers want the
// newest commits.
const (
	firstRows = 16
	mostRows  = 512
	mostBytes = 4 << 20
)

// reader is the journal.Reader of one journal.
type reader struct {
	in   *Journals
	id   int64
	name string
	seal *journal.Seal

	bases []journal.Base

	closing sync.Once
	closed  chan struct{}
}

var (
	_ journal.Prover = (*reader)(nil)
	_ journal.Stored = (*reader)(nil)
)

// OpenReader opens the journal called name for reading. The error is journal.ErrNotFound when the journal was never
// owned. seal verifies its commits; nil = they are not verified.
func (j *Journals) OpenReader(ctx context.Context, name string, seal *journal.Seal) (journal.Stored, error) {
	r := &reader{in: j, name: name, seal: seal, closed: make(chan struct{})}
	var seqs, epochs []int64
	found, err := database.Found(j.db.QueryRow(ctx, `
SELECT id, base_seqs, base_epochs FROM roost.journals WHERE name = $1 AND head > 0`, name), &r.id, &seqs, &epochs)
	if err != nil {
		return nil, fmt.Errorf("open journal %s: %w", name, err)
	}
	if !found {
		return nil, fmt.Errorf("open journal %s: %w", name, journal.ErrNotFound)
	}
	return r, r.begins(seqs, epochs)
}

// begins records the bases of the journal.
func (r *reader) begins(seqs, epochs []int64) error {
	if len(seqs) != len(epochs) {
		return fmt.Errorf("open journal %s: the lists of its bases differ in length", r.name)
	}
	for i := range seqs {
		r.bases = append(r.bases, journal.Base{Seq: uint64(seqs[i]), Epoch: uint64(epochs[i])})
	}
	return nil
}

// check refuses a call after Close, or with a context that has ended.
func (r *reader) check(ctx context.Context) error {
	select {
	case <-r.closed:
		return fmt.Errorf("journal %s: %w", r.name, journal.ErrClosed)
	default:
		return ctx.Err()
	}
}

// Close implements journal.Reader.
func (r *reader) Close() error {
	r.closing.Do(func() { close(r.closed) })
	return nil
}

// Head implements journal.Reader.
func (r *reader) Head(ctx context.Context) (uint64, error) {
	if err := r.check(ctx); err != nil {
		return 0, err
	}
	var head int64
	found, err := database.Found(r.in.db.QueryRow(ctx, `SELECT head FROM roost.journals WHERE id = $1`, r.id), &head)
	if err == nil && !found {
		err = journal.ErrNotFound
	}
	return uint64(head), api.Failed(err, "read the head of journal %s", r.name)
}

// Read implements journal.Reader.
func (r *reader) Read(ctx context.Context, from uint64) iter.Seq2[journal.Commit, error] {
	return func(yield func(journal.Commit, error) bool) {
		head, err := r.Head(ctx)
		if err != nil {
			yield(journal.Commit{}, err)
			return
		}
		r.walk(ctx, max(from, 1), head, false, r.decoding(yield))
	}
}

// Bases implements journal.Stored.
func (r *reader) Bases() []journal.Base { return r.bases }

// Lines implements journal.Stored.
func (r *reader) Lines(ctx context.Context, from uint64) iter.Seq2[journal.Line, error] {
	return func(yield func(journal.Line, error) bool) {
		head, err := r.Head(ctx)
		if err != nil {
			yield(journal.Line{}, err)
			return
		}
		r.walk(ctx, max(from, 1), head, false, yield)
	}
}

// walk yields the lines of the commits [from, to], in reverse if backward; in place of a lost commit, an error. It returns
// the commit to continue with, and whether the caller wants more.
func (r *reader) walk(ctx context.Context, from, to uint64, backward bool,
	yield func(journal.Line, error) bool) (at uint64, more bool) {
	if from > to {
		return from, true
	}
	at, end, step := from, to+1, uint64(1)
	if backward {
		at, end, step = to, from-1, -step
	}
	for rows := firstRows; at != end; rows = min(2*rows, mostRows) {
		low, high := at, to
		if backward {
			low, high = from, at
		}
		batch, err := r.lines(ctx, low, high, rows, backward)
		if err != nil {
			yield(journal.Line{}, err)
			return at, false
		}
		if len(batch) == 0 {
			batch = []journal.Line{{Seq: end}} // everything before it is lost
		}
		for _, l := range batch {
			for ; at != l.Seq; at += step {
				if !yield(journal.Line{}, lost(at)) {
					return at, false
				}
			}
			if at == end {
				break
			}
			if !yield(l, nil) {
				return at, false
			}
			at += step
		}
	}
	return at, true
}

// decoding returns a function that decodes lines and yields their commits.
func (r *reader) decoding(yield func(journal.Commit, error) bool) func(journal.Line, error) bool {
	return func(l journal.Line, err error) bool {
		if err != nil {
			return yield(journal.Commit{}, err)
		}
		return yield(r.decoded(l))
	}
}

// ReadBackward implements journal.Reader.
func (r *reader) ReadBackward(ctx context.Context, before uint64) iter.Seq2[journal.Commit, error] {
	return func(yield func(journal.Commit, error) bool) {
		head, err := r.Head(ctx)
		if err != nil {
			yield(journal.Commit{}, err)
			return
		}
		if before > 0 {
			head = min(head, before-1)
		}
		r.walk(ctx, 1, head, true, r.decoding(yield))
	}
}

// lost returns the error for a commit whose row is missing.
func lost(seq uint64) error {
	return &journal.DamageError{Damage: journal.Damage{Seq: seq, Reason: "its row is missing"}}
}

func (r *reader) decoded(l journal.Line) (journal.Commit, error) {
	c, err := journal.DecodeCommit(l.Text)
	base := journal.BaseOf(r.bases, l.Seq)
	c.Seq, c.Epoch = c.Seq+base.Seq, c.Epoch+base.Epoch
	if err == nil && c.Seq != l.Seq {
		err = &journal.DamageError{Damage: journal.Damage{Length: int64(len(l.Text)), Reason: fmt.Sprintf("it is commit %d", c.Seq)}}
	}
	if damage, ok := errors.AsType[*journal.DamageError](err); ok {
		damage.Seq = l.Seq
		return journal.Commit{}, damage
	}
	return c, err
}

// lines reads the lines of the commits [from, to]: at most rows lines and not much more than mostBytes, and at least
// one if there is one. It reads all rows before it returns, so that a slow caller holds no connection.
func (r *reader) lines(ctx context.Context, from, to uint64, rows int, backward bool) (list []journal.Line, err error) {
	if err := r.check(ctx); err != nil {
		return nil, err
	}
	order := "ASC"
	if backward {
		order = "DESC"
	}
	found := r.in.db.Query(ctx, `
SELECT seq, line FROM (
	SELECT seq, line, sum(octet_length(line)) OVER (ORDER BY seq `+order+`) - octet_length(line) AS before
	FROM (SELECT seq, line FROM roost.commits WHERE journal = $1 AND seq BETWEEN $2 AND $3 ORDER BY seq `+order+` LIMIT $4) AS newest
) AS sized WHERE before < $5 ORDER BY seq `+order, r.id, int64(from), int64(to), rows, mostBytes)
	var one journal.Line
	err = found.Each([]any{&one.Seq, &one.Text}, func() error {
		list = append(list, one)
		return nil
	})
	return list, api.Failed(err, "read journal %s", r.name)
}

// Follow implements journal.Reader.
func (r *reader) Follow(ctx context.Context, from uint64) iter.Seq2[journal.Commit, error] {
	return func(yield func(journal.Commit, error) bool) {
		// First subscribe, then look: what is committed between wakes us.
		wake, cancel := r.in.hub.followers.Subscribe(r.id)
		defer cancel()
		from = max(from, 1)
		for {
			head, err := r.Head(ctx)
			if err != nil {
				yield(journal.Commit{}, err)
				return
			}
			next, more := r.walk(ctx, from, head, false, r.decoding(yield))
			if !more {
				return
			}
			from = next
			select {
			case <-ctx.Done():
			case <-r.closed:
			case <-wake:
			}
		}
	}
}

// proven verifies the log up to head. The commits of a base belong to another log: they count as not signed.
func (r *reader) proven(ctx context.Context, head uint64) (*journal.Chain, error) {
	chain, base := journal.NewChain(r.seal), journal.BaseOf(r.bases, head+1)
	chain.Unsigned = base.Seq
	last := base.Seq
	var failed error
	r.walk(ctx, base.Seq+1, head, false, func(l journal.Line, err error) bool {
		if _, gone := errors.AsType[*journal.DamageError](err); gone {
			return true
		}
		if failed = err; err != nil {
			return false
		}
		last = l.Seq
		if _, _, err := journal.CheckCommit(l.Text); err != nil {
			chain.Altered = l.Seq // a line that is no commit
		} else {
			chain.Take(l.Seq, l.Text)
		}
		return true
	})
	chain.Cut = last < head
	return chain, failed
}

// Proof implements journal.Prover.
func (r *reader) Proof(ctx context.Context) (journal.Proof, error) {
	if r.seal == nil {
		return journal.Proof{}, r.check(ctx)
	}
	head, err := r.Head(ctx)
	if err != nil {
		return journal.Proof{}, err
	}
	chain, err := r.proven(ctx, head)
	return chain.Proof, err
}
