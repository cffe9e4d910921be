package filelog_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/faultfs"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/journal/filelog"
)

// A lock that is lost (its file removed, a file system that forgot it) lets a
// second process in. The first one stops before it is told that anything more was
// saved, and what the second was told stays.
func TestSecondWriterProcessFencesTheFirst(t *testing.T) {
	dir := t.TempDir()
	first := mustOwn(t, dir, filelog.Options{})
	add(t, first, 3)
	if err := os.Remove(filepath.Join(dir, "journal.lock")); err != nil {
		t.Fatal(err)
	}
	c := startChild(t, dir)
	if epoch, ok := c.next(t, "open"); !ok || epoch != 2 {
		t.Fatalf("the second process opened epoch %d", epoch)
	}
	var acked uint64
	for range 5 {
		acked, _ = c.next(t, "ack")
	}
	if _, err := first.Append(t.Context(), small); err != nil {
		t.Fatal(err) // it cannot know yet
	}
	if err := first.Barrier(t.Context()); !errors.Is(err, journal.ErrFenced) {
		t.Fatalf("the first owner was told %v", err)
	}
	if _, err := first.Append(t.Context(), small); !errors.Is(err, journal.ErrFenced) {
		t.Fatalf("append: %v", err)
	}
	if _, err := first.PutBlob(t.Context(), []byte("x")); !errors.Is(err, journal.ErrFenced) {
		t.Fatalf("blob: %v", err)
	}
	if more, ok := c.next(t, "ack"); !ok || more <= acked {
		t.Fatal("the second owner was stopped as well")
	}
	c.kill()
	if err := first.Close(); !errors.Is(err, journal.ErrFenced) {
		t.Fatalf("close: %v", err)
	}
	if head := checkLog(t, dir); head < acked {
		t.Fatalf("acknowledged %d, found %d", acked, head)
	}
}

// The worst moment: the first owner has looked, and writes right behind the
// second's opening. Its commit comes behind the other's, not over it; it is not
// acknowledged, and readers set it aside.
func TestFencedBetweenLookAndWrite(t *testing.T) {
	dir := t.TempDir()
	disk := faultfs.New()
	first := mustOwn(t, dir, filelog.Options{FS: disk})
	add(t, first, 2)
	var once sync.Once
	var second journal.Owner
	disk.Fail(func(op, name string) error {
		if op == "write" && name == "journal.jsonl" {
			once.Do(func() {
				if err := os.Remove(filepath.Join(dir, "journal.lock")); err != nil {
					t.Error(err)
				}
				second = mustOwn(t, dir, filelog.Options{})
				add(t, second, 2)
			})
		}
		return nil
	})
	if _, err := first.Append(t.Context(), journal.Draft{Events: []journal.Event{[]byte(`{"late":true}`)}}); err != nil {
		t.Fatal(err)
	}
	if err := first.Barrier(t.Context()); !errors.Is(err, journal.ErrFenced) {
		t.Fatalf("the first owner was told %v", err)
	}
	first.Close()
	second.Close()
	third := mustOwn(t, dir, filelog.Options{})
	add(t, third, 1)
	h, err := third.Health(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if h.Epoch != 3 || len(h.Damaged) > 0 || len(h.SetAside) != 1 || h.SetAside[0].Reason != "written by an owner that had been replaced" {
		t.Fatalf("got %+v, want h.Epoch = 3 and len(h.Damaged) <= 0 and len(h.SetAside) = 1 and h.SetAside[0].Reason = \"written by an owner that had been replaced\"",
			h)
	}
	seqs, lost := found(t, dir)
	if got := fmt.Sprint(seqs, lost); got != "[1 2 3 4 5 6 7 8] []" {
		t.Fatal(got)
	}
	log, _ := os.ReadFile(filepath.Join(dir, "journal.jsonl"))
	if !bytes.Contains(log, []byte(`{"late":true}`)) {
		t.Fatal("what was written was destroyed")
	}
}

// Two processes that both want the task, again and again: one gets it, the other
// is told who has it, and no commit is lost or written twice.
func TestRaceForOwnership(t *testing.T) {
	rounds := 100
	if testing.Short() {
		rounds = 10
	}
	dir := t.TempDir()
	wins, refused := 0, 0
	for round := range rounds {
		type result struct {
			won  bool
			text string
		}
		results := make(chan result, 2)
		for range 2 {
			go func() {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), childEnv+"="+dir, childEnv+"_ONCE=1", quickExit)
				out, err := cmd.Output()
				results <- result{err == nil, string(out)}
			}()
		}
		won := 0
		for range 2 {
			r := receive(t, results)
			switch {
			case r.won:
				won++
			case strings.Contains(r.text, "is in use by child (pid "):
				refused++
			default:
				t.Fatalf("round %d: %s", round, r.text)
			}
		}
		if won == 0 {
			t.Fatalf("round %d: nobody got it", round)
		}
		wins += won
	}
	if head := checkLog(t, dir); head != uint64(2*wins) {
		t.Fatalf("%d owners made %d commits", wins, head)
	}
	t.Logf("%d rounds: %d owners, %d refused", rounds, wins, refused)
}

// Readers take the lock for a moment to measure a log without an owner. That
// must never make an owner believe that the task is taken.
func TestReadersDoNotKeepOwnersOut(t *testing.T) {
	dir, _ := made(t, 3)
	stop := make(chan struct{})
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				r, err := filelog.OpenReader(dir)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := r.Head(t.Context()); err != nil {
					t.Error(err)
				}
				filelog.Holder(dir)
				r.Close()
			}
		})
	}
	for range 30 {
		o, err := filelog.Own(t.Context(), dir, filelog.Options{})
		if err != nil {
			t.Error(err)
			break
		}
		o.Close()
	}
	close(stop)
	wait.Wait()
}

// Whoever waits for the lock gets the task when the owner lets it go, and gives
// up with its context.
func TestWaitForLock(t *testing.T) {
	dir := t.TempDir()
	o := mustOwn(t, dir, filelog.Options{})
	ended := make(chan error, 1)
	go func() {
		next, err := filelog.Own(t.Context(), dir, filelog.Options{WaitForLock: time.Minute})
		if err == nil {
			err = next.Close()
		}
		ended <- err
	}()
	add(t, o, 1)
	o.Close()
	if err := receive(t, ended); err != nil {
		t.Fatal(err)
	}
	mustOwn(t, dir, filelog.Options{})
	ctx, cancel := contextWithTimeout(t, 40*time.Millisecond)
	defer cancel()
	if _, err := filelog.Own(ctx, dir, filelog.Options{WaitForLock: time.Minute}); !errors.Is(err, ctx.Err()) || err == nil {
		t.Fatalf("own: %v", err)
	}
}
