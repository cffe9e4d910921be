package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/journal"
)

const (
	maxBatch   = 8 << 20          // bytes of lines in one statement; a longer line goes alone
	maxLines   = 1000             // in one statement
	answerTime = 10 * time.Second // how long the database may take for one statement
)

// batch returns the beginning of a queue, as much as fits into one statement.
func batch(queue []journal.Line) []journal.Line {
	size := 0
	for i, l := range queue {
		if size += len(l.Text); i > 0 && size > maxBatch || i == maxLines {
			return queue[:i]
		}
	}
	return queue
}

// save appends the beginning of the queue, and returns the newest commit that is known to be in the database.
func (o *owner) save(queue []journal.Line) (head uint64, err error) {
	asked, from, lines := time.Now(), queue[0].Seq-1, batch(queue)
	if o.unsure {
		head, err = o.lookUp(from, lines, nil)
	}
	if err == nil && head <= from {
		head, err = o.append(from, lines)
	}
	if err == nil {
		o.leased(asked.Add(o.in.opt.Lease))
	}
	return head, err
}

func (o *owner) append(from uint64, lines []journal.Line) (head uint64, err error) {
	err = o.in.group.append(&addition{owner: o, from: int64(from), lines: lines})
	var refused *pgconn.PgError
	switch {
	case err == nil:
		return lines[len(lines)-1].Seq, nil
	case errors.As(err, &refused): // nothing of the statement is there
		return from, unsaved("append to the log", o.name, err)
	}
	o.unsure = true
	return o.lookUp(from, lines, err)
}

// lookUp finds out which commits of the batch the database has: no answer came, or the head was not where this owner
// left it. It also renews the lease, and save counts the lease from before this request. It locks the row of the
// journal, so it waits, for a limited time, for a statement that still runs. It commits, so it also waits until the
// standby has what lookUp found.
func (o *owner) lookUp(from uint64, lines []journal.Line, cause error) (uint64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	have := from
	var epoch, head int64
	err := o.in.db.Transaction(ctx, func(tx *database.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '1s'`); err != nil {
			return err
		}
		found, err := database.Found(tx.QueryRow(ctx, `
UPDATE roost.journals SET lease_until = CASE epoch WHEN $2 THEN clock_timestamp() + $3::interval ELSE lease_until END
WHERE id = $1 RETURNING epoch, head`, o.id, int64(o.Epoch()), o.in.opt.Lease), &epoch, &head)
		if err == nil && !found {
			err = fmt.Errorf("it was deleted: %w", journal.ErrFenced)
		}
		if err != nil {
			return err
		}
		rows := tx.Query(ctx, `SELECT seq, line FROM roost.commits WHERE journal = $1 AND seq BETWEEN $2 AND $3 ORDER BY seq`,
			o.id, int64(from+1), int64(lines[len(lines)-1].Seq))
		var seq uint64
		var text []byte
		return rows.Each([]any{&seq, &text}, func() error {
			if seq == have+1 && bytes.Equal(text, lines[have-from].Text) {
				have = seq
			}
			return nil
		})
	})
	if err != nil {
		return from, unsaved("append to the log", o.name, errors.Join(cause, err))
	}
	o.unsure = false
	switch {
	case uint64(epoch) != o.Epoch() || uint64(head) != have: // another owner, or another hand, has written
		return have, fmt.Errorf("append to journal %s: epoch %d is at commit %d: %w", o.name, epoch, head, journal.ErrFenced)
	case have == from && cause != nil:
		return from, unsaved("append to the log", o.name, cause)
	}
	return have, nil
}
