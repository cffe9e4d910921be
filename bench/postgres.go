package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/postgres"
)

// shared measures journals in PostgreSQL, in a cluster of its own: commits of one task and of many against a bare INSERT
// of the same bytes, turn about, and how late followers on three servers get them. Each server is a set of journals with a
// pool of its own. They, their followers and the database share the cores.
func shared(ctx context.Context, o options) (rows []row, err error) {
	cluster, db, err := emptyDatabase(ctx)
	if errors.Is(err, pgtest.ErrNotInstalled) {
		return []row{{what: "p journals in PostgreSQL", got: "it is not installed", floor: "-", ratio: "-", bar: "-"}}, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cluster.Remove()) }()
	url := db.URL()
	db.Close()
	for _, measure := range []func(context.Context, options, string) ([]row, error){sharedCommits, sharedFollowers} {
		more, err := measure(ctx, o, url)
		rows = append(rows, more...)
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// emptyDatabase starts a cluster of its own and opens a database in it that has the tables.
func emptyDatabase(ctx context.Context, settings ...string) (cluster *pgtest.Cluster, db *database.DB, err error) {
	if cluster, err = pgtest.Make(ctx, settings...); err != nil {
		return nil, nil, err
	}
	var url string
	if err = cluster.Up(ctx); err == nil {
		url, err = cluster.NewDatabase(ctx)
	}
	if err == nil {
		err = database.Migrate(ctx, url)
	}
	if err == nil {
		db, err = database.Open(ctx, url)
	}
	if err != nil {
		return nil, nil, errors.Join(err, cluster.Remove())
	}
	return cluster, db, nil
}

// sharing is one server.
type sharing struct {
	db       *database.DB
	journals *postgres.Journals
}

func share(ctx context.Context, url string) (*sharing, error) {
	db, err := database.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	return &sharing{db, postgres.Open(ctx, db, postgres.Options{Lease: time.Minute})}, nil
}

func (s *sharing) close() {
	s.journals.Close()
	s.db.Close()
}

// own owns so many journals.
func (s *sharing) own(ctx context.Context, prefix string, n int) (list []journal.Owner, err error) {
	for i := range n {
		owner, err := s.journals.Own(ctx, fmt.Sprintf("%s-%d", prefix, i), postgres.OwnOptions{By: "bench"})
		if err != nil {
			return list, errors.Join(err, disown(list))
		}
		list = append(list, owner)
	}
	return list, nil
}

func disown(list []journal.Owner) (err error) {
	for _, o := range list {
		err = errors.Join(err, o.Close())
	}
	return err
}

func draftOf(block []byte) journal.Draft {
	return journal.Draft{At: 1, By: "bench", Events: []journal.Event{block}}
}

func commit(ctx context.Context, o journal.Owner, block []byte) error {
	if _, err := o.Append(ctx, draftOf(block)); err != nil {
		return err
	}
	return o.Barrier(ctx)
}

// sharedCommits measures commits of one task, one after another, and of many tasks at once.
func sharedCommits(ctx context.Context, o options, url string) (rows []row, err error) {
	tasks, each, rounds, single := 1000, 3, 5, 1000
	if o.quick {
		tasks, each, rounds, single = 20, 2, 1, 20
	}
	s, err := share(ctx, url)
	if err != nil {
		return nil, err
	}
	defer s.close()
	owners, err := s.own(ctx, "commits", tasks)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, disown(owners)) }()
	if _, err := s.db.Exec(ctx, `CREATE TABLE bare (line bytea NOT NULL)`); err != nil {
		return nil, err
	}
	block := uiMessage(1, 5<<10)
	c := journal.Commit{Seq: 1000, Epoch: 1, At: 1, By: "bench", Events: []journal.Event{block}}
	line, err := journal.EncodeCommit(c)
	if err != nil {
		return nil, err
	}
	bare := func() error {
		_, err := s.db.Exec(ctx, `INSERT INTO bare VALUES ($1)`, line)
		return err
	}
	var one, floor times
	for range single {
		begun := time.Now()
		if err := bare(); err != nil {
			return nil, err
		}
		middle := time.Now()
		if err := commit(ctx, owners[0], block); err != nil {
			return nil, err
		}
		floor, one = append(floor, middle.Sub(begun)), append(one, time.Since(middle))
	}
	rows = append(rows, row{
		what: "p PostgreSQL: commits of 5 KB of one task", got: perSecond(1, one.median()) + ", p99 " + ms(one.p99()),
		floor: perSecond(1, floor.median()) + ", p99 " + ms(floor.p99()), ratio: over(one.median(), floor.median()), bar: "<= 1.30x",
	})
	var many, manyFloor times
	for range rounds {
		took, err := atOnce(owners, each, func(journal.Owner) error { return bare() })
		if err != nil {
			return rows, err
		}
		manyFloor = append(manyFloor, took)
		if took, err = atOnce(owners, each, func(o journal.Owner) error { return commit(ctx, o, block) }); err != nil {
			return rows, err
		}
		many = append(many, took)
	}
	return append(rows, row{
		what: fmt.Sprintf("p the same of %d tasks at once", tasks), got: perSecond(tasks*each, many.median()),
		floor: perSecond(tasks*each, manyFloor.median()), ratio: over(many.median(), manyFloor.median()), bar: "<= 1.30x",
	}), nil
}

func perSecond(n int, d time.Duration) string {
	return fmt.Sprintf("%.0f a second", float64(n)/d.Seconds())
}

// atOnce does something so many times for each owner, all owners beside each other.
func atOnce(owners []journal.Owner, each int, do func(journal.Owner) error) (time.Duration, error) {
	begun, errs := time.Now(), make(chan error, len(owners))
	for _, o := range owners {
		go func() {
			var err error
			for range each {
				err = errors.Join(err, do(o))
			}
			errs <- err
		}()
	}
	var err error
	for range owners {
		err = errors.Join(err, <-errs)
	}
	return time.Since(begun), err
}

// sharedFollowers measures how late a commit comes to followers on three servers, of which one owns the journals.
func sharedFollowers(ctx context.Context, o options, url string) ([]row, error) {
	followers, steps := 1000, 500
	if o.quick {
		followers, steps = 30, 20
	}
	own, err := share(ctx, url)
	if err != nil {
		return nil, err
	}
	defer own.close()
	servers := []*sharing{own}
	for range 2 {
		s, err := share(ctx, url)
		if err != nil {
			return nil, err
		}
		defer s.close()
		servers = append(servers, s)
	}
	late, err := sharedDelays(ctx, servers, followers, steps)
	if err != nil {
		return nil, err
	}
	return []row{{
		what: fmt.Sprintf("p delay on 3 servers, %d followed tasks, p99", followers),
		got:  ms(late.p99()) + ", median " + ms(late.median()), floor: "-", ratio: "-", bar: "< 100 ms",
	}}, nil
}

// sharedDelays lets the first server commit to its journals in turn, 50 times a second. The servers follow a third of them
// each; a server follows a task once, whatever the number of its subscribers (package events).
func sharedDelays(ctx context.Context, servers []*sharing, followers, steps int) (late times, err error) {
	owners, err := servers[0].own(ctx, "followed", followers)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, disown(owners)) }()
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	type arrival struct {
		step int
		at   time.Time
	}
	acked, came, ready := make([]time.Time, steps), make(chan arrival, steps), make(chan struct{}, followers)
	for i := range followers {
		reader, err := servers[i%len(servers)].journals.OpenReader(ctx, fmt.Sprintf("followed-%d", i), nil)
		if err != nil {
			return nil, err
		}
		wait.Go(func() {
			for c, err := range reader.Follow(ctx, 1) {
				switch {
				case err != nil:
					return // the end is not reached then
				case c.Seq == 1:
					ready <- struct{}{}
				default:
					came <- arrival{(int(c.Seq)-2)*followers + i, time.Now()}
				}
			}
		})
	}
	for range followers {
		<-ready
	}
	block := uiMessage(1, 5<<10)
	for i := range steps {
		if err := commit(ctx, owners[i%followers], block); err != nil {
			return nil, err
		}
		acked[i] = time.Now()
		time.Sleep(20 * time.Millisecond)
	}
	limit := time.After(time.Minute)
	for range steps {
		select {
		case a := <-came:
			late = append(late, max(0, a.at.Sub(acked[a.step])))
		case <-limit:
			return nil, fmt.Errorf("%d of %d commits came to their followers within a minute", len(late), steps)
		}
	}
	return late, nil
}
