package filelog_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
)

func reader(t testing.TB, dir string) journal.Reader {
	t.Helper()
	r, err := filelog.OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// asText compares events as text: byte by byte takes long, and reads badly.
var asText = cmp.Transformer("text", func(e journal.Event) string { return string(e) })

// following collects what a follower gets until it has the commit `last`.
func following(t testing.TB, r journal.Reader, from, last uint64) <-chan []journal.Commit {
	t.Helper()
	out := make(chan []journal.Commit, 1)
	go func() {
		var got []journal.Commit
		for c, err := range r.Follow(t.Context(), from) {
			if err != nil {
				t.Errorf("follow from %d: %v", from, err)
				break
			}
			if got = append(got, c); c.Seq == last {
				break
			}
		}
		out <- got
	}()
	return out
}

func receive[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// Whether a follower reads the file or gets the commits from its own process, in
// the middle of it or from the start: they are the same.
func TestFollowersGetWhatReadersRead(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "*")
		if err != nil {
			rt.Fatal(err)
		}
		o := mustOwn(t, dir, filelog.Options{})
		defer o.Close()
		n := rapid.IntRange(1, 8).Draw(rt, "commits")
		early := following(t, reader(t, dir), 1, uint64(n+1))
		var late <-chan []journal.Commit
		from := rapid.Uint64Range(0, uint64(n+1)).Draw(rt, "late from")
		for i := range n {
			d := journal.Draft{At: rapid.Int64().Draw(rt, "at"), By: rapid.SampledFrom([]string{"", "run-1", "\xff", "a\nb"}).Draw(rt, "by")}
			for range rapid.IntRange(1, 3).Draw(rt, "events") {
				d.Events = append(d.Events, journal.Event(rapid.SampledFrom([]string{
					`{}`, "{\"a\":\n1}", `{"a":"` + strings.Repeat("x", 5000) + `"}`, `{"l":"\udc00"}`, `{"a":"` + strings.Repeat("y", 70_000) + `"}`,
				}).Draw(rt, "event")))
			}
			if _, err := o.Append(t.Context(), d); err != nil {
				rt.Fatal(err)
			}
			if rapid.Bool().Draw(rt, "barrier") || i == n-1 {
				if err := o.Barrier(t.Context()); err != nil {
					rt.Fatal(err)
				}
			}
			if i == n/2 {
				late = following(t, o, from, uint64(n+1))
			}
		}
		var want []journal.Commit
		for c, err := range reader(t, dir).Read(t.Context(), 1) {
			if err != nil {
				rt.Fatal(err)
			}
			want = append(want, c)
		}
		if diff := cmp.Diff(want, receive(t, early), asText); diff != "" {
			rt.Fatalf("from the start (-read +followed):\n%s", diff)
		}
		if diff := cmp.Diff(want[max(from, 1)-1:], receive(t, late), asText); diff != "" {
			rt.Fatalf("from %d (-read +followed):\n%s", from, diff)
		}
	})
}

// What was only appended is not shown: it might never become durable.
func TestFollowersSeeOnlyWhatIsSynced(t *testing.T) {
	dir := t.TempDir()
	o := mustOwn(t, dir, filelog.Options{FlushAfter: time.Hour})
	got := make(chan uint64, 10)
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() {
		for c, err := range reader(t, dir).Follow(ctx, 2) {
			if err == nil {
				got <- c.Seq
			}
		}
	})
	for range 3 {
		seq, err := o.Append(t.Context(), journal.Draft{Events: []journal.Event{[]byte(`{}`)}})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case early := <-got:
			t.Fatalf("commit %d was shown before it was synced", early)
		case <-time.After(20 * time.Millisecond):
		}
		if err := o.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := receive(t, got); s != seq {
			t.Fatalf("got %d, want %d", s, seq)
		}
	}
	cancel()
	wait.Wait()
}

// A follower outlives the owners: it goes on with the next one's commits, of
// whichever epoch, and sees their opening.
func TestFollowAcrossOwners(t *testing.T) {
	dir := t.TempDir()
	first := mustOwn(t, dir, filelog.Options{})
	follower := following(t, reader(t, dir), 1, 12)
	add(t, first, 2)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		o := mustOwn(t, dir, filelog.Options{})
		add(t, o, 2)
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var epochs []uint64
	for _, c := range receive(t, follower) {
		epochs = append(epochs, c.Epoch)
	}
	if diff := cmp.Diff([]uint64{1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4}, epochs); diff != "" {
		t.Fatal(diff)
	}
}

// A follower that is stuck slows nobody, neither the owner nor the others, and
// misses nothing: more is written than is kept in memory for it.
func TestStuckFollowerSlowsNobody(t *testing.T) {
	dir := t.TempDir()
	o := mustOwn(t, dir, filelog.Options{})
	const total = 120
	release, stuck := make(chan struct{}), make(chan uint64, 1)
	var wait sync.WaitGroup
	wait.Go(func() {
		last := uint64(0)
		for c, err := range reader(t, dir).Follow(t.Context(), 1) {
			if err != nil || c.Seq != last+1 {
				t.Errorf("%d after %d: %v", c.Seq, last, err)
				break
			}
			if last = c.Seq; last == 3 {
				stuck <- last
				<-release
			}
			if last == total {
				return
			}
		}
	})
	add(t, o, 2)
	receive(t, stuck)
	quick := following(t, reader(t, dir), 1, total)
	big := journal.Event(`{"x":"` + strings.Repeat("y", 50_000) + `"}`)
	for seq := uint64(3); seq < total; {
		var err error
		if seq, err = o.Append(t.Context(), journal.Draft{Events: []journal.Event{big}}); err != nil {
			t.Fatal(err)
		}
		if err := o.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := receive(t, quick); len(got) != total {
		t.Fatalf("the other follower has %d", len(got))
	}
	close(release)
	wait.Wait()
}

// A thousand followers of one log: each gets each commit, once and in order, and
// the owner goes on while they are being told.
func TestThousandFollowers(t *testing.T) {
	if testing.Short() {
		t.Skip("a thousand followers")
	}
	dir := t.TempDir()
	o := mustOwn(t, dir, filelog.Options{})
	r := reader(t, dir)
	const followers, total = 1000, 40
	var wait sync.WaitGroup
	var mu sync.Mutex
	var late []time.Duration
	ready := make(chan struct{}, followers)
	for range followers {
		wait.Go(func() {
			last := uint64(0)
			for c, err := range r.Follow(t.Context(), 1) {
				if err != nil || c.Seq != last+1 {
					t.Errorf("%d after %d: %v", c.Seq, last, err)
					return
				}
				if last = c.Seq; last == 1 {
					ready <- struct{}{}
					continue
				}
				mu.Lock()
				late = append(late, time.Since(time.Unix(0, c.At)))
				mu.Unlock()
				if last == total {
					return
				}
			}
		})
	}
	for range followers {
		receive(t, ready)
	}
	for range total - 1 {
		if _, err := o.Append(t.Context(), journal.Draft{At: time.Now().UnixNano(), Events: []journal.Event{[]byte(`{}`)}}); err != nil {
			t.Fatal(err)
		}
		if err := o.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	wait.Wait()
	slices.Sort(late)
	if len(late) != followers*(total-1) {
		t.Fatalf("%d deliveries", len(late))
	}
	t.Logf("append to follower, sync included: median %v, p99 %v", late[len(late)/2], late[len(late)*99/100])
}

// Another file under the log's name (a copy that was put back, an editor that
// saves by renaming) says nothing of what was read: readers notice and say so.
func TestReplacedLogIsNoticed(t *testing.T) {
	dir, log := made(t, 4)
	r := reader(t, dir)
	if head, err := r.Head(t.Context()); err != nil || head != 4 {
		t.Fatal(head, err)
	}
	ended := make(chan error, 1)
	seen := make(chan uint64, 10)
	follower := reader(t, dir)
	go func() {
		for c, err := range follower.Follow(t.Context(), 1) {
			if err != nil {
				ended <- err
				return
			}
			seen <- c.Seq
		}
	}()
	for range 4 {
		receive(t, seen)
	}
	put(t, dir, "copy", log)
	if err := os.Rename(filepath.Join(dir, "copy"), filepath.Join(dir, "journal.jsonl")); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, ended); !errors.Is(err, journal.ErrReplaced) {
		t.Errorf("the follower ended with %v", err)
	}
	_, errHead := r.Head(t.Context())
	_, errHealth := r.Health(t.Context())
	_, errSnap := r.Snapshot(t.Context())
	var errRead, errBack error
	for _, err := range r.Read(t.Context(), 1) {
		errRead = err
	}
	for _, err := range r.ReadBackward(t.Context(), 0) {
		errBack = err
	}
	for i, err := range []error{errHead, errHealth, errSnap, errRead, errBack} {
		if !errors.Is(err, journal.ErrReplaced) || !strings.Contains(err.Error(), dir) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if head := checkLog(t, dir); head != 4 {
		t.Errorf("opened again: head %d", head)
	}
}

func TestFollowerOfADeletedLogIsTold(t *testing.T) {
	for name, away := range map[string]func(dir string) error{
		"deleted": os.RemoveAll,
		"moved":   func(dir string) error { return os.Rename(dir, dir+"-trash") },
	} {
		t.Run(name, func(t *testing.T) {
			home, _ := made(t, 3)
			dir := filepath.Join(t.TempDir(), "task")
			if err := os.CopyFS(dir, os.DirFS(home)); err != nil {
				t.Fatal(err)
			}
			r := reader(t, dir)
			steps := make(chan error, 10)
			go func() {
				for _, err := range r.Follow(t.Context(), 1) {
					steps <- err
				}
				close(steps)
			}()
			for range 3 {
				if err := receive(t, steps); err != nil {
					t.Fatal(err)
				}
			}
			if err := away(dir); err != nil {
				t.Fatal(err)
			}
			if err := receive(t, steps); !errors.Is(err, journal.ErrNotFound) {
				t.Fatalf("ended with %v", err)
			}
			// What was read once can be read on: reading does not depend on the name.
			if head, err := r.Head(t.Context()); err != nil || head != 3 {
				t.Fatal(head, err)
			}
		})
	}
}

// Following ends at once when its reader is closed, also while it waits.
func TestFollowEndsWithItsReader(t *testing.T) {
	dir, _ := made(t, 2)
	r := reader(t, dir)
	var got []string
	for c, err := range r.Follow(t.Context(), 1) {
		got = append(got, fmt.Sprint(c.Seq, err))
		if c.Seq == 2 {
			time.AfterFunc(10*time.Millisecond, func() { r.Close() })
		}
	}
	if diff := cmp.Diff([]string{"1 <nil>", "2 <nil>", "0 " + journal.ErrClosed.Error()}, got); diff != "" {
		t.Fatal(diff)
	}
}
