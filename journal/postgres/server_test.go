package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-dev/roost/database"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/postgres"
)

// event is a line that a server of a history prints: an operation begins, or ends.
type event struct {
	At       int64  // nanoseconds of CLOCK_MONOTONIC, which all processes of a machine share
	Server   int    // as the parent numbers it
	Op       string // names the operation
	Phase    string // call; taken, when an own has the lease and has not committed; done
	Kind     string
	Journal  string
	Owner    string // the own operation that made the owner
	Question int
	Margin   time.Duration
	Result   string
	Seq      uint64
	Epoch    uint64
	Log      uint64
}

const (
	historyLease    = 500 * time.Millisecond
	historyJournals = 3
	questions       = 64 // of a journal; each is open until it is answered
)

// historyServer is a server that works on journals as long as its standard input is open, and follows them until it is
// killed.
type historyServer struct {
	id    string
	db    *postgres.Journals
	stop  chan struct{}
	ops   atomic.Int64
	clock func() int64
}

// serve is the program of a child: id is unique, and begins with the number of its server.
func serve(url, id string) int {
	ctx := context.Background()
	connected, err := database.Open(ctx, url)
	for ; err != nil; connected, err = database.Open(ctx, url) {
		time.Sleep(20 * time.Millisecond) // its connection was cut, or the database is away
	}
	// The clocks of the servers are hours apart. Only that of the database decides.
	skew := time.Duration(rand.IntN(24)-12) * time.Hour
	s := &historyServer{
		id:    id,
		db:    postgres.Open(ctx, connected, postgres.Options{Lease: historyLease}),
		stop:  make(chan struct{}),
		clock: func() int64 { return time.Now().Add(skew).UnixMilli() },
	}
	var work sync.WaitGroup
	for i := range historyJournals {
		name := fmt.Sprintf("journal-%d", i)
		work.Go(func() { s.own(ctx, name) })
		work.Go(func() { s.read(ctx, name) })
		go s.follow(ctx, name)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // it ends when the parent has had enough
	close(s.stop)
	work.Wait()
	s.print(event{Phase: "stopped"})
	select {} // the followers go on
}

// monotonic is the time of a clock that all processes of the machine share.
func monotonic() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}

func (s *historyServer) print(e event) {
	e.At = monotonic()
	line, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	_, _ = os.Stdout.Write(append(line, '\n')) // one call: a line is there whole, or not at all
}

// call prints that an operation begins, and returns it with its name.
func (s *historyServer) call(e event) event {
	e.Phase, e.Op = "call", fmt.Sprintf("%s.%d", s.id, s.ops.Add(1))
	s.print(e)
	return e
}

func (s *historyServer) done(e event, result string) {
	e.Phase, e.Result = "done", result
	s.print(e)
}

func (s *historyServer) stopped() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

func sleepUpTo(d time.Duration) { time.Sleep(rand.N(d)) }

// own owns the journal again and again, each time for a while.
func (s *historyServer) own(ctx context.Context, name string) {
	for !s.stopped() {
		e := s.call(event{Kind: kindOwn, Journal: name})
		o, err := s.db.Own(ctx, name, postgres.OwnOptions{
			By:    e.Op,
			Clock: s.clock,
			Meets: func(head uint64) error {
				taken := e
				taken.Phase, taken.Seq = "taken", head
				s.print(taken)
				sleepUpTo(100 * time.Millisecond) // here an owner of before may wake up
				return nil
			},
		})
		if _, busy := errors.AsType[*journal.BusyError](err); busy {
			s.done(e, resultNone)
			sleepUpTo(200 * time.Millisecond)
			continue
		}
		if err != nil {
			s.done(e, resultUnknown)
			sleepUpTo(50 * time.Millisecond)
			continue
		}
		if e.Seq, err = o.Head(ctx); err != nil {
			panic(err) // it is open
		}
		e.Epoch = o.Epoch()
		s.done(e, resultOK)
		(&ownership{historyServer: s, name: name, op: e.Op, owner: o}).work(ctx)
		c := s.call(event{Kind: kindClose, Journal: name, Owner: e.Op})
		_ = o.Close() // what is not saved has an unknown outcome
		s.done(c, resultOK)
		sleepUpTo(100 * time.Millisecond)
	}
}

// ownership is one time that a server owns a journal.
type ownership struct {
	*historyServer
	name  string
	op    string
	owner journal.Owner

	mu       sync.Mutex
	answered [questions]bool // also by commits that are not saved yet
}

func (o *ownership) work(ctx context.Context) {
	for c, err := range o.owner.Read(ctx, 1) {
		if err != nil {
			return // the connection is cut just now
		}
		var a struct{ Answer *int }
		if err := json.Unmarshal(c.Events[0], &a); err == nil && a.Answer != nil {
			o.answered[*a.Answer] = true
		}
	}
	end := time.Now().Add(100*time.Millisecond + rand.N(2*time.Second))
	var work sync.WaitGroup
	for range 2 {
		work.Go(func() {
			for more := true; more && time.Now().Before(end) && !o.stopped(); {
				switch n := rand.IntN(10); {
				case n == 0:
					more = o.answer(ctx, rand.IntN(questions))
				case n == 1:
					more = o.held(ctx)
				default:
					e := o.call(event{Kind: kindAppend, Journal: o.name, Owner: o.op})
					seq, err := o.append(ctx, e.Op, fmt.Sprintf(`{"pad":"%s"}`, strings.Repeat("x", rand.IntN(2000))))
					more = o.saved(ctx, e, seq, err)
				}
				sleepUpTo(10 * time.Millisecond)
			}
		})
	}
	work.Wait()
}

func (o *ownership) append(ctx context.Context, by, text string) (uint64, error) {
	return o.owner.Append(ctx, journal.Draft{At: o.clock(), By: by, Events: []journal.Event{[]byte(text)}})
}

// saved waits for an append and prints how it ended. It reports whether the owner can go on.
func (o *ownership) saved(ctx context.Context, e event, seq uint64, err error) bool {
	switch {
	case errors.Is(err, journal.ErrFenced):
		o.done(e, resultFenced)
		return false
	case err != nil:
		o.done(e, resultNone)
		return true
	}
	e.Seq = seq
	if err := o.owner.Barrier(ctx); err != nil { // also ErrFenced: the answer may have been lost before
		o.done(e, resultUnknown)
		return !errors.Is(err, journal.ErrFenced)
	}
	o.done(e, resultOK)
	return true
}

// answer answers a question, unless the log has an answer.
func (o *ownership) answer(ctx context.Context, question int) bool {
	e := o.call(event{Kind: kindAnswer, Journal: o.name, Owner: o.op, Question: question})
	o.mu.Lock()
	if o.answered[question] {
		o.mu.Unlock()
		if err := o.owner.Barrier(ctx); err != nil { // the answer that is there may not be saved
			o.done(e, resultNone)
			return !errors.Is(err, journal.ErrFenced)
		}
		o.done(e, resultLate)
		return true
	}
	seq, err := o.append(ctx, e.Op, fmt.Sprintf(`{"answer":%d}`, question))
	o.answered[question] = err == nil
	o.mu.Unlock()
	return o.saved(ctx, e, seq, err)
}

func (o *ownership) held(ctx context.Context) bool {
	e := o.call(event{Kind: kindHeld, Journal: o.name, Owner: o.op, Margin: rand.N(historyLease * 3 / 4)})
	err := o.owner.(postgres.Holder).Held(ctx, e.Margin)
	switch {
	case err == nil:
		o.done(e, resultOK)
	case errors.Is(err, journal.ErrFenced):
		o.done(e, resultFenced)
		return false
	default:
		o.done(e, resultUnknown)
	}
	return true
}

// read reads the whole journal now and then.
func (s *historyServer) read(ctx context.Context, name string) {
	for !s.stopped() {
		sleepUpTo(200 * time.Millisecond)
		e := s.call(event{Kind: kindRead, Journal: name})
		s.done(s.readWhole(ctx, e))
	}
}

func (s *historyServer) readWhole(ctx context.Context, e event) (event, string) {
	r, err := s.db.OpenReader(ctx, e.Journal, nil)
	if err != nil {
		return e, resultNone
	}
	defer r.Close() //nolint:errcheck // nothing was written
	for c, err := range r.Read(ctx, 1) {
		_, damaged := errors.AsType[*journal.DamageError](err)
		switch {
		case damaged || err == nil && (c.Seq != e.Seq+1 || c.Epoch < e.Epoch):
			return e, resultDamaged
		case err != nil:
			return e, resultNone
		}
		e.Seq, e.Epoch, e.Log = c.Seq, c.Epoch, extended(e.Log, c.By, c.Epoch)
	}
	return e, resultOK
}

// follow follows the journal, and again from where it was when the connection is cut.
func (s *historyServer) follow(ctx context.Context, name string) {
	e := event{Kind: kindFollow, Phase: "followed", Journal: name}
	for ; ; time.Sleep(10 * time.Millisecond) {
		r, err := s.db.OpenReader(ctx, name, nil)
		if err != nil {
			continue
		}
		for c, err := range r.Follow(ctx, e.Seq+1) {
			if err != nil {
				break
			}
			e.Seq, e.Log = c.Seq, extended(e.Log, c.By, c.Epoch)
			s.print(e)
		}
		_ = r.Close() // nothing was written
	}
}
