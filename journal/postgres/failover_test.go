package postgres_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/postgres"
)

// The primary is lost and its standby takes over: no acknowledged commit is lost, no journal forks, and the owners and
// followers go on.
func TestFailover(t *testing.T) {
	if testing.Short() {
		t.Skip("it mostly waits, and what it runs is run by other tests, too")
	}
	t.Parallel() // it mostly waits
	for _, synced := range []string{"on", "remote_apply"} {
		t.Run("synchronous_commit = "+synced, func(t *testing.T) {
			primary, standby := pgtest.StartPair(t, "synchronous_commit = "+synced)
			at := primary.Database(t)
			either := pgtest.Either(t, at, standby)
			if err := database.Migrate(t.Context(), either); err != nil {
				t.Fatal(err)
			}
			h := run(t, [historyServers]string{either, either, either})
			appends := func(n int) func() bool {
				return func() bool {
					for ; h.looked < len(h.events); h.looked++ {
						if e := h.events[h.looked]; e.Kind == kindAppend && e.Result == resultOK {
							n--
						}
					}
					return n <= 0
				}
			}
			if !h.wait(time.Minute, appends(100)) {
				t.Fatal("the servers do not append")
			}
			primary.Kill()
			standby.Promote(t)
			if !h.wait(time.Minute, appends(100)) {
				t.Fatal("the servers do not append to the new primary")
			}
			h.end(t, openURL(t, either, postgres.Options{}), historyJournals)
		})
	}
}

// The primary hangs, or its machine is lost, and no connection to it breaks. The standby takes over: the owners and followers
// find it.
func TestFailoverOfAServerThatHangs(t *testing.T) {
	if testing.Short() {
		t.Skip("it mostly waits")
	}
	t.Parallel() // it mostly waits
	primary, standby := pgtest.StartPair(t)
	either := pgtest.Either(t, primary.Database(t), standby)
	if err := database.Migrate(t.Context(), either); err != nil {
		t.Fatal(err)
	}
	a, b := openURL(t, either, postgres.Options{}), openURL(t, either, postgres.Options{})
	announced, followed := make(chan uint64, 1000), make(chan uint64, 1000)
	a.AnnounceTo(func(_ context.Context, list []postgres.Synced) error {
		announced <- list[0].To
		return nil
	})
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	o, err := a.Own(ctx, t.Name(), postgres.OwnOptions{By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.OpenReader(ctx, t.Name(), nil)
	if err != nil {
		t.Fatal(err)
	}
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		for next := uint64(1); ctx.Err() == nil; { // after an error it follows again
			for c, err := range r.Follow(ctx, next) {
				if err == nil {
					followed <- c.Seq
					next = c.Seq + 1
				}
			}
		}
	}()
	defer func() {
		stop()
		<-reading
		_ = o.Close() // it may not be saved
		primary.Signal(t, syscall.SIGCONT)
	}()
	save := func() (head uint64) {
		t.Helper()
		if _, err := o.Append(ctx, journal.Draft{At: 1, By: "test", Events: []journal.Event{journal.Event(`{}`)}}); err != nil {
			t.Fatal(err)
		}
		for err := o.Barrier(ctx); err != nil; err = o.Barrier(ctx) {
			if ctx.Err() != nil {
				t.Fatalf("the owner does not save: %v", err)
			}
		}
		head, _ = o.Head(ctx)
		return head
	}
	get := func(what string, from chan uint64, want uint64) {
		t.Helper()
		for got := uint64(0); got < want; {
			select {
			case got = <-from:
			case <-ctx.Done():
				t.Fatalf("%s: got up to commit %d, want %d", what, got, want)
			}
		}
	}
	head := save()
	get("announced", announced, head)
	get("followed", followed, head)
	primary.Signal(t, syscall.SIGSTOP)
	standby.Promote(t)
	head = save()
	get("announced", announced, head)
	get("followed", followed, head)
}

// A replica is refused as the address: by its name, and when it is the only one that answers.
func TestReplica(t *testing.T) {
	if testing.Short() {
		t.Skip("it mostly waits, and TestConnectionsAreCut looks for the races of the same code")
	}
	t.Parallel() // it mostly waits
	primary, standby := pgtest.StartPair(t)
	at := primary.Database(t)
	replica := standby.On(t, at)
	for there := false; !there; time.Sleep(10 * time.Millisecond) {
		err := database.Migrate(t.Context(), replica)
		if err == nil {
			t.Fatal("a replica was migrated")
		}
		there = errors.Is(err, database.ErrReadOnly) // before, it has no such database
	}
	if err := database.Migrate(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	either := pgtest.Either(t, at, standby)
	if _, err := database.Open(t.Context(), replica); !errors.Is(err, database.ErrReadOnly) {
		t.Errorf("open a replica: got %v, want ErrReadOnly", err)
	}
	db, err := database.Open(t.Context(), pgtest.Either(t, replica, primary))
	if err != nil {
		t.Fatalf("open both, the replica first: %v", err)
	}
	db.Close()
	primary.Kill()
	if _, err := database.Open(t.Context(), either); !errors.Is(err, database.ErrReadOnly) {
		t.Errorf("open a replica whose primary is away: got %v, want ErrReadOnly", err)
	}
	if err := database.Migrate(t.Context(), either); !errors.Is(err, database.ErrReadOnly) {
		t.Errorf("migrate a replica whose primary is away: got %v, want ErrReadOnly", err)
	}
}

// While the standby does not answer, nothing is acknowledged that would be lost with the primary.
func TestStandbyIsAway(t *testing.T) {
	if testing.Short() {
		t.Skip("it mostly waits, and what it runs is run by other tests, too")
	}
	t.Parallel() // it mostly waits
	primary, standby := pgtest.StartPair(t)
	at := primary.Database(t)
	db := open(t, pgtest.Either(t, at, standby), postgres.Options{Lease: time.Minute})
	o, _ := own(t, db, "task")
	defer o.Close() //nolint:errcheck // it is judged by what is stored
	standby.Signal(t, syscall.SIGSTOP)
	seq, err := o.Append(t.Context(), draft(1))
	if err != nil {
		t.Fatal(err)
	}
	err = o.Barrier(t.Context()) // it gives up after a while
	head, _ := o.Head(t.Context())
	if !errors.Is(err, journal.ErrNotSaved) || head >= seq {
		t.Errorf("got %v and head %d, want ErrNotSaved and a head before %d", err, head, seq)
	}
	seen, err := openURL(t, at, postgres.Options{}).OpenReader(t.Context(), "task", nil)
	if err != nil {
		t.Fatal(err)
	}
	if head, err := seen.Head(t.Context()); err != nil || head >= seq {
		t.Errorf("a reader got head %d, %v, want one before %d", head, err, seq)
	}
	primary.Kill()
	standby.Signal(t, syscall.SIGCONT)
	standby.Promote(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for o.Barrier(ctx) != nil {
		if ctx.Err() != nil {
			t.Fatalf("the owner does not go on: %v", o.Unsaved())
		}
	}
	var got []string
	for c, err := range o.Read(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, c.By)
	}
	if len(got) != 2 || got[1] != "load" {
		t.Errorf("got commits of %v, want one of the heir and one of the load", got)
	}
}

// Somebody cancels the wait for the standby: PostgreSQL acknowledges with a warning, and the owner does not.
func TestWaitForStandbyIsCancelled(t *testing.T) {
	if testing.Short() {
		t.Skip("it mostly waits, and TestConnectionsAreCut looks for the races of the same code")
	}
	t.Parallel() // it mostly waits
	primary, standby := pgtest.StartPair(t)
	at := primary.Database(t)
	db := open(t, at, postgres.Options{Lease: time.Minute})
	o, _ := own(t, db, "task")
	defer o.Close() //nolint:errcheck // a barrier has saved it
	standby.Signal(t, syscall.SIGSTOP)
	seq, err := o.Append(t.Context(), draft(1))
	if err != nil {
		t.Fatal(err)
	}
	saved := make(chan error, 1)
	go func() { saved <- o.Barrier(t.Context()) }()
	admin, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(t.Context()) //nolint:errcheck // it wrote nothing
	for n := 0; n == 0; time.Sleep(10 * time.Millisecond) {
		const cancel = `SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%INSERT%'`
		if err := admin.QueryRow(t.Context(), cancel).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	// What the owner does next waits for the standby, too.
	for waits := 0; waits == 0; time.Sleep(10 * time.Millisecond) {
		const looking = `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query NOT LIKE '%INSERT%'`
		if err := admin.QueryRow(t.Context(), looking).Scan(&waits); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-saved:
			t.Fatalf("got %v while the standby is away", err)
		default:
		}
	}
	standby.Signal(t, syscall.SIGCONT)
	if err := <-saved; err != nil {
		t.Errorf("with the standby: %v", err)
	}
	if head, err := o.Head(t.Context()); err != nil || head != seq {
		t.Errorf("got head %d, %v, want %d", head, err, seq)
	}
}
