package postgres

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/failpoint"
	"github.com/roost-dev/roost/journal"
)

const (
	writers     = 2    // statements that append at the same time: one is sent while another one is synced
	maxJournals = 1000 // in one statement
)

// group appends for all owners of the Journals: additions that come while statements run go together into the next
// statement, so that many journals share a sync. It has no goroutine: the owner that comes first appends for those
// that came after it.
type group struct {
	db    *database.DB
	lease time.Duration

	mu      sync.Mutex
	running int
	waiting []*addition
}

// addition holds the commits that one owner appends.
type addition struct {
	owner *owner
	from  int64 // the head before the addition
	lines []journal.Line

	turn chan []*addition // room for one: its owner then appends these additions, among them its own
	done chan error       // room for one
}

// append appends an addition. It waits for earlier statements, each of which has a time limit. After an error that is
// no *pgconn.PgError, it is unknown whether the addition was appended.
func (g *group) append(a *addition) error {
	a.turn, a.done = make(chan []*addition, 1), make(chan error, 1)
	g.mu.Lock()
	g.waiting = append(g.waiting, a)
	if g.running < writers {
		g.running++
		g.pass()
	}
	g.mu.Unlock()
	select {
	case err := <-a.done:
		return err
	case batch := <-a.turn:
		g.lead(batch)
		return <-a.done
	}
}

// lead appends a batch, and passes the turn on.
func (g *group) lead(batch []*addition) {
	err := g.execute(batch)
	var refused *pgconn.PgError
	alone := len(batch) > 1 && errors.As(err, &refused) // one of them may be why
	for _, a := range batch {
		if alone {
			err = g.execute([]*addition{a})
		}
		a.done <- err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pass()
}

// pass gives the waiting additions, as many as fit into one statement, to the owner that waits first. The caller
// holds mu, and the turn.
func (g *group) pass() {
	size, n := 0, 0
	for ; n < min(len(g.waiting), maxJournals); n++ {
		for _, l := range g.waiting[n].lines {
			size += len(l.Text)
		}
		if n > 0 && size > maxBatch {
			break
		}
	}
	if n == 0 {
		g.running--
		return
	}
	batch := slices.Clone(g.waiting[:n])
	g.waiting = slices.Delete(g.waiting, 0, n)
	batch[0].turn <- batch
}

// The statements that append: one line, the lines of one journal, and those of several journals; the last one costs
// twice the processor time.
const (
	appendLine = `
WITH mine AS (
	UPDATE roost.journals SET head = $4, lease_until = clock_timestamp() + $6::interval
	WHERE id = $1 AND epoch = $2 AND head = $3 RETURNING id)
INSERT INTO roost.commits (journal, seq, line) SELECT id, $4, $5 FROM mine`

	appendOne = `
WITH mine AS (
	UPDATE roost.journals SET head = $4, lease_until = clock_timestamp() + $7::interval
	WHERE id = $1 AND epoch = $2 AND head = $3 RETURNING id)
INSERT INTO roost.commits (journal, seq, line)
SELECT mine.id, l.seq, l.line FROM mine, unnest($5::bigint[], $6::bytea[]) AS l(seq, line)`

	appendMany = `
WITH mine AS (
	UPDATE roost.journals j SET head = w.head, lease_until = clock_timestamp() + $8::interval
	FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS w(id, epoch, was, head)
	WHERE j.id = w.id AND j.epoch = w.epoch AND j.head = w.was RETURNING j.id, j.epoch)
INSERT INTO roost.commits (journal, seq, line) SELECT id, l.seq, l.line FROM mine
JOIN unnest($5::bigint[], $6::bigint[], $7::bigint[], $9::bytea[]) AS l(id, epoch, seq, line) USING (id, epoch)`
)

// execute appends a batch in one statement.
func (g *group) execute(batch []*addition) error {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	var ids, epochs, from, to, of, under, seqs []int64
	var lines [][]byte
	for _, a := range batch {
		ids, epochs, from = append(ids, a.owner.id), append(epochs, int64(a.owner.Epoch())), append(from, a.from)
		for _, l := range a.lines {
			of, under, seqs = append(of, a.owner.id), append(under, int64(a.owner.Epoch())), append(seqs, int64(l.Seq))
			lines = append(lines, l.Text)
		}
		to = append(to, seqs[len(seqs)-1])
	}
	statement, args := appendMany, []any{ids, epochs, from, to, of, under, seqs, g.lease, lines}
	switch {
	case len(lines) == 1:
		statement, args = appendLine, []any{ids[0], epochs[0], from[0], to[0], lines[0], g.lease}
	case len(batch) == 1:
		statement, args = appendOne, []any{ids[0], epochs[0], from[0], to[0], seqs, lines, g.lease}
	}
	added, err := g.db.Exec(ctx, statement, args...)
	failpoint.Hit("postgres.committed")
	if err == nil && added != int64(len(lines)) {
		err = errors.New("the head of a journal is not where its owner left it")
	}
	return err
}
