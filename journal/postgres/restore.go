package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/journal"
)

// Restore makes a journal that is stored as another one is: the same lines, with the payloads that they name. Either all
// of it is there or nothing. over is the head of the journal of that name that it replaces, 0 = there is none; the caller
// has found that the other one begins with it. One with another head, or with an owner, is left as it is.
func (j *Journals) Restore(ctx context.Context, name string, over uint64, from journal.Stored) error {
	err := pgx.BeginFunc(ctx, j.db, func(tx pgx.Tx) error {
		if err := makeRoom(ctx, tx, name, over); err != nil {
			return err
		}
		var seqs, epochs []int64 // NULL without a base
		for _, b := range from.Bases() {
			seqs, epochs = append(seqs, int64(b.Seq)), append(epochs, int64(b.Epoch))
		}
		var id int64
		err := tx.QueryRow(ctx, `INSERT INTO roost.journals (name, base_seqs, base_epochs) VALUES ($1, $2, $3) RETURNING id`,
			name, seqs, epochs).Scan(&id)
		if err != nil {
			return err
		}
		rows := &restored{id: id, bases: from.Bases(), named: map[journal.Hash]bool{}}
		var stop func()
		rows.next, stop = iter.Pull2(from.Lines(ctx, 1))
		defer stop()
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{"roost", "commits"}, []string{"journal", "seq", "line"}, rows); err != nil {
			if rows.err != nil { // the database only knows that the rows ended
				return rows.err
			}
			return err
		}
		failpoint.Hit("restore.copied")
		for _, h := range slices.Sorted(maps.Keys(rows.named)) { // see payload.Put
			if err := restoreBlob(ctx, tx, id, from, h); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `UPDATE roost.journals SET head = $2, epoch = $3 WHERE id = $1`, id, int64(rows.head), int64(rows.epoch))
		return err
	})
	if err != nil {
		return fmt.Errorf("restore journal %s: %w", name, database.Explained(err))
	}
	return nil
}

// makeRoom removes the journal that is replaced.
func makeRoom(ctx context.Context, tx pgx.Tx, name string, over uint64) error {
	var id, head int64
	var held bool
	found, err := database.Found(tx.QueryRow(ctx, `
SELECT id, head, coalesce(lease_until > clock_timestamp(), false) FROM roost.journals WHERE name = $1 FOR UPDATE`, name), &id, &head, &held)
	if err != nil || !found {
		return err
	}
	if held {
		return &journal.BusyError{Dir: name}
	}
	if uint64(head) != over {
		return fmt.Errorf("it is there with %d commits, and not with %d", head, over)
	}
	return removeJournal(ctx, tx, id)
}

// restored are the rows of a journal's lines, for COPY.
type restored struct {
	id    int64
	bases []journal.Base
	next  func() (journal.Line, error, bool)

	head, epoch uint64
	named       map[journal.Hash]bool
	text        []byte
	err         error
}

// Next implements pgx.CopyFromSource.
func (r *restored) Next() bool {
	l, err, more := r.next()
	if r.err = err; !more || err != nil {
		return false
	}
	seq, epoch, err := journal.CheckCommit(l.Text)
	base := journal.BaseOf(r.bases, l.Seq)
	if err == nil && (l.Seq != r.head+1 || base.Seq+seq != l.Seq) {
		err = fmt.Errorf("commit %d comes where commit %d should", base.Seq+seq, r.head+1)
	}
	var named []journal.Hash
	if err == nil {
		named, err = l.Named()
	}
	for _, h := range named {
		r.named[h] = true
	}
	r.head, r.epoch, r.text, r.err = l.Seq, max(r.epoch, base.Epoch+epoch), l.Text, err
	return err == nil
}

// Values implements pgx.CopyFromSource.
func (r *restored) Values() ([]any, error) { return []any{r.id, int64(r.head), r.text}, nil }

// Err implements pgx.CopyFromSource.
func (r *restored) Err() error { return r.err }

// restoreBlob stores a payload of another journal, once its bytes are known to match its name.
func restoreBlob(ctx context.Context, tx pgx.Tx, id int64, from journal.Reader, h journal.Hash) error {
	b, err := from.Blob(ctx, h)
	if err != nil {
		return err
	}
	defer b.Close()
	sum := sha256.New()
	whole := io.TeeReader(io.NewSectionReader(b, 0, b.Size()), sum)
	key, err := hex.DecodeString(string(h))
	if err != nil {
		return err
	}
	if err := putNamed(ctx, tx, id, key, whole, b.Size()); err != nil {
		return err
	}
	if !bytes.Equal(sum.Sum(nil), key) {
		return fmt.Errorf("blob %s: its bytes do not match its name: %w", h, journal.ErrBlobDamaged)
	}
	return nil
}
