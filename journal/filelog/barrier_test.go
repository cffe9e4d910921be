package filelog_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/faultfs"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
)

var small = journal.Draft{Events: []journal.Event{[]byte(`{}`)}}

// slowDisk is a disk whose syncs of the log wait until they are let go.
type slowDisk struct {
	*faultfs.FS
	syncs atomic.Int64
	begun chan struct{}
	let   chan error
}

func newSlowDisk() *slowDisk {
	return &slowDisk{FS: faultfs.New(), begun: make(chan struct{}, 100), let: make(chan error)}
}

func (d *slowDisk) slow() {
	d.Fail(func(op, name string) error {
		if op != "sync" || name != "journal.jsonl" {
			return nil
		}
		d.syncs.Add(1)
		d.begun <- struct{}{}
		return <-d.let
	})
}

// All Barriers that come while a sync is on its way share the next one.
func TestBarriersShareASync(t *testing.T) {
	disk := newSlowDisk()
	o := mustOwn(t, t.TempDir(), filelog.Options{FS: disk})
	disk.slow()
	const crowd = 50
	results := make(chan error, crowd+1)
	barrier := func() {
		if _, err := o.Append(t.Context(), small); err != nil {
			t.Error(err)
		}
		results <- o.Barrier(t.Context())
	}
	go barrier()
	receive(t, disk.begun) // the first one is syncing
	var started sync.WaitGroup
	for range crowd {
		started.Add(1)
		go func() {
			if _, err := o.Append(t.Context(), small); err != nil {
				t.Error(err)
			}
			started.Done()
			results <- o.Barrier(t.Context())
		}()
	}
	started.Wait()
	disk.let <- nil
	if err := receive(t, results); err != nil {
		t.Fatal(err)
	}
	for done := 0; done < crowd; {
		select {
		case disk.let <- nil:
		case err := <-results:
			if err != nil {
				t.Fatal(err)
			}
			done++
		case <-time.After(time.Minute):
			t.Fatal("a Barrier never returned")
		}
	}
	disk.Fail(nil)
	if n := disk.syncs.Load(); n > 5 { // the crowd may arrive in two or three waves
		t.Fatalf("%d syncs for %d Barriers", n, crowd+1)
	}
}

// A failed sync is told to everybody who waited for it, each in a way that says
// what to do; whoever asks again gets a new attempt.
func TestFailedSyncIsToldToAll(t *testing.T) {
	disk := newSlowDisk()
	dir := t.TempDir()
	o := mustOwn(t, dir, filelog.Options{FS: disk})
	disk.slow()
	results := make(chan error, 3)
	for range 3 {
		if _, err := o.Append(t.Context(), small); err != nil {
			t.Fatal(err)
		}
		go func() { results <- o.Barrier(t.Context()) }()
	}
	failures := 0
	for got := 0; got < 3; {
		select {
		case disk.let <- syscall.ENOSPC:
			failures++
		case err := <-results:
			if !errors.Is(err, journal.ErrNotSaved) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "make room") {
				t.Fatalf("got %v, want errors.Is(err, journal.ErrNotSaved) and errors.Is(err, syscall.ENOSPC) and strings.Contains(err.Error(), \"make room\")",
					err)
			}
			got++
		case <-time.After(time.Minute):
			t.Fatal("a Barrier never returned")
		}
	}
	disk.Fail(nil)
	go func() { // an attempt may be on its way
		for {
			select {
			case disk.let <- nil:
			case <-t.Context().Done():
				return
			}
		}
	}()
	if err := o.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	if o.Unsaved() != nil {
		t.Fatal(o.Unsaved())
	}
	if head := checkLog(t, dir); head != 4 {
		t.Fatalf("head %d after %d failures", head, failures)
	}
}

// A Barrier that waits for somebody else's sync ends with its context; nothing is
// lost by that.
func TestWaitingBarrierEndsWithItsContext(t *testing.T) {
	disk := newSlowDisk()
	dir := t.TempDir()
	o := mustOwn(t, dir, filelog.Options{FS: disk})
	disk.slow()
	first := make(chan error, 1)
	if _, err := o.Append(t.Context(), small); err != nil {
		t.Fatal(err)
	}
	go func() { first <- o.Barrier(t.Context()) }()
	receive(t, disk.begun)
	if _, err := o.Append(t.Context(), small); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if err := o.Barrier(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	disk.Fail(nil)
	for done := false; !done; {
		select {
		case disk.let <- nil:
		case err := <-first:
			if err != nil {
				t.Fatal(err)
			}
			done = true
		}
	}
	go func() {
		select {
		case disk.let <- nil: // of the flusher, if it was quicker
		case <-t.Context().Done():
		}
	}()
	if err := o.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	if head := checkLog(t, dir); head != 3 {
		t.Fatalf("head %d", head)
	}
}

// While a disk is merely slow, Append waits for room and for nothing else: its
// context ends it, and so does Close.
func TestAppendWaitsForMemoryOnly(t *testing.T) {
	disk := newSlowDisk()
	o := mustOwn(t, t.TempDir(), filelog.Options{FS: disk, MaxUnsaved: 4000})
	disk.slow()
	fill := journal.Draft{Events: []journal.Event{[]byte(`{"x":"` + strings.Repeat("y", 3000) + `"}`)}}
	for i := range 2 { // the second is over the bound: the first is still on its way
		if _, err := o.Append(t.Context(), fill); err != nil {
			t.Fatal(i, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := o.Append(ctx, fill); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("over the bound: %v", err)
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := o.Append(t.Context(), fill)
		waiting <- err
	}()
	disk.Fail(nil)
	for {
		select {
		case disk.let <- nil:
			continue
		case err := <-waiting:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("memory became free, and nobody was told")
		}
		break
	}
}

// That the log cannot be looked at is trouble with the disk, not another owner:
// it is tried again, and goes on.
func TestStatFailureIsTrouble(t *testing.T) {
	for _, nth := range []int{1, 2} { // before the write, and after the sync
		t.Run(fmt.Sprint("look ", nth), func(t *testing.T) {
			dir := t.TempDir()
			disk := faultfs.New()
			o := mustOwn(t, dir, filelog.Options{FS: disk})
			add(t, o, 1)
			var looks atomic.Int64
			disk.Fail(func(op, name string) error {
				if op == "stat" && name == "journal.jsonl" && looks.Add(1) == int64(nth) {
					return syscall.EIO
				}
				return nil
			})
			if _, err := o.Append(t.Context(), small); err != nil {
				t.Fatal(err)
			}
			err := o.Barrier(t.Context())
			if !errors.Is(err, journal.ErrNotSaved) || errors.Is(err, journal.ErrFenced) || !errors.Is(err, syscall.EIO) {
				t.Fatalf("barrier: %v", err)
			}
			disk.Fail(nil)
			add(t, o, 1)
			if head := checkLog(t, dir); head != 4 {
				t.Fatalf("head %d", head)
			}
		})
	}
}

// A storm of appends, barriers, faults and followers at once: what was
// acknowledged is there, in order, and the log is whole.
func TestManyAtOnceOnABadDisk(t *testing.T) {
	dir := t.TempDir()
	disk := faultfs.New()
	o := mustOwn(t, dir, filelog.Options{FS: disk, FlushAfter: time.Millisecond})
	disk.Fail(func(op, name string) error {
		if name == "journal.jsonl" && (op == "write" || op == "sync" || op == "stat" || op == "open" || op == "truncate") && rand.IntN(9) == 0 {
			return syscall.ENOSPC
		}
		return nil
	})
	const workers, each = 8, 40
	follower := following(t, reader(t, dir), 1, 1+workers*each)
	var acked atomic.Uint64
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			for range each {
				seq, err := o.Append(t.Context(), small)
				if err != nil {
					t.Error(err)
					return
				}
				for err = o.Barrier(t.Context()); err != nil; err = o.Barrier(t.Context()) {
					if !errors.Is(err, journal.ErrNotSaved) {
						t.Error(err)
						return
					}
				}
				for {
					last := acked.Load()
					if seq <= last || acked.CompareAndSwap(last, seq) {
						break
					}
				}
				if head, err := o.Head(t.Context()); err != nil || head < seq {
					t.Errorf("acknowledged %d at head %d: %v", seq, head, err)
				}
			}
		})
	}
	wait.Wait()
	disk.Fail(nil)
	if head := checkLog(t, dir); head != 1+workers*each || head < acked.Load() {
		t.Fatalf("head %d, acknowledged %d", head, acked.Load())
	}
	for i, c := range receive(t, follower) {
		if c.Seq != uint64(i+1) {
			t.Fatalf("the follower got %d as number %d", c.Seq, i+1)
		}
	}
}
