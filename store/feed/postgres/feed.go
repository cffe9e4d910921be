// Package postgres keeps the feed of servers that share a database in that database, in the tables roost.feed,
// roost.feed_state and roost.feed_heads.
//
// Each process adds what its owners committed, all of some milliseconds in one statement, so that no commit waits for the
// feed (see journal/postgres, AnnounceTo). The statement begins with a change of the one row of feed_state, which all
// writers wait for: the numbers of lines have no gap, and a line is visible only when all lines before it are. So a
// reader that asks for the lines behind a number misses none, and notices when lines were dropped.
//
// A place is the number of a line, with the line's checksum. It is valid on every server.
//
// feed_heads has how far each journal is announced. A line keeps what its journal had before it: what is new in it follows
// from the line alone (feed.Line.After), whoever reads it, and whenever.
//
// A process that is killed between a commit and its line leaves a lease that runs out. Orphans finds such journals by the
// lease, and by a head that feed_heads does not have.
//
// Readers on other servers wake by the notification of the commits; they also look every second.
//
// The newest million lines are kept. TRUNCATE of the three tables deletes the feed; the next line begins another one.
package postgres

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/journal/postgres"
	"github.com/roost-dev/roost/store/feed"
)

// Names are the names of journals in the database.
type Names interface {
	// JournalOf is the name of a task's journal; ok is false when no task can have this name.
	JournalOf(t feed.Task) (name string, ok bool)
	// TaskOf returns the task of a journal; ok is false for journals that the feed does not announce, such as those
	// in the trash.
	TaskOf(name string) (t feed.Task, ok bool)
}

// Feed is the feed of the servers that share a database. It is safe for concurrent use.
type Feed struct {
	journals *postgres.Journals
	db       *database.DB
	names    Names
	keep     int64 // lines
}

var _ feed.Log = (*Feed)(nil)

// keepLines is about the number of lines that the files of a feed hold.
const keepLines = 1 << 20

// New makes the feed of journals: from now on it announces what their owners commit.
func New(journals *postgres.Journals, names Names) *Feed {
	f := &Feed{
		journals: journals,
		db:       journals.DB(),
		names:    names,
		keep:     keepLines,
	}
	journals.AnnounceTo(f.announce)
	return f
}

// announce adds a line for each journal that belongs to a task.
func (f *Feed) announce(ctx context.Context, list []postgres.Synced) error {
	var rows lines
	for _, s := range list {
		if t, ok := f.names.TaskOf(s.Journal); ok {
			rows.add(s.Journal, feed.Line{
				Source: t.Source,
				Task:   t.ID,
				Epoch:  s.Epoch,
				From:   s.From,
				To:     s.To,
				End:    s.Last,
			})
		}
	}
	return f.insert(ctx, rows)
}

// Append implements feed.Log.
func (f *Feed) Append(ctx context.Context, l feed.Line) error {
	if err := l.Check(); err != nil {
		return err
	}
	journal, ok := f.names.JournalOf(feed.Task{Source: l.Source, ID: l.Task})
	if !ok {
		return fmt.Errorf("announce task %q of %q: no journal has this name", l.Task, l.Source)
	}
	var rows lines
	rows.add(journal, l)
	if err := f.insert(ctx, rows); err != nil {
		return err
	}
	f.journals.Announced()
	return nil
}

// lines are lines by columns, one a journal.
type lines struct {
	journals              []string
	epochs, firsts, lasts []int64
	ends                  []bool
}

func (r *lines) add(journal string, l feed.Line) {
	r.journals = append(r.journals, journal)
	r.epochs = append(r.epochs, int64(l.Epoch)) //nolint:gosec // a count of owners
	r.firsts = append(r.firsts, int64(l.From))  //nolint:gosec // a count of commits
	r.lasts = append(r.lasts, int64(l.To))      //nolint:gosec // a count of commits
	r.ends = append(r.ends, l.End)
}

// insert adds lines in one statement. Without an answer the outcome is unknown, and the caller may repeat it: a line
// that is added twice announces nothing the second time. How far a journal is announced is what feed.Line.After
// gives.
func (f *Feed) insert(ctx context.Context, rows lines) error {
	n := int64(len(rows.journals))
	if n == 0 {
		return nil
	}
	name := make([]byte, 8)
	_, _ = rand.Read(name) // never fails
	var last int64
	err := f.db.QueryRow(ctx, `
WITH line AS (
	SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bool[]) WITH ORDINALITY
		AS l(journal, epoch, first, last, ends, n)
), state AS (
	INSERT INTO roost.feed_state AS s (name, birth, last)
	VALUES ($6, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, $7)
	ON CONFLICT (one) DO UPDATE SET last = s.last + $7
	RETURNING last
), heads AS (
	INSERT INTO roost.feed_heads AS h (journal, epoch, head, first)
	SELECT line.journal, line.epoch, line.last, line.first FROM line, state
	ON CONFLICT (journal) DO UPDATE SET
		before_epoch = h.epoch,
		before_head = h.head,
		epoch = greatest(h.epoch, EXCLUDED.epoch),
		head = CASE
			WHEN EXCLUDED.epoch < h.epoch THEN h.head
			WHEN EXCLUDED.epoch > h.epoch AND EXCLUDED.first BETWEEN 1 AND h.head THEN greatest(EXCLUDED.head, EXCLUDED.first - 1)
			ELSE greatest(EXCLUDED.head, h.head)
		END,
		first = EXCLUDED.first
	RETURNING journal, before_epoch, before_head
), added AS (
	INSERT INTO roost.feed (id, journal, epoch, first, last, ends, before_epoch, before_head)
	SELECT state.last - $7 + line.n, line.journal, line.epoch, line.first, line.last, line.ends, heads.before_epoch, heads.before_head
	FROM state, line JOIN heads USING (journal)
)
SELECT last FROM state`, rows.journals, rows.epochs, rows.firsts, rows.lasts, rows.ends, hex.EncodeToString(name), n).Scan(&last)
	if err != nil {
		return fmt.Errorf("add %d lines to the feed: %w", n, database.Explained(err))
	}
	f.drop(ctx, last-n, last)
	return nil
}

// drop removes old lines, once in a while, after new ones were added. Lines that it cannot remove now are removed the
// next time.
func (f *Feed) drop(ctx context.Context, before, last int64) {
	step := max(f.keep/64, 1)
	if before/step != last/step {
		_, _ = f.db.Exec(ctx, `DELETE FROM roost.feed WHERE id <= $1`, last-f.keep)
	}
}
