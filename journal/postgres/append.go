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
	maxBatch   = 8 << 20 // bytes of lines in one statement; a longer line goes alone
	maxLines   = 1000    // in one statement
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
	answerTime = 10 * time.Second // how long the database may take for one statement
)

// line is a commit as it is stored.
type line struct {
	seq   uint64
	bytes []byte
}

// Append implements journal.Owner.
func (o *owner) Append(ctx context.Context, d journal.Draft) (uint64, error) {
	for {
		if err := o.check(ctx); err != nil {
			return 0, err
		}
		o.mu.Lock()
		if o.fatal != nil {
			defer o.mu.Unlock()
			return 0, o.fatal
		}
		if o.bytes < o.opt.MaxUnsaved {
			seq, err := o.put(d)
			o.mu.Unlock()
			return seq, err
		}
		if o.trouble != nil {
			defer o.mu.Unlock()
			return 0, fmt.Errorf("append to journal %s: %d bytes wait in memory already: %w", o.name, o.bytes, o.trouble)
		}
		room := o.room // the database works, but is slower than the caller
		o.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
		case <-o.closed:
		}
	}
}

// put queues a commit. The caller holds mu, or is alone.
func (o *owner) put(d journal.Draft) (uint64, error) {
	base := journal.BaseOf(o.bases, o.next)
	b, err := journal.AppendSigned(nil, journal.Commit{
		Seq:    o.next - base.Seq,
		Epoch:  o.epoch - base.Epoch,
		At:     d.At,
		By:     d.By,
		Blobs:  d.Blobs,
		Events: d.Events,
	}, o.chain)
	if err != nil {
		return 0, err
	}
	if len(o.queue) == 0 {
		o.since = time.Now()
		o.changed() // the flusher sets its clock
	}
	o.queue = append(o.queue, line{o.next, b})
	o.bytes += len(b)
	o.next++
	return o.next - 1, nil
}

// changed makes the flusher check its state again.
func (o *owner) changed() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// Barrier implements journal.Owner. Callers that wait at the same time share one statement.
func (o *owner) Barrier(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o.mu.Lock()
	if o.fatal != nil || len(o.queue) == 0 {
		defer o.mu.Unlock()
		return o.fatal
	}
	done := o.waiters.Add(o.next - 1)
	o.changed()
	o.mu.Unlock()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Unsaved implements journal.Owner.
func (o *owner) Unsaved() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fatal != nil && len(o.queue) > 0 {
		return o.fatal
	}
	return o.trouble
}

// run is the flusher: it saves queued commits when a Barrier waits or their time is up, and tries again after a
// failure.
func (o *owner) run() {
	defer close(o.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		wait := o.due()
		if wait <= 0 {
			_ = o.flush() // it keeps the error in trouble and gives it to the waiters
			wait = o.due()
		}
		timer.Reset(max(wait, 0))
		select {
		case <-o.wake:
		case <-timer.C:
		case <-o.quit:
			_ = o.flush()
			return
		}
	}
}

// due returns how long the flusher may sleep; 0 or less means that it must flush now.
func (o *owner) due() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.fatal != nil || len(o.queue) == 0:
		return time.Hour
	case len(o.waiters) > 0 || o.bytes >= o.opt.MaxUnsaved && o.trouble == nil:
		return 0
	case o.trouble != nil:
		return time.Until(o.retryAt)
	}
	return time.Until(o.since.Add(o.opt.FlushAfter))
}

// flush commits the whole queue, and answers the Barriers. One goroutine calls it at a time.
func (o *owner) flush() error {
	for {
		o.mu.Lock()
		batch, from, fatal := o.batch(), o.synced, o.fatal
		o.mu.Unlock()
		if len(batch) == 0 || fatal != nil {
			return fatal
		}
		asked := time.Now()
		head, err := o.save(from, batch)
		if err = o.settle(head, err, asked); err != nil {
			return err
		}
	}
}

// batch returns the beginning of the queue, as much as fits into one statement. The caller holds mu.
func (o *owner) batch() []line {
	size := 0
	for i, l := range o.queue {
		if size += len(l.bytes); i > 0 && size > maxBatch || i == maxLines {
			return o.queue[:i]
		}
	}
	return o.queue
}

// save appends the batch behind commit from, and returns the newest commit that is known to be in the database.
func (o *owner) save(from uint64, batch []line) (head uint64, err error) {
	if o.unsure {
		if head, err := o.lookUp(from, batch, nil); err != nil || head > from {
			return head, err
		}
	}
	err = o.in.group.append(&addition{owner: o, from: int64(from), lines: batch})
	var refused *pgconn.PgError
	switch {
	case err == nil:
		return batch[len(batch)-1].seq, nil
	case errors.As(err, &refused): // nothing of the statement is there
		return from, unsaved("append to the log", o.name, err)
	}
	o.unsure = true
	return o.lookUp(from, batch, err)
}

// lookUp finds out which commits of the batch the database has: no answer came, or the head was not where this owner
// left it. It also renews the lease, and settle counts the lease from this request on. It locks the row of the
// journal, so it waits, for a limited time, for a statement that still runs. It commits, so it also waits until the
// standby has what lookUp found.
func (o *owner) lookUp(from uint64, batch []line, cause error) (uint64, error) {
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
WHERE id = $1 RETURNING epoch, head`, o.id, int64(o.epoch), o.in.opt.Lease), &epoch, &head)
		if err == nil && !found {
			err = fmt.Errorf("it was deleted: %w", journal.ErrFenced)
		}
		if err != nil {
			return err
		}
		rows := tx.Query(ctx, `SELECT seq, line FROM roost.commits WHERE journal = $1 AND seq BETWEEN $2 AND $3 ORDER BY seq`,
			o.id, int64(from+1), int64(batch[len(batch)-1].seq))
		var seq uint64
		var text []byte
		return rows.Each([]any{&seq, &text}, func() error {
			if seq == have+1 && bytes.Equal(text, batch[have-from].bytes) {
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
	case uint64(epoch) != o.epoch || uint64(head) != have: // another owner, or another hand, has written
		return have, fmt.Errorf("append to journal %s: epoch %d is at commit %d: %w", o.name, epoch, head, journal.ErrFenced)
	case have == from && cause != nil:
		return from, unsaved("append to the log", o.name, cause)
	}
	return have, nil
}

// settle records the outcome of an attempt: commits up to head are in the database.
func (o *owner) settle(head uint64, err error, asked time.Time) error {
	o.mu.Lock()
	moved := head > o.synced
	for len(o.queue) > 0 && o.queue[0].seq <= head {
		o.bytes -= len(o.queue[0].bytes)
		o.queue[0] = line{}
		o.queue = o.queue[1:]
	}
	if moved {
		o.synced = head
		o.waiters.Answer(head, nil)
		close(o.room)
		o.room = make(chan struct{})
	}
	switch {
	case err == nil:
		o.trouble, o.backoff, o.since = nil, 0, time.Now()
		if until := asked.Add(o.in.opt.Lease); until.After(o.until) {
			o.until = until
		}
	case errors.Is(err, journal.ErrFenced):
		o.fatal = err
		o.waiters.Answer(o.next, err)
	default:
		o.trouble = err
		o.backoff = min(max(2*o.backoff, firstPause), lastPause)
		o.retryAt = time.Now().Add(o.backoff)
		o.waiters.Answer(o.next, err)
	}
	o.mu.Unlock()
	if moved {
		o.in.hub.committed(o.id, o.announces(head, false))
	}
	return err
}
