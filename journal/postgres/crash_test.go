package postgres_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/pgtest"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/postgres"
)

// load appends to journals until it is stopped, and remembers what was acknowledged.
type load struct {
	stop  chan struct{}
	work  sync.WaitGroup
	mu    sync.Mutex
	acked map[string][]int // by journal: the numbers of the drafts, in their order
}

func draft(n int) journal.Draft {
	return journal.Draft{At: int64(n), By: "load", Events: []journal.Event{fmt.Appendf(nil, `{"n":%d}`, n)}}
}

// start runs an owner of each of so many journals.
func start(t *testing.T, db *postgres.Journals, journals int) *load {
	l := &load{stop: make(chan struct{}), acked: map[string][]int{}}
	for i := range journals {
		name := fmt.Sprintf("%s-%d", t.Name(), i)
		o, err := db.Own(t.Context(), name, postgres.OwnOptions{By: "load"})
		if err != nil {
			t.Fatal(err)
		}
		l.work.Go(func() { l.run(t, name, o) })
	}
	return l
}

func (l *load) run(t *testing.T, name string, o journal.Owner) {
	ctx := context.Background()
	defer o.Close() //nolint:errcheck // everything is acknowledged by then
	for n := 0; ; n++ {
		select {
		case <-l.stop:
			return
		default:
		}
		if _, err := o.Append(ctx, draft(n)); err != nil {
			t.Errorf("%s: append: %v", name, err)
			return
		}
		for {
			err := o.Barrier(ctx)
			if err == nil {
				break
			}
			if !errors.Is(err, journal.ErrNotSaved) {
				t.Errorf("%s: barrier: got %v, want ErrNotSaved", name, err)
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		l.mu.Lock()
		l.acked[name] = append(l.acked[name], n)
		l.mu.Unlock()
	}
}

// total returns the number of acknowledged commits.
func (l *load) total() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, list := range l.acked {
		n += len(list)
	}
	return n
}

// end stops the load and compares what is stored with what was acknowledged. A busy machine takes longer to acknowledge
// as many commits as the test needs.
func (l *load) end(t *testing.T, db *postgres.Journals) {
	t.Helper()
	for end := time.Now().Add(time.Minute); l.total() < 50 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
	}
	close(l.stop)
	l.work.Wait()
	for name, want := range l.acked {
		var got []int
		r, err := db.OpenReader(t.Context(), name, nil)
		if err != nil {
			t.Fatal(err)
		}
		for c, err := range r.Read(t.Context(), 1) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if c.By == "load" && strings.HasPrefix(string(c.Events[0]), `{"n":`) {
				var e struct{ N int }
				if err := json.Unmarshal(c.Events[0], &e); err != nil {
					t.Fatal(err)
				}
				got = append(got, e.N)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %d commits, want the %d that were acknowledged, each once and in their order", name, len(got), len(want))
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if total := l.total(); total < 50 {
		t.Errorf("got %d commits, too few for the test to mean anything", total)
	}
}

// The database dies without a word and comes back: what was acknowledged is there, once, and the owners go on.
func TestDatabaseIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("it mostly waits, and TestConnectionsAreCut looks for the races of the same code")
	}
	t.Parallel() // it mostly waits
	c := pgtest.Start(t)
	db := open(t, c.Database(t), postgres.Options{Lease: time.Minute})
	l := start(t, db, 4)
	for range 5 {
		time.Sleep(time.Duration(100+rand.IntN(300)) * time.Millisecond)
		c.Kill()
		c.Run(t)
	}
	time.Sleep(300 * time.Millisecond)
	l.end(t, db)
}

// The proxy cuts connections within statements and within answers: the owner looks up each outcome.
func TestConnectionsAreCut(t *testing.T) {
	c := pgtest.Shared(t)
	direct := c.Database(t)
	db := open(t, direct, postgres.Options{})
	p := newProxy(t, fmt.Sprintf("127.0.0.1:%d", c.Port))
	through := openURL(t, p.url(t, direct), postgres.Options{Lease: time.Minute})
	l := start(t, through, 4)
	for i := range 60 {
		time.Sleep(time.Duration(10+rand.IntN(60)) * time.Millisecond)
		p.cut(i%2 == 0)
	}
	time.Sleep(300 * time.Millisecond)
	l.end(t, db)
}

// proxy passes connections on, and cuts them.
type proxy struct {
	listener net.Listener
	to       string
	work     sync.WaitGroup
	mu       sync.Mutex
	conns    map[*pair]struct{}
}

type pair struct {
	client, server net.Conn
	mute           bool // answers are dropped from now on
	mu             sync.Mutex
}

func newProxy(t *testing.T, to string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: to, conns: map[*pair]struct{}{}}
	p.work.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close() // its connections are cut next
		p.cut(false)
		p.work.Wait()
	})
	return p
}

func (p *proxy) url(t *testing.T, direct string) string {
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = p.listener.Addr().String()
	return u.String()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = client.Close() // the database is away
			continue
		}
		c := &pair{client: client, server: server}
		p.mu.Lock()
		p.conns[c] = struct{}{}
		p.mu.Unlock()
		p.work.Go(func() { _, _ = io.Copy(server, client); c.close() })
		p.work.Go(func() { c.answers(); c.close() })
	}
}

func (c *pair) answers() {
	buf := make([]byte, 32<<10)
	for {
		n, err := c.server.Read(buf)
		if err != nil {
			return
		}
		c.mu.Lock()
		mute := c.mute
		c.mu.Unlock()
		if mute { // the statement has run, and its answer is lost
			return
		}
		if _, err := c.client.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (c *pair) close() {
	_ = c.client.Close() // cut on purpose
	_ = c.server.Close()
}

// cut ends all connections: now, or when their next answer comes, which is dropped.
func (p *proxy) cut(answers bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if answers {
			c.mu.Lock()
			c.mute = true
			c.mu.Unlock()
		} else {
			c.close()
		}
		delete(p.conns, c)
	}
}

// runChild starts a process that owns the journal, and returns it after its first acknowledged commits.
func runChild(t *testing.T, url, name string) (cmd *exec.Cmd, lines *bufio.Scanner) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childURL+"="+url, childName+"="+name)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) // it may have ended
	lines = bufio.NewScanner(out)
	for range 20 {
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), "acked ") {
			t.Fatalf("the child printed %q", lines.Text())
		}
	}
	return cmd, lines
}

// own takes the journal as soon as its lease has run out.
func own(t *testing.T, db *postgres.Journals, name string) (journal.Owner, time.Duration) {
	t.Helper()
	began := time.Now()
	for {
		o, err := db.Own(t.Context(), name, postgres.OwnOptions{By: "heir"})
		if err == nil {
			return o, time.Since(began)
		}
		if _, busy := errors.AsType[*journal.BusyError](err); !busy || time.Since(began) > 30*time.Second {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// An owner that dies is replaced within seconds, by one of those who try.
func TestOwnerIsKilled(t *testing.T) {
	u := pgtest.Shared(t).Database(t)
	db := open(t, u, postgres.Options{})
	cmd, lines := runChild(t, u, "task")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	acked := 20
	for lines.Scan() {
		acked++
	}
	o, took := own(t, db, "task")
	defer o.Close() //nolint:errcheck // nothing waits
	if took > 5*time.Second {
		t.Errorf("the takeover took %v, want at most 5 s", took)
	}
	head, err := o.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// epoch.opened of both, and one commit at most whose answer had not been printed.
	if n := int(head) - 2; n < acked || n > acked+1 {
		t.Errorf("got %d commits of the owner that was killed, want %d or one more", n, acked)
	}
}

// An owner that sleeps past its lease commits nothing when it wakes up.
func TestOwnerSleeps(t *testing.T) {
	u := pgtest.Shared(t).Database(t)
	db := open(t, u, postgres.Options{})
	cmd, lines := runChild(t, u, "task")
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	o, _ := own(t, db, "task")
	defer o.Close() //nolint:errcheck // nothing waits
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	last := ""
	for lines.Scan() {
		last = lines.Text()
	}
	if last != "fenced" {
		t.Errorf("the old owner ended with %q, want \"fenced\"", last)
	}
	for i := range 50 {
		if _, err := o.Append(t.Context(), draft(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	var before uint64
	for c, err := range o.Read(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Epoch < before {
			t.Fatalf("commit %d is of epoch %d, behind one of %d", c.Seq, c.Epoch, before)
		}
		before = c.Epoch
	}
}

// A follower on another server gets all commits also when the connections that listen are cut again and again.
func TestNotificationsAreLost(t *testing.T) {
	c := pgtest.Shared(t)
	direct := c.Database(t)
	db := open(t, direct, postgres.Options{})
	p := newProxy(t, fmt.Sprintf("127.0.0.1:%d", c.Port))
	through := openURL(t, p.url(t, direct), postgres.Options{})
	o, _ := own(t, db, "task")
	defer o.Close() //nolint:errcheck // a barrier has saved it
	const last = 400
	got := make(chan error, 1)
	go func() {
		want := uint64(1)
		for want <= last {
			r, err := through.OpenReader(t.Context(), "task", nil)
			if err != nil {
				continue // the connection is cut just now
			}
			for c, err := range r.Follow(t.Context(), want) {
				if err != nil {
					break // as a subscriber would, it follows again from where it was
				}
				if c.Seq != want {
					got <- fmt.Errorf("got commit %d, want %d", c.Seq, want)
					return
				}
				if want++; want > last {
					break
				}
			}
			_ = r.Close() // nothing is written
		}
		got <- nil
	}()
	for i := 2; i <= last; i++ {
		if _, err := o.Append(t.Context(), draft(i)); err != nil {
			t.Fatal(err)
		}
		if err := o.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
		if i%40 == 0 {
			p.cut(i%80 == 0)
		}
	}
	select {
	case err := <-got:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the follower never came to the end")
	}
}
