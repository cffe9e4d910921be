package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/bench/scale"
	catalogs "github.com/roost-dev/roost/catalog/postgres"
	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/postgres"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/feed"
	feeds "github.com/roost-dev/roost/store/feed/postgres"
	"github.com/roost-dev/roost/store/search"
)

// lab is a database whose processor time can be read, and what was measured in it.
type lab struct {
	options
	url        string
	db         *database.DB
	postmaster int
	costs      scale.Costs
	// How much is done.
	owners, singles, rows, listeners int
	window                           time.Duration
}

// groupCosts measures what the acts of a group of servers cost the database and a server, in time of the processor: a busy
// neighbour changes that little. The simulation in bench/scale takes them, and the last rows compare it with three servers.
func groupCosts(ctx context.Context, o options) (rows []row, err error) {
	if runtime.GOOS != "linux" {
		return []row{{what: "g costs of a group", got: "they need Linux", floor: "-", ratio: "-", bar: "-"}}, nil
	}
	cluster, db, err := emptyDatabase(ctx, "max_connections = 400", "autovacuum = off") // its workers would come and go
	if errors.Is(err, pgtest.ErrNotInstalled) {
		return []row{{what: "g costs of a group", got: "PostgreSQL is not installed", floor: "-", ratio: "-", bar: "-"}}, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		db.Close()
		err = errors.Join(err, cluster.Remove())
	}()
	l := &lab{options: o, url: db.URL(), db: db, owners: 1000, singles: 1000, rows: 100_000, listeners: 200, window: 6 * time.Second}
	if o.quick {
		l.owners, l.singles, l.rows, l.listeners, l.window = 20, 20, 1000, 5, time.Second
	}
	if l.postmaster, err = postmasterOf(ctx, db); err != nil {
		return nil, err
	}
	for _, measure := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"commits", l.commits}, {"renewals", l.renewals}, {"bytes", l.bytes}, {"followers", l.followers}, {"notifications", l.notifications},
		{"the feed", l.feed}, {"leases and lists", l.scans}, {"searches", l.searches}, {"delays of three servers", l.delays}, {"take-over", l.takeOver},
	} {
		if err := measure.do(ctx); err != nil {
			return rows, fmt.Errorf("%s: %w", measure.name, err)
		}
	}
	if o.costs != "" {
		if err := l.costs.Write(o.costs); err != nil {
			return rows, err
		}
	}
	return append(l.table(), l.compared()...), nil
}

func (l *lab) table() (rows []row) {
	c := l.costs
	for _, x := range []struct {
		what string
		us   float64
	}{
		{"commit of 5 KB, alone", c.Commit}, {"commit, of many at once", c.CommitTogether}, {"renewal of a lease", c.Renewal},
		{"scan for lost leases", c.Scan}, {"the same, more for each lease", c.ScanLease}, {"list of held leases, for each", c.OwnedLease},
		{"taking over a lease", c.Take}, {"a lease refused", c.Refused}, {"a notification", c.Notify},
		{"the same, more for each listener", c.NotifyListener}, {"poll, for each journal", c.PollJournal}, {"delivery of a commit", c.Delivery},
		{"line of the feed", c.FeedLine}, {"look at the feed", c.FeedRead}, {"list, for each stored task", c.ListTask},
		{"search, for each indexed task", c.SearchTask}, {"a notification, for a server", c.NotifyServer}, {"delivery, for a server", c.DeliveryServer},
	} {
		rows = append(rows, row{what: "g processor: " + x.what, got: fmt.Sprintf("%.2f us", x.us), floor: "-", ratio: "-"})
	}
	return append(rows,
		row{what: "g time: commit alone; line of the feed", got: fmt.Sprintf("%.0f us; %.0f us", c.CommitWait, c.FeedWait), floor: "-", ratio: "-"},
		row{what: "g time: a notification; a statement", got: fmt.Sprintf("%.0f us; %.0f us", c.NotifyWait, c.StatementWait), floor: "-", ratio: "-"},
		row{what: "g bytes: commit in tables; in a segment", got: fmt.Sprintf("%.0f; %.0f", c.CommitHot, c.CommitCold),
			floor: fmt.Sprintf("its line %.0f", c.CommitLine), ratio: fmt.Sprintf("%.2fx; %.2fx", c.CommitHot/c.CommitLine, c.CommitCold/c.CommitLine)},
		row{what: "g memory of a connection", got: mb(int64(c.ConnectionBytes)), floor: "-", ratio: "-"})
}

// compared compares the simulation of three servers with three servers.
func (l *lab) compared() []row {
	c := l.costs
	delay, takeOver := scale.Three(c, l.followed(), 2)
	line := func(what string, simulated, measured float64, bar string) row {
		return row{what: "g simulated " + what, got: fmt.Sprintf("%.2f ms", simulated/1e3), floor: fmt.Sprintf("real %.2f ms", measured/1e3),
			ratio: fmt.Sprintf("%.2fx", simulated/measured), bar: bar}
	}
	return []row{
		line("delay on 3 servers, median", delay.At(0.5), c.Delay, fmt.Sprintf("within %gx", scale.DelayAgrees)),
		line("delay on 3 servers, p99", delay.At(0.99), c.DelayP99, "-"),
		line("take-over on 3 servers, median", takeOver.At(0.5), c.TakeOver, fmt.Sprintf("within %gx", scale.TakeOverAgrees)),
		line("take-over on 3 servers, latest", takeOver.At(1), c.TakeLast, fmt.Sprintf("within %gx", scale.TakeOverAgrees)),
	}
}

func (l *lab) share(ctx context.Context, lease time.Duration) (*sharing, error) {
	db, err := database.Open(ctx, l.url)
	if err != nil {
		return nil, err
	}
	return &sharing{db, postgres.Open(ctx, db, postgres.Options{Lease: lease})}, nil
}

// spent does something and gives the time of the database's processor and of this one's that it took, divided by n, in us.
func (l *lab) spent(n int, do func() error) (database, own float64, err error) {
	time.Sleep(200 * time.Millisecond) // connections of what was before have ended, and count no more
	before, mine, err := l.processor()
	if err != nil {
		return 0, 0, err
	}
	if err := do(); err != nil {
		return 0, 0, err
	}
	after, now, err := l.processor()
	return float64(after-before) / 1e3 / float64(n), float64(now-mine) / 1e3 / float64(n), err
}

func (l *lab) processor() (database, own time.Duration, err error) {
	if database, err = childrenTime(l.postmaster); err == nil {
		own, err = processTime(os.Getpid())
	}
	return database, own, err
}

func (l *lab) commits(ctx context.Context) error {
	s, err := l.share(ctx, time.Minute)
	if err != nil {
		return err
	}
	defer s.close()
	owners, err := s.own(ctx, "g", l.owners)
	if err != nil {
		return err
	}
	block := uiMessage(1, 5<<10)
	var alone times
	l.costs.Commit, _, err = l.spent(l.singles, func() (err error) {
		for i := 0; i < l.singles && err == nil; i++ {
			begun := time.Now()
			err = commit(ctx, owners[0], block)
			alone = append(alone, time.Since(begun))
		}
		return err
	})
	l.costs.CommitWait = us(alone.median())
	if err == nil {
		l.costs.CommitTogether, _, err = l.spent(3*l.owners, func() error {
			_, err := atOnce(owners, 3, func(o journal.Owner) error { return commit(ctx, o, block) })
			return err
		})
	}
	return errors.Join(err, disown(owners))
}

func us(d time.Duration) float64 { return float64(d) / 1e3 }

// renewals lets the leases of all owners be renewed twice a second.
func (l *lab) renewals(ctx context.Context) error {
	const lease = 1500 * time.Millisecond
	s, err := l.share(ctx, lease)
	if err != nil {
		return err
	}
	defer s.close()
	owners, err := s.own(ctx, "g", l.owners)
	if err != nil {
		return err
	}
	l.costs.Renewal, _, err = l.spent(l.owners*int(l.window/(lease/3)), func() error {
		time.Sleep(l.window)
		return nil
	})
	return errors.Join(err, disown(owners))
}

// bytes measures commits with text that is as repetitive as that of tasks.
func (l *lab) bytes(ctx context.Context) error {
	s, err := l.share(ctx, time.Minute)
	if err != nil {
		return err
	}
	defer s.close()
	const tasks, each = 20, 50
	owners, err := s.own(ctx, "bytes", tasks)
	if err != nil {
		return err
	}
	size := func() (n int64, err error) {
		err = l.db.QueryRow(ctx, `SELECT sum(pg_total_relation_size(inhrelid))::bigint FROM pg_inherits
WHERE inhparent = 'roost.commits'::regclass`).Scan(&n)
		return n, err
	}
	before, err := size()
	t := newTalk()
	pack, encoder := zstd.NewWriter(nil)
	var lines, packed int
	for _, o := range owners {
		var segment []byte
		for i := 0; i < each && err == nil && encoder == nil; i++ {
			draft := draftOf(messageWith(i, t.prose(5<<10)))
			line, bad := journal.EncodeCommit(journal.Commit{Seq: uint64(i + 2), Epoch: 1, At: draft.At, By: draft.By, Events: draft.Events})
			segment = append(segment, line...)
			if _, err = o.Append(ctx, draft); err == nil {
				err = errors.Join(bad, o.Barrier(ctx))
			}
		}
		lines += len(segment)
		packed += len(pack.EncodeAll(segment, nil))
	}
	after, again := size()
	l.costs.CommitLine, l.costs.CommitHot = float64(lines)/(tasks*each), float64(after-before)/(tasks*each)
	l.costs.CommitCold = float64(packed) / (tasks * each)
	return errors.Join(err, encoder, again, pack.Close(), disown(owners))
}

// followers measures an idle poll, and the delivery of commits of one task to many followers on another server.
func (l *lab) followers(ctx context.Context) error {
	a, err := l.share(ctx, time.Minute)
	if err != nil {
		return err
	}
	defer a.close()
	b, err := l.share(ctx, time.Minute)
	if err != nil {
		return err
	}
	defer b.close()
	owners, err := a.own(ctx, "follow", l.owners)
	if err != nil {
		return err
	}
	defer func() { _ = disown(owners) }()
	follow := func(n int, name func(int) string) (came chan struct{}, stop func(), err error) {
		ctx, cancel := context.WithCancel(ctx)
		var wait sync.WaitGroup
		came = make(chan struct{}, n)
		for i := range n {
			reader, err := b.journals.OpenReader(ctx, name(i), nil)
			if err != nil {
				cancel()
				wait.Wait()
				return nil, nil, err
			}
			wait.Go(func() {
				for _, err := range reader.Follow(ctx, 1) {
					if err != nil {
						return
					}
					select {
					case came <- struct{}{}:
					case <-ctx.Done():
						return
					}
				}
			})
		}
		return came, func() { cancel(); wait.Wait() }, receive(ctx, came, n)
	}
	_, stop, err := follow(l.owners, func(i int) string { return fmt.Sprintf("follow-%d", i) })
	if err != nil {
		return err
	}
	polls := int(l.window / time.Second)
	l.costs.PollJournal, _, err = l.spent(polls*l.owners, func() error {
		time.Sleep(time.Duration(polls) * time.Second)
		return nil
	})
	stop()
	if err != nil {
		return err
	}
	crowd, steps := 50, 40
	came, stop, err := follow(crowd, func(int) string { return "follow-0" })
	if err != nil {
		return err
	}
	defer stop()
	both, own, err := l.spent(crowd*steps, func() (err error) {
		for i := 0; i < steps && err == nil; i++ {
			if err = commit(ctx, owners[0], uiMessage(i, 5<<10)); err == nil {
				err = receive(ctx, came, crowd)
			}
		}
		return err
	})
	l.costs.Delivery, l.costs.DeliveryServer = max(both-l.costs.Commit/float64(crowd), 1), own
	return err
}

// receive waits for n signals.
func receive(ctx context.Context, from <-chan struct{}, n int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for i := range n {
		select {
		case <-from:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d came: %w", i, n, ctx.Err())
		}
	}
	return nil
}

// notifications sends the next one when all listeners have got the one before: those that lag would share a wake.
func (l *lab) notifications(ctx context.Context) error {
	came, rounds := make(chan struct{}, l.listeners), 200
	var waits times
	measure := func(n int) (database, own float64, err error) {
		conns := make([]*pgx.Conn, 0, n)
		for range n {
			conn, err := pgx.Connect(ctx, l.url)
			if err != nil {
				return 0, 0, err
			}
			conns = append(conns, conn)
			if _, err := conn.Exec(ctx, `LISTEN bench`); err != nil {
				return 0, 0, err
			}
		}
		inner, stop := context.WithCancel(ctx)
		var ended sync.WaitGroup
		for _, conn := range conns {
			ended.Go(func() {
				defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing was written through it
				for {
					if _, err := conn.WaitForNotification(inner); err != nil {
						return
					}
					came <- struct{}{}
				}
			})
		}
		database, own, err = l.spent(rounds, func() (err error) {
			for i := 0; i < rounds && err == nil; i++ {
				begun := time.Now()
				_, err = l.db.Exec(ctx, `SELECT set_config('synchronous_commit', 'off', true), pg_notify('bench', 'server 1')`)
				err = errors.Join(err, receive(ctx, came, n))
				waits = append(waits, time.Since(begun))
			}
			return err
		})
		if n == l.listeners && err == nil {
			err = l.memory(ctx)
		}
		stop()
		ended.Wait()
		return database, own, err
	}
	var err error
	if l.costs.Notify, _, err = measure(0); err != nil {
		return err
	}
	waits = nil
	if _, _, err := measure(1); err != nil {
		return err
	}
	l.costs.NotifyWait = us(waits.median())
	many, own, err := measure(l.listeners)
	l.costs.NotifyListener = max(many-l.costs.Notify, 1) / float64(l.listeners)
	l.costs.NotifyServer = own / float64(l.listeners)
	return err
}

// memory is what a connection holds for itself.
func (l *lab) memory(ctx context.Context) error {
	pids, err := database.Column[int](l.db.Query(ctx, `
SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`))
	var all int64
	for _, pid := range pids {
		all += privateMemory(pid)
	}
	l.costs.ConnectionBytes = float64(all) / float64(max(len(pids), 1))
	return err
}

// oneName has each journal be a task of the same name.
type oneName struct{}

func (oneName) JournalOf(t feed.Task) (string, bool) { return t.ID, true }
func (oneName) TaskOf(name string) (feed.Task, bool) {
	return feed.Task{Source: "roost", ID: name}, true
}

// feed measures lines of several servers, which the database takes one after another, and a look at the feed.
func (l *lab) feed(ctx context.Context) error {
	const writers = 8
	var all []*feeds.Feed
	for range writers {
		s, err := l.share(ctx, time.Minute)
		if err != nil {
			return err
		}
		defer s.close()
		all = append(all, feeds.New(s.journals, oneName{}))
	}
	each := max(l.singles/writers/2, 5)
	line := func(i int) feed.Line {
		return feed.Line{Source: "roost", Task: fmt.Sprintf("t-%d", i), Epoch: 1, From: 1, To: 1}
	}
	if err := all[0].Append(ctx, line(0)); err != nil {
		return err
	}
	begun := time.Now()
	var err error
	l.costs.FeedLine, _, err = l.spent(writers*each, func() error {
		errs := make(chan error, writers)
		for w, f := range all {
			go func() {
				var err error
				for i := 0; i < each && err == nil; i++ {
					err = f.Append(ctx, line(w*each+i))
				}
				errs <- err
			}()
		}
		var err error
		for range writers {
			err = errors.Join(err, <-errs)
		}
		return err
	})
	l.costs.FeedWait = us(time.Since(begun)) / float64(writers*each)
	if err != nil {
		return err
	}
	reader, _, err := all[0].OpenEnd(ctx)
	if err != nil {
		return err
	}
	var looks times
	l.costs.FeedRead, _, err = l.spent(l.singles, func() (err error) {
		for i := 0; i < l.singles && err == nil; i++ {
			begun := time.Now()
			_, _, err = reader.Next(ctx)
			looks = append(looks, time.Since(begun))
		}
		return err
	})
	l.costs.StatementWait = us(looks.median())
	return errors.Join(err, reader.Close())
}

// scans measures what looks at many rows of journals: the search for lost leases, the list of held ones, the list of all.
func (l *lab) scans(ctx context.Context) error {
	s, err := l.share(ctx, time.Minute)
	if err != nil {
		return err
	}
	defer s.close()
	held := l.rows / 10
	_, err = l.db.Exec(ctx, `INSERT INTO roost.journals (name, epoch, head)
SELECT 'tasks/01980000-0000-7000-8000-' || lpad(i::text, 12, '0'), 1, 300 FROM generate_series(1, $1) i`, l.rows)
	if err == nil {
		_, err = l.db.Exec(ctx, `VACUUM ANALYZE roost.journals`)
	}
	if err != nil {
		return err
	}
	repeat := func(n int, do func(context.Context) error) func() error {
		return func() (err error) {
			for i := 0; i < n && err == nil; i++ {
				err = do(ctx)
			}
			return err
		}
	}
	lost := func(ctx context.Context) error {
		names, err := s.journals.Lost(ctx)
		if err == nil && len(names) > 0 {
			err = fmt.Errorf("%d leases are lost", len(names))
		}
		return err
	}
	const times = 50
	if l.costs.Scan, _, err = l.spent(times, repeat(times, lost)); err != nil {
		return err
	}
	_, err = l.db.Exec(ctx, `UPDATE roost.journals SET owner = '{}', lease_until = clock_timestamp() + interval '1 hour'
WHERE id IN (SELECT id FROM roost.journals WHERE starts_with(name, 'tasks/') ORDER BY id LIMIT $1)`, held)
	if err == nil {
		_, err = l.db.Exec(ctx, `VACUUM ANALYZE roost.journals`)
	}
	if err != nil {
		return err
	}
	whole, _, err := l.spent(times, repeat(times, lost))
	l.costs.ScanLease = max(whole-l.costs.Scan, 0.1) / float64(held)
	if err != nil {
		return err
	}
	if l.costs.OwnedLease, _, err = l.spent(times*held, repeat(times, func(ctx context.Context) error {
		_, err := s.journals.Owned(ctx)
		return err
	})); err != nil {
		return err
	}
	if l.costs.ListTask, _, err = l.spent(5*l.rows, repeat(5, func(ctx context.Context) error {
		_, err := s.journals.List(ctx, "tasks/")
		return err
	})); err != nil {
		return err
	}
	next, tries := 0, min(held, 200)
	own := func(ctx context.Context) error {
		next++
		o, err := s.journals.Own(ctx, fmt.Sprintf("tasks/01980000-0000-7000-8000-%012d", next), postgres.OwnOptions{By: "bench"})
		var busy *journal.BusyError
		if errors.As(err, &busy) {
			return nil
		}
		if err == nil {
			err = o.Close()
		}
		return err
	}
	if l.costs.Refused, _, err = l.spent(tries, repeat(tries, own)); err != nil {
		return err
	}
	if _, err := l.db.Exec(ctx, `UPDATE roost.journals SET lease_until = clock_timestamp() - interval '1 hour', head = 0 WHERE owner = '{}'`); err != nil {
		return err
	}
	next = 0
	l.costs.Take, _, err = l.spent(tries, repeat(tries, own))
	if err == nil {
		_, err = l.db.Exec(ctx, `UPDATE roost.journals SET owner = NULL, lease_until = NULL WHERE owner = '{}'`)
	}
	return err
}

// searches searches in the tables of the catalogue.
func (l *lab) searches(ctx context.Context) error {
	tasks, queries := 1000, 5
	if l.quick {
		tasks, queries = 40, 1
	}
	t := newTalk()
	storage, cache := l.dir+"/group/rooveterinaryinc.roo-cline", l.dir+"/group/cache"
	if err := t.storage(storage, tasks, 6); err != nil {
		return err
	}
	s, err := store.Open(store.Options{
		Cache:   cache,
		Catalog: catalogs.Open(l.db),
		Root:    l.dir + "/group/roost",
		Sources: []string{storage},
		Program: "bench",
	})
	if err != nil {
		return err
	}
	time.Sleep(100 * time.Millisecond) // what was written just now is not kept
	if _, err := search.Run(ctx, s, api.SearchQuery{Text: "begin", Filter: api.TaskFilter{Limit: pageOfHits}}); err != nil {
		return err
	}
	kinds := t.kinds()
	l.costs.SearchTask, _, err = l.spent(tasks*queries*len(kinds), func() error {
		for _, kind := range kinds {
			for range queries {
				if _, err := search.Run(ctx, s, api.SearchQuery{Text: kind.make(), Filter: api.TaskFilter{Limit: pageOfHits}}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return err
}
