package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/journal"
)

// Restore makes a journal that is stored like from: the same lines, with the payloads that they name. It makes all of
// it or nothing. over is the head of the journal of that name that it replaces, 0 = there is none; the caller has
// checked that from begins with that journal's commits. A journal with another head, or with an owner, stays as it
// is.
func (j *Journals) Restore(ctx context.Context, name string, over uint64, from journal.Stored) error {
	err := j.db.Transaction(ctx, func(tx *database.Tx) error {
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
		lines := &restored{tx: tx, id: id, bases: from.Bases(), named: map[journal.Hash]bool{}}
		for l, err := range from.Lines(ctx, 1) {
			if err == nil {
				err = lines.add(ctx, l)
			}
			if err != nil {
				return err
			}
		}
		if err := lines.flush(ctx); err != nil {
			return err
		}
		failpoint.Hit("restore.copied")
		for _, h := range slices.Sorted(maps.Keys(lines.named)) { // see payload.Put
			if err := restoreBlob(ctx, tx, id, from, h); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `UPDATE roost.journals SET head = $2, epoch = $3 WHERE id = $1`, id, int64(lines.head), int64(lines.epoch))
		return err
	})
	return api.Failed(database.Explained(err), "restore journal %s", name)
}

// makeRoom removes the journal that Restore replaces.
func makeRoom(ctx context.Context, tx *database.Tx, name string, over uint64) error {
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
		return fmt.Errorf("it already has %d commits, not %d", head, over)
	}
	return removeJournal(ctx, tx, id)
}

// restored stores the lines of a journal that is restored. Lines wait until there are enough for one statement.
type restored struct {
	tx    *database.Tx
	id    int64
	bases []journal.Base

	seqs  []int64
	texts [][]byte
	bytes int

	head, epoch uint64
	named       map[journal.Hash]bool
}

// add checks the next line and queues it for storing.
func (r *restored) add(ctx context.Context, l journal.Line) error {
	seq, epoch, err := journal.CheckCommit(l.Text)
	if err != nil {
		return err
	}
	base := journal.BaseOf(r.bases, l.Seq)
	if l.Seq != r.head+1 || base.Seq+seq != l.Seq {
		return fmt.Errorf("commit %d comes where commit %d should", base.Seq+seq, r.head+1)
	}
	named, err := l.Named()
	if err != nil {
		return err
	}
	for _, h := range named {
		r.named[h] = true
	}
	if r.bytes += len(l.Text); r.bytes > maxBatch || len(r.seqs) == maxLines {
		if err := r.flush(ctx); err != nil {
			return err
		}
		r.bytes = len(l.Text)
	}
	r.head, r.epoch = l.Seq, max(r.epoch, base.Epoch+epoch)
	r.seqs, r.texts = append(r.seqs, int64(l.Seq)), append(r.texts, bytes.Clone(l.Text))
	return nil
}

// flush stores the queued lines.
func (r *restored) flush(ctx context.Context) error {
	_, err := r.tx.Exec(ctx, `
INSERT INTO roost.commits (journal, seq, line) SELECT $1, l.seq, l.line FROM unnest($2::bigint[], $3::bytea[]) AS l(seq, line)`,
		r.id, r.seqs, r.texts)
	r.seqs, r.texts, r.bytes = r.seqs[:0], r.texts[:0], 0
	return err
}

// restoreBlob stores a payload of another journal, once its bytes are known to match its name.
func restoreBlob(ctx context.Context, tx *database.Tx, id int64, from journal.Reader, h journal.Hash) error {
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
