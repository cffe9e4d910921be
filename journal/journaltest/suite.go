// Package journaltest is the behaviour that every journal backend must show:
// order, ownership, durability as far as a test inside one process can see it,
// following, blobs, snapshots. It knows nothing of files or tables; faults of a
// backend's own medium are tested next to the backend.
//
//	func TestJournal(t *testing.T) {
//		journaltest.Run(t, func(t *testing.T) journaltest.Backend { ... })
//	}
package journaltest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/journal"
)

// Backend is one empty place for one journal.
type Backend struct {
	// Own takes the journal; it creates it the first time.
	Own func(ctx context.Context) (journal.Owner, error)
	// Open opens the journal for reading, without owning it.
	Open func(ctx context.Context) (journal.Reader, error)
}

// patience limits how long a required event may take on a busy machine.
const patience = 20 * time.Second

// Run runs the suite. open is called once per test and gives a fresh Backend.
func Run(t *testing.T, open func(t *testing.T) Backend) {
	for _, c := range []struct {
		name string
		test func(*testing.T, *bench)
	}{
		{"NothingHereIsNotFound", testNotFound},
		{"EpochIsOpenedFirst", testEpochOpened},
		{"WhatWasAppendedComesBack", testRoundTrip},
		{"ReadFromAnywhere", testReadFrom},
		{"ReadBackward", testBackward},
		{"StoppingEarlyStopsReading", testStopEarly},
		{"InvalidDraftsTakeNoNumber", testInvalidDraft},
		{"UnsyncedIsNotShown", testVisibility},
		{"BufferedIsSyncedSoon", testFlushBySelf},
		{"ManyBarriersAtOnce", testManyBarriers},
		{"OneOwner", testOneOwner},
		{"EpochsRise", testEpochsRise},
		{"FollowMissesNothing", testFollow},
		{"FollowEnds", testFollowEnds},
		{"FollowersOfAnOwner", testFollowOwner},
		{"Blobs", testBlobs},
		{"Snapshots", testSnapshots},
		{"Closed", testClosed},
		{"CancelledContext", testCancelled},
		{"ReadingChangesNothing", testHealthTwice},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
			t.Cleanup(cancel)
			c.test(t, &bench{t, ctx, open(t)})
		})
	}
}

// bench is one test's place.
type bench struct {
	t   *testing.T
	ctx context.Context
	b   Backend
}

func (b *bench) own() journal.Owner {
	b.t.Helper()
	o, err := b.b.Own(b.ctx)
	b.must(err)
	b.t.Cleanup(func() { _ = o.Close() }) // many cases close it themselves
	return o
}

func (b *bench) open() journal.Reader {
	b.t.Helper()
	r, err := b.b.Open(b.ctx)
	b.must(err)
	b.t.Cleanup(func() { r.Close() })
	return r
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) equal(what string, want, got any) {
	b.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		b.t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func draft(i int) journal.Draft {
	return journal.Draft{At: int64(1000 + i), By: "tester", Events: []journal.Event{fmt.Appendf(nil, `{"n":%d}`, i)}}
}

// add appends n drafts after from and waits for them.
func (b *bench) add(o journal.Owner, from, n int) {
	b.t.Helper()
	for i := from; i < from+n; i++ {
		_, err := o.Append(b.ctx, draft(i))
		b.must(err)
	}
	b.must(o.Barrier(b.ctx))
}

func (b *bench) read(r journal.Reader, from uint64) (out []journal.Commit) {
	b.t.Helper()
	for c, err := range r.Read(b.ctx, from) {
		b.must(err)
		out = append(out, c)
	}
	return out
}

func seqs(cs []journal.Commit) (out []uint64) {
	for _, c := range cs {
		out = append(out, c.Seq)
	}
	return out
}

func upTo(from, to uint64) (out []uint64) {
	for i := from; i <= to; i++ {
		out = append(out, i)
	}
	return out
}

func testNotFound(t *testing.T, b *bench) {
	for range 2 { // the first try must not create it
		if _, err := b.b.Open(b.ctx); !errors.Is(err, journal.ErrNotFound) {
			t.Fatalf("got %v", err)
		}
	}
}

func testEpochOpened(t *testing.T, b *bench) {
	o := b.own()
	got := b.read(b.open(), 0)
	if len(got) != 1 || got[0].Seq != 1 || got[0].Epoch != o.Epoch() || !strings.HasPrefix(string(got[0].Events[0]), `{"type":"epoch.opened","owner":{`) {
		t.Fatalf("%+v", got)
	}
}

func testRoundTrip(t *testing.T, b *bench) {
	o := b.own()
	h, err := o.PutBlob(b.ctx, []byte("payload"))
	b.must(err)
	d := journal.Draft{At: -5, By: "a \"b\" \u00e9", Blobs: []journal.Hash{h}, Events: []journal.Event{
		[]byte(`{"z":1,"a":"\ud800 \u2028","n":1.50e3, "sp" : [ ] }`), []byte(`{}`),
	}}
	seq, err := o.Append(b.ctx, d)
	b.must(err)
	b.must(o.Barrier(b.ctx))
	want := journal.Commit{Seq: seq, Epoch: o.Epoch(), At: d.At, By: d.By, Blobs: d.Blobs, Events: d.Events}
	b.equal("owner", []journal.Commit{want}, b.read(o, seq))
	b.equal("reader", []journal.Commit{want}, b.read(b.open(), seq))
}

func testReadFrom(t *testing.T, b *bench) {
	o := b.own()
	b.add(o, 0, 300)
	r := b.open()
	for _, from := range []uint64{0, 1, 2, 64, 65, 128, 250, 301} {
		b.equal(fmt.Sprint("from ", from), upTo(max(from, 1), 301), seqs(b.read(r, from)))
	}
	b.equal("behind the end", []uint64(nil), seqs(b.read(r, 302)))
	head, err := r.Head(b.ctx)
	b.must(err)
	b.equal("head", uint64(301), head)
}

func testBackward(t *testing.T, b *bench) {
	o := b.own()
	b.add(o, 0, 299)
	r := b.open()
	for _, before := range []uint64{0, 1, 2, 64, 65, 66, 200, 300, 301, 1000} {
		var got []uint64
		for c, err := range r.ReadBackward(b.ctx, before) {
			b.must(err)
			got = append(got, c.Seq)
		}
		top := before - 1
		if before == 0 || before > 300 {
			top = 300
		}
		var want []uint64
		for s := top; s >= 1; s-- {
			want = append(want, s)
		}
		b.equal(fmt.Sprint("before ", before), want, got)
	}
}

func testStopEarly(t *testing.T, b *bench) {
	o := b.own()
	b.add(o, 0, 10)
	for c, err := range o.Read(b.ctx, 3) {
		b.must(err)
		b.equal("first", uint64(3), c.Seq)
		break
	}
	for c, err := range o.ReadBackward(b.ctx, 0) {
		b.must(err)
		b.equal("last", uint64(11), c.Seq)
		break
	}
	for range o.Follow(b.ctx, 1) {
		break
	}
}

func testInvalidDraft(t *testing.T, b *bench) {
	o := b.own()
	for _, d := range []journal.Draft{
		{}, {Events: []journal.Event{[]byte(`{`)}}, {Events: []journal.Event{[]byte(`3`)}},
		{Events: []journal.Event{[]byte(`{}`)}, Blobs: []journal.Hash{"x"}},
	} {
		if _, err := o.Append(b.ctx, d); !errors.Is(err, journal.ErrInvalid) {
			t.Fatalf("%+v: %v", d, err)
		}
	}
	b.add(o, 0, 1)
	b.equal("sequences", upTo(1, 2), seqs(b.read(o, 1)))
}

// An Append is not visible before its Barrier or the flush; at any time, readers see a whole prefix.
func testVisibility(t *testing.T, b *bench) {
	o := b.own()
	r := b.open()
	b.add(o, 0, 1)
	for i := range 20 {
		_, err := o.Append(b.ctx, draft(i+1))
		b.must(err)
		got := b.read(r, 1)
		if n := len(got); n < 2 || n > i+3 {
			t.Fatalf("%d commits shown after %d appends", n, i+1)
		}
		b.must(o.Barrier(b.ctx))
		b.equal("after the barrier", upTo(1, uint64(i+3)), seqs(b.read(r, 1)))
	}
}

func testFlushBySelf(t *testing.T, b *bench) {
	o := b.own()
	r := b.open()
	seq, err := o.Append(b.ctx, draft(1))
	b.must(err)
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		head, err := r.Head(b.ctx)
		b.must(err)
		if head == seq {
			return
		}
		if time.Since(start) > patience {
			t.Fatal("an append without a barrier is never saved")
		}
	}
}

func testManyBarriers(t *testing.T, b *bench) {
	o := b.own()
	const workers, each = 16, 20
	errs := make(chan error, workers)
	for w := range workers {
		go func() {
			for i := range each {
				seq, err := o.Append(b.ctx, draft(w*1000+i))
				if err == nil {
					err = o.Barrier(b.ctx)
				}
				if err == nil {
					var head uint64
					if head, err = o.Head(b.ctx); err == nil && head < seq {
						err = fmt.Errorf("barrier returned at head %d, want %d", head, seq)
					}
				}
				if err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range workers {
		b.must(<-errs)
	}
	b.equal("sequences", upTo(1, 1+workers*each), seqs(b.read(b.open(), 1)))
}

func testOneOwner(t *testing.T, b *bench) {
	o := b.own()
	_, err := b.b.Own(b.ctx)
	var busy *journal.BusyError
	if !errors.As(err, &busy) || busy.Holder.PID == 0 {
		t.Fatalf("second owner: %v", err)
	}
	b.must(o.Close())
	b.own()
}

func testEpochsRise(t *testing.T, b *bench) {
	var last uint64
	for i := range 4 {
		o := b.own()
		if o.Epoch() <= last {
			t.Fatalf("epoch %d after %d", o.Epoch(), last)
		}
		last = o.Epoch()
		b.add(o, i, 1)
		b.must(o.Close())
	}
	all := b.read(b.open(), 1)
	b.equal("sequences", upTo(1, 8), seqs(all))
	for i := 1; i < len(all); i++ {
		if all[i].Epoch < all[i-1].Epoch {
			t.Fatal("an epoch fell")
		}
	}
}

func testFollow(t *testing.T, b *bench) {
	o := b.own()
	b.add(o, 0, 5)
	const total, followers = 400, 8
	results := make(chan error, followers)
	for f := range followers {
		r := b.open()
		go func() {
			want := uint64(1 + f)
			for c, err := range r.Follow(b.ctx, want) {
				if err == nil && c.Seq != want {
					err = fmt.Errorf("follower %d got %d, want %d", f, c.Seq, want)
				}
				if err != nil || want == total {
					results <- err
					return
				}
				want++
			}
			results <- errors.New("follow ended by itself")
		}()
	}
	for i := 6; i < total; i++ {
		_, err := o.Append(b.ctx, draft(i))
		b.must(err)
		if i%7 == 0 {
			b.must(o.Barrier(b.ctx))
		}
	}
	b.must(o.Barrier(b.ctx))
	for range followers {
		b.must(<-results)
	}
}

// An owner can be followed like any reader, from any commit, until it is closed; it yields what a reader reads.
func testFollowOwner(t *testing.T, b *bench) {
	o := b.own()
	b.add(o, 0, 20)
	const last = 51
	type result struct {
		got []journal.Commit
		end error
	}
	froms := []uint64{1, 15, 40}
	caughtUp, results := make(chan struct{}, len(froms)), make(chan result, len(froms))
	for _, from := range froms {
		go func() {
			var r result
			for c, err := range o.Follow(b.ctx, from) {
				if err != nil {
					r.end = err
					break
				}
				if r.got = append(r.got, c); c.Seq == last {
					caughtUp <- struct{}{}
				}
			}
			results <- r
		}()
	}
	b.add(o, 20, 30)
	for range froms {
		select {
		case <-caughtUp:
		case <-b.ctx.Done():
			t.Fatal("a follower never came to the end")
		}
	}
	want := b.read(b.open(), 1)
	b.must(o.Close())
	for range froms {
		r := <-results
		if !errors.Is(r.end, journal.ErrClosed) {
			t.Errorf("it ended with %v", r.end)
		}
		from := r.got[0].Seq
		b.equal(fmt.Sprint("from ", from), want[from-1:], r.got)
	}
}

func testFollowEnds(t *testing.T, b *bench) {
	b.own()
	r := b.open()
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	n := 0
	for _, err := range r.Follow(ctx, 1) {
		if n++; n == 1 {
			b.must(err)
			cancel()
		} else if n > 2 || !errors.Is(err, context.Canceled) {
			t.Fatalf("step %d: %v", n, err)
		}
	}
	b.equal("steps", 2, n)
}

func testBlobs(t *testing.T, b *bench) {
	o := b.own()
	data := []byte(strings.Repeat("0123456789", 100000))
	h, err := o.PutBlob(b.ctx, data)
	b.must(err)
	again, size, err := o.PutBlobFrom(b.ctx, strings.NewReader(string(data)))
	b.must(err)
	if again != h || size != int64(len(data)) || !h.Valid() {
		t.Fatalf("%s %d, first %s", again, size, h)
	}
	empty, err := o.PutBlob(b.ctx, nil)
	b.must(err)
	r := b.open()
	for hash, want := range map[journal.Hash][]byte{h: data, empty: {}} {
		blob, err := r.Blob(b.ctx, hash)
		b.must(err)
		got, err := blob.ReadAll()
		b.must(err)
		if string(got) != string(want) || blob.Size() != int64(len(want)) {
			t.Fatal("other bytes came back")
		}
		if len(want) > 0 {
			part := make([]byte, 10)
			_, err = blob.ReadAt(part, 5)
			b.must(err)
			b.equal("part", "5678901234", string(part))
		}
		b.must(blob.Close())
	}
	for _, bad := range []journal.Hash{journal.Hash(strings.Repeat("0", 64)), "", "../../../etc/passwd"} {
		if _, err := r.Blob(b.ctx, bad); !errors.Is(err, journal.ErrBlobMissing) {
			t.Fatalf("%q: %v", bad, err)
		}
	}
}

func testSnapshots(t *testing.T, b *bench) {
	o := b.own()
	if _, err := o.Snapshot(b.ctx); !errors.Is(err, journal.ErrNoSnapshot) {
		t.Fatal(err)
	}
	b.add(o, 0, 100)
	for _, s := range []journal.Snapshot{{Seq: 50, Data: []byte("fifty")}, {Seq: 101, Data: []byte("all")}} {
		b.must(o.SaveSnapshot(b.ctx, s))
		got, err := b.open().Snapshot(b.ctx)
		b.must(err)
		b.equal("snapshot", s, got)
	}
	if err := o.SaveSnapshot(b.ctx, journal.Snapshot{Seq: 102}); err == nil {
		t.Fatal("a snapshot of a commit that is not there was taken")
	}
	b.must(o.Close())
	got, err := b.own().Snapshot(b.ctx)
	b.must(err)
	b.equal("after reopening", uint64(101), got.Seq)
}

func testClosed(t *testing.T, b *bench) {
	o := b.own()
	r := b.open()
	_, err := o.Append(b.ctx, draft(1)) // no barrier: Close saves it
	b.must(err)
	b.must(o.Close())
	b.must(o.Close())
	b.equal("saved by Close", upTo(1, 2), seqs(b.read(r, 1)))
	b.must(r.Close())
	_, errAppend := o.Append(b.ctx, draft(2))
	_, errHead := r.Head(b.ctx)
	_, errBlob := o.PutBlob(b.ctx, []byte("x"))
	for i, err := range []error{errAppend, errHead, errBlob, o.Barrier(b.ctx)} {
		if !errors.Is(err, journal.ErrClosed) {
			t.Errorf("call %d after Close: %v", i, err)
		}
	}
	for _, err := range r.Follow(b.ctx, 1) {
		if !errors.Is(err, journal.ErrClosed) {
			t.Errorf("follow after Close: %v", err)
		}
	}
}

func testCancelled(t *testing.T, b *bench) {
	o := b.own()
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	_, errAppend := o.Append(ctx, draft(1))
	_, errHead := o.Head(ctx)
	_, errOwn := b.b.Own(ctx)
	for i, err := range []error{errAppend, errHead, errOwn, o.Barrier(ctx)} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	b.add(o, 1, 1)
	b.equal("sequences", upTo(1, 2), seqs(b.read(o, 1)))
}

func testHealthTwice(t *testing.T, b *bench) {
	o := b.own()
	h, err := o.PutBlob(b.ctx, []byte("x"))
	b.must(err)
	d := draft(1)
	d.Blobs = []journal.Hash{h}
	_, err = o.Append(b.ctx, d)
	b.must(err)
	b.must(o.Barrier(b.ctx))
	want := journal.Health{Head: 2, Epoch: o.Epoch(), Commits: 2}
	for range 2 {
		got, err := b.open().Health(b.ctx)
		b.must(err)
		b.equal("health", want, got)
		if !got.OK() {
			t.Fatal("not OK")
		}
	}
}
