package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/store/feed"
)

// segment is the segment of all places: a table has one.
const segment = 1

// batch is how many lines are read at once.
const batch = 500

// reader is a feed.Reader. The lines of a batch are read whole before they are used: a caller that takes its time holds no
// connection.
type reader struct {
	of    *Feed
	name  string // of the feed; "" = nothing was read, and the oldest line comes first
	at    int64  // the newest line that was read from the database
	ready []feed.Entry

	wake   <-chan struct{} // nil before Changes
	poll   time.Duration
	cancel func()
}

// row is a line as the table has it.
type row struct {
	id                      *int64 // nil: the row holds no line
	journal                 *string
	epoch, first, last      *int64
	ends                    *bool
	beforeEpoch, beforeHead *int64
}

const columns = `f.id, f.journal, f.epoch, f.first, f.last, f.ends, f.before_epoch, f.before_head`

func (r *row) into() []any {
	return []any{&r.id, &r.journal, &r.epoch, &r.first, &r.last, &r.ends, &r.beforeEpoch, &r.beforeHead}
}

// entry returns a row as an entry. The line of a journal without a task announces nothing.
func (f *Feed) entry(r row, name string, birth int64) (e feed.Entry) {
	task, ok := f.names.TaskOf(*r.journal)
	e.Line = feed.Line{
		Source: task.Source,
		Task:   task.ID,
		Epoch:  uint64(*r.epoch), //nolint:gosec // it was one
		From:   uint64(*r.first), //nolint:gosec // it was one
		To:     uint64(*r.last),  //nolint:gosec // it was one
		End:    *r.ends,
	}
	e.At = feed.Place{
		Feed:    name,
		Segment: segment,
		Offset:  *r.id,
		Sum:     e.Sum(),
	}
	e.Birth = birth
	var before *feed.Announced
	if r.beforeEpoch != nil {
		before = &feed.Announced{Epoch: uint64(*r.beforeEpoch), To: uint64(*r.beforeHead)} //nolint:gosec // they were
	}
	if e.New.From, e.New.To = e.After(before); !ok {
		e.New.From, e.New.To = 1, 0
	}
	return e
}

func (f *Feed) reader(name string, at int64) *reader { return &reader{of: f, name: name, at: at} }

// Open implements feed.Log.
func (f *Feed) Open(ctx context.Context, from feed.Place) (feed.Reader, error) {
	if from == (feed.Place{}) {
		return f.reader("", 0), nil
	}
	e, there, err := f.line(ctx, &from.Offset)
	if err != nil && !errors.Is(err, feed.ErrGone) {
		return nil, err
	}
	if !there || e.At != from {
		return nil, feed.ErrUnknown
	}
	return f.reader(e.At.Feed, from.Offset-1), nil
}

// OpenEnd implements feed.Log.
func (f *Feed) OpenEnd(ctx context.Context) (feed.Reader, feed.Place, error) {
	e, there, err := f.line(ctx, nil)
	if err != nil {
		return nil, feed.Place{}, err
	}
	if !there {
		return f.reader("", 0), feed.Place{}, nil
	}
	return f.reader(e.At.Feed, e.At.Offset), e.At, nil
}

// line returns a line, or with nil the newest one; there is false without a feed. A line that is missing is feed.ErrGone.
func (f *Feed) line(ctx context.Context, id *int64) (e feed.Entry, there bool, err error) {
	var name string
	var birth int64
	var r row
	there, err = database.Found(f.db.QueryRow(ctx, `
SELECT s.name, s.birth, `+columns+` FROM roost.feed_state s LEFT JOIN roost.feed f ON f.id = coalesce($1, s.last)`, id),
		append([]any{&name, &birth}, r.into()...)...)
	switch {
	case err != nil:
		return e, false, fmt.Errorf("look for a line of the feed: %w", err)
	case !there:
		return e, false, nil
	case r.id == nil:
		return e, false, fmt.Errorf("look for a line of the feed: it is missing: %w", feed.ErrGone)
	}
	return f.entry(r, name, birth), true, nil
}

// Next implements feed.Reader.
func (r *reader) Next(ctx context.Context) (e feed.Entry, ok bool, err error) {
	if len(r.ready) == 0 {
		if err := r.read(ctx); err != nil {
			return e, false, err
		}
	}
	if len(r.ready) == 0 {
		return e, false, nil
	}
	e, r.ready = r.ready[0], r.ready[1:]
	return e, true, nil
}

// read reads the next lines. One statement reads state and lines, so read notices when a line is missing.
func (r *reader) read(ctx context.Context) error {
	rows := r.of.db.Query(ctx, `
SELECT s.name, s.birth, s.last, `+columns+` FROM roost.feed_state s
LEFT JOIN LATERAL (SELECT * FROM roost.feed f WHERE f.id > $1 ORDER BY f.id LIMIT $2) f ON true ORDER BY f.id`, r.at, batch)
	var name string
	var birth, last int64
	var found row
	exists := false
	at, list := r.at, r.ready[:0:0]
	err := rows.Each(append([]any{&name, &birth, &last}, found.into()...), func() error {
		exists = true
		if r.name != "" && name != r.name {
			return feed.ErrGone
		}
		if found.id == nil {
			return nil
		}
		first := r.name == "" && len(list) == 0 // the oldest line may have any number
		if !first && *found.id != at+1 {
			return feed.ErrGone
		}
		at = *found.id
		list = append(list, r.of.entry(found, name, birth))
		return nil
	})
	switch {
	case errors.Is(err, feed.ErrGone):
		return feed.ErrGone
	case err != nil:
		return fmt.Errorf("read the feed: %w", err)
	case !exists && r.name == "": // there is no feed yet
		return nil
	case !exists, len(list) == 0 && last != at:
		return feed.ErrGone
	}
	r.name, r.at, r.ready = name, at, list
	return nil
}

// Changes implements feed.Reader.
func (r *reader) Changes() (wake <-chan struct{}, poll time.Duration) {
	if r.cancel == nil {
		r.wake, r.poll, r.cancel = r.of.journals.FollowAnnouncements()
	}
	return r.wake, r.poll
}

// Left implements feed.Reader: the tasks whose leases last.
func (r *reader) Left(ctx context.Context) (list []feed.Task, err error) {
	names, err := r.of.journals.Owned(ctx)
	return api.Some(names, r.of.names.TaskOf), err
}

// Orphans implements feed.Reader: the tasks whose leases have run out, and whose commits are not all announced.
func (r *reader) Orphans(ctx context.Context) ([]feed.Task, error) {
	rows := r.of.db.Query(ctx, `
SELECT j.name FROM roost.journals j LEFT JOIN roost.feed_heads h ON h.journal = j.name
WHERE j.owner IS NOT NULL AND j.lease_until < clock_timestamp() AND j.head > coalesce(h.head, 0)`)
	names, err := database.Column[string](rows)
	if err != nil {
		return nil, fmt.Errorf("look for commits that are not announced: %w", err)
	}
	return api.Some(names, r.of.names.TaskOf), nil
}

// Close implements feed.Reader.
func (r *reader) Close() error {
	if r.cancel != nil {
		r.cancel()
	}
	return nil
}
