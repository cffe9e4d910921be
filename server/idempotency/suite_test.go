package idempotency

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/service"
)

// childURL makes the test program take the key "k" in that database, and wait to be killed.
const childURL = "IDEMPOTENCY_TEST_CHILD_URL"

func TestMain(m *testing.M) {
	if url := os.Getenv(childURL); url != "" {
		child(url)
		return
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		pgtest.StopShared()
		os.Exit(code)
	}))
}

func child(url string) {
	db, err := database.Open(context.Background(), url)
	if err != nil {
		panic(err)
	}
	one, done, err := NewShared(db, nil).Begin(context.Background(), "k", "POST /x", "a")
	fmt.Println(one != nil && !one.Again, done, err)
	_, _ = os.Stdin.Read(make([]byte, 1)) // until it is killed
}

// backend is one place for the requests of several servers.
type backend struct {
	open func(t *testing.T, seal func() Seal) *Requests // each time as another server
	age  func(t *testing.T)                             // makes all that is there older than a day
}

func folders(t *testing.T) backend {
	dir, now := filepath.Join(t.TempDir(), "keys"), time.Now()
	return backend{
		open: func(_ *testing.T, seal func() Seal) *Requests { return New(dir, func() time.Time { return now }, seal) },
		age:  func(*testing.T) { now = now.Add(keptFor + time.Second) },
	}
}

func shared(t *testing.T) backend {
	url := migrated(t)
	return backend{
		open: func(t *testing.T, seal func() Seal) *Requests { return &server(t, url, seal).Requests },
		age: func(t *testing.T) {
			_, err := server(t, url, nil).db.Exec(t.Context(), `UPDATE roost.requests SET at = at - interval '24 hours 1 second'`)
			fixture.NoError(t, err)
		},
	}
}

func migrated(t *testing.T) (url string) {
	t.Helper()
	url = pgtest.Shared(t).Database(t)
	fixture.NoError(t, database.Migrate(t.Context(), url))
	return url
}

func server(t *testing.T, url string, seal func() Seal) *Shared {
	t.Helper()
	db := fixture.Must[*database.DB](t)(database.Open(t.Context(), url))
	d := NewShared(db, seal)
	t.Cleanup(func() {
		if err := d.Close(context.Background()); err != nil {
			t.Error(err)
		}
		db.Close()
	})
	return d
}

func each(t *testing.T, test func(*testing.T, backend)) {
	for place, open := range map[string]func(*testing.T) backend{"a folder": folders, "a database": shared} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// A repeat on any server gets the first answer for a day; one of a request that was left does the rest; a key that was
// forgotten is free.
func TestTheSameAnswer(t *testing.T) {
	each(t, func(t *testing.T, b backend) {
		servers := []*Requests{b.open(t, nil), b.open(t, nil)}
		turn := 0
		begin := func(print string) (*Request, *Answer, error) {
			turn++
			return servers[turn%2].Begin(t.Context(), "k", "POST /x", print)
		}
		one, done, err := begin("a")
		if err != nil || done != nil || one.Again {
			t.Fatal(one, done, err)
		}
		fixture.NoError(t, one.Leave()) // as a kill does
		if _, _, err := begin("b"); !errors.Is(err, ErrOther) {
			t.Errorf("another request under the key of an intent: got %v, want ErrOther", err)
		}
		if one, done, err = begin("a"); err != nil || done != nil || !one.Again {
			t.Fatal(one, done, err)
		}
		want := Answer{Status: 201, Head: map[string]string{"Location": "/x/1"}, Body: "{\"a\":\"é\\n\"}\n", Follow: &service.Follow{Task: "t", Run: "r", From: "1.2-3"}}
		fixture.NoError(t, one.Finish(want))
		for range 2 {
			one, done, err = begin("a")
			if err != nil || one != nil || text(t, done) != text(t, want) {
				t.Errorf("a repeat: got %v, %s, %v, want %s", one, text(t, done), err, text(t, want))
			}
			if _, _, err := begin("b"); !errors.Is(err, ErrOther) {
				t.Errorf("another request under the key of an answer: got %v, want ErrOther", err)
			}
		}
		b.age(t)
		if one, done, err = begin("b"); err != nil || done != nil || one.Again {
			t.Fatalf("after a day: got %+v %+v %v, want a new request", one, done, err)
		}
		fixture.NoError(t, one.Forget())
		if one, done, err = begin("c"); err != nil || done != nil || one.Again {
			t.Fatalf("a forgotten one: got %+v %+v %v, want a new request", one, done, err)
		}
		fixture.NoError(t, one.Leave())
	})
}

func text(t *testing.T, v any) string { return string(fixture.Must[[]byte](t)(json.Marshal(v))) }

// Of many that come at once on several servers one works, and all give its answer.
func TestOneAtATime(t *testing.T) {
	each(t, func(t *testing.T, b backend) {
		var all sync.WaitGroup
		var mu sync.Mutex
		worked := 0
		for i := range 6 {
			d := b.open(t, nil)
			all.Go(func() {
				one, done, err := d.Begin(t.Context(), "k", "POST /x", "a")
				if err == nil && one != nil {
					mu.Lock()
					worked++
					mu.Unlock()
					done = &Answer{Status: 201, Body: "made\n"}
					err = one.Finish(*done)
				}
				if err != nil || done == nil || done.Body != "made\n" {
					t.Errorf("%d: got %v, %v, want the one answer", i, done, err)
				}
			})
		}
		all.Wait()
		if worked != 1 {
			t.Errorf("%d of them worked, want 1", worked)
		}
		d := b.open(t, nil)
		one, _, err := d.Begin(t.Context(), "busy", "POST /x", "a")
		fixture.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := b.open(t, nil).Begin(ctx, "busy", "POST /x", "a"); err == nil {
			t.Error("a request that is being answered was begun again")
		}
		fixture.NoError(t, one.Leave())
	})
}

// A record that another root signed, or no root, is no answer of this one.
func TestAKeysFileOfAnotherRootIsNoAnswer(t *testing.T) {
	each(t, func(t *testing.T, b backend) {
		sealed := func(key string) func() Seal {
			k := journal.Key{ID: key, Secret: []byte("secret of " + key)}
			return func() Seal { return &journal.Seal{Log: "root/idempotency", Sign: &k, Verify: []journal.Key{k}} }
		}
		for _, c := range []struct {
			name string
			seal func() Seal
			want bool // it is answered by what is there
		}{
			{"nothing there", nil, false},
			{"no root signed it", sealed("00000001"), false},
			{"its own", sealed("00000001"), true},
			{"another root's", sealed("00000002"), false},
		} {
			one, done, err := b.open(t, c.seal).Begin(t.Context(), "k", "POST /x", "a")
			fixture.NoError(t, err)
			if one != nil {
				fixture.NoError(t, one.Finish(Answer{Status: 201, Body: "{}\n"}))
			}
			if got := done != nil; got != c.want {
				t.Errorf("%s: answered %v, want %v", c.name, got, c.want)
			}
		}
	})
}

// The request of a server that was killed is done by the repeat, on another server, within the time that a repeat waits.
// What a server that was only thought to have ended answers later counts for nothing.
func TestAServerThatWasKilled(t *testing.T) {
	url := migrated(t)
	cmd := exec.Command(os.Args[0]) //nolint:noctx // the test kills it
	cmd.Env = append(os.Environ(), childURL+"="+url)
	in := fixture.Must[interface{ Close() error }](t)(cmd.StdinPipe())
	defer in.Close() //nolint:errcheck // it was killed
	out := fixture.Must[interface{ Read([]byte) (int, error) }](t)(cmd.StdoutPipe())
	fixture.NoError(t, cmd.Start())
	line := make([]byte, 64)
	n, err := out.Read(line)
	if got := string(line[:n]); err != nil || got != "true <nil> <nil>\n" {
		t.Fatalf("the child: got %q, %v, want that it began", got, err)
	}
	fixture.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	d, other := server(t, url, nil), server(t, url, nil)
	one, done, err := d.Begin(t.Context(), "k", "POST /x", "a")
	if err != nil || done != nil || !one.Again {
		t.Fatalf("got %+v, %v, %v, want to do the rest", one, done, err)
	}
	var lease int64
	fixture.NoError(t, d.db.QueryRow(t.Context(), `SELECT lease FROM roost.requests WHERE lease IS NOT NULL`).Scan(&lease))
	stop := make(chan struct{})
	var expire sync.WaitGroup
	expire.Go(func() { // again and again: its server lives, and renews it
		for {
			if _, err := d.db.Exec(t.Context(), `UPDATE roost.leases SET lease_until = clock_timestamp() WHERE id = $1`, lease); err != nil {
				t.Error(err)
			}
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	two, done, err := other.Begin(t.Context(), "k", "POST /x", "a")
	close(stop)
	expire.Wait()
	if err != nil || done != nil || !two.Again {
		t.Fatalf("got %+v, %v, %v, want to do the rest", two, done, err)
	}
	if err := one.Finish(Answer{Status: 500}); !errors.Is(err, errTaken) {
		t.Errorf("an answer of the first server: got %v, want errTaken", err)
	}
	fixture.NoError(t, two.Finish(Answer{Status: 201}))
	if _, done, err := d.Begin(t.Context(), "k", "POST /x", "a"); err != nil || done == nil || done.Status != 201 {
		t.Errorf("got %v, %v, want the answer of the second server", done, err)
	}
}

// The database is away when a server releases a key, or while it takes one. The server lives on, but no
// longer works on the request: a repeat carries it out once the server's lease has run out.
func TestTheDatabaseIsAway(t *testing.T) {
	t.Parallel() // it mostly waits
	t.Run("at the release", func(t *testing.T) {
		t.Parallel()
		cluster := pgtest.Start(t)
		url := cluster.Database(t)
		fixture.NoError(t, database.Migrate(t.Context(), url))
		a, b := server(t, url, nil), server(t, url, nil)
		one, _, err := a.Begin(t.Context(), "k", "POST /x", "a")
		fixture.NoError(t, err)
		cluster.Kill()
		if err := one.Leave(); err == nil {
			t.Error("got no error, want one of a database that is away")
		}
		cluster.Run(t)
		repeated(t, b)
	})
	t.Run("at the beginning", func(t *testing.T) {
		t.Parallel()
		primary, standby := pgtest.StartPair(t)
		url := primary.Database(t)
		fixture.NoError(t, database.Migrate(t.Context(), url))
		a, b := server(t, url, nil), server(t, url, nil)
		one, _, err := a.Begin(t.Context(), "first", "POST /x", "a") // the server has a lease
		fixture.NoError(t, errors.Join(err, one.Leave()))
		standby.Signal(t, syscall.SIGSTOP)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, _, err := a.Begin(ctx, "k", "POST /x", "a"); err == nil {
			t.Error("got no error, want one of a database that does not answer")
		}
		standby.Signal(t, syscall.SIGCONT)
		repeated(t, b)
	})
}

// A client that leaves while its key is taken ends the lease of no other request of the server.
func TestAClientThatLeavesAtTheBeginning(t *testing.T) {
	t.Parallel()
	url := migrated(t)
	a, b := server(t, url, nil), server(t, url, nil)
	works, _, err := a.Begin(t.Context(), "works", "POST /x", "a")
	fixture.NoError(t, err)
	was := fixture.Must[int64](t)(a.lease.ID(t.Context()))
	one, _, err := a.Begin(t.Context(), "k", "POST /x", "a")
	fixture.NoError(t, errors.Join(err, one.Leave()))
	left := make(chan error, 1)
	fixture.NoError(t, b.db.Transaction(t.Context(), func(tx *database.Tx) error {
		if _, err := tx.Exec(t.Context(), `SELECT 1 FROM roost.requests FOR UPDATE`); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		go func() { // its row is free again only after this transaction
			_, _, err := a.Begin(ctx, "k", "POST /x", "a")
			left <- err
		}()
		<-ctx.Done()
		time.Sleep(100 * time.Millisecond)
		return nil
	}))
	if err := <-left; err == nil {
		t.Error("got no error, want that of a client that left")
	}
	repeated(t, b)
	if now := fixture.Must[int64](t)(a.lease.ID(t.Context())); now != was {
		t.Errorf("got the lease %d, want %d, which the other request relies on", now, was)
	}
	fixture.NoError(t, works.Leave())
}

// repeated repeats a request after the server that took it has had time to renew its lease.
func repeated(t *testing.T, d *Shared) {
	t.Helper()
	time.Sleep(leaseLength / 2)
	one, done, err := d.Begin(t.Context(), "k", "POST /x", "a")
	if err != nil || done != nil || !one.Again {
		t.Fatalf("the repeat: got %+v, %+v, %v, want the request again", one, done, err)
	}
	fixture.NoError(t, one.Leave())
}
