package events

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/feed"
	"github.com/roost-dev/roost/task"
)

// held makes a task with some commits whose owner stays, and gives the line of the activity log that announces all
// of them.
func held(t *testing.T) (s *store.Store, ref store.Ref, e feed.Entry, letGo func()) {
	t.Helper()
	s = fixture.Must[*store.Store](t)(store.Open(store.Options{Root: t.TempDir(), Program: "test"}))
	one := fixture.Must[*store.Task](t)(s.Create(t.Context(), task.Created{Origin: "cli", Number: 1, CreatedAt: 1, Settings: task.Settings{Workspace: "/w"}}))
	letGo = sync.OnceFunc(func() {
		if err := one.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(letGo)
	for _, run := range []string{"a", "b", "c"} {
		if err := one.Commit(t.Context(), task.RunStarted{Run: run}); err != nil {
			t.Fatal(err)
		}
	}
	if err := one.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	log := fixture.Must[journal.Reader](t)(s.Follow(t.Context(), one.Ref))
	defer log.Close()
	head := fixture.Must[uint64](t)(log.Head(t.Context()))
	e = feed.Entry{Line: feed.Line{Source: one.Ref.Source, Task: one.Ref.ID, Epoch: 1, From: head, To: head}}
	e.New.From, e.New.To = 1, head
	return s, one.Ref, e, letGo
}

func (p *entryReader) seqs(t *testing.T, e feed.Entry) (out []uint64) {
	t.Helper()
	// Only a play that does not come to its end meets this.
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	err := p.read(ctx, e, func(events []Event) error {
		out = append(out, events[0].Seq)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What a line tells of is there, but cannot be seen while its owner writes down how far it is:
// it is looked for again, and everybody is given the same in the end, however long that took
// by the clock.
func TestWhatCannotBeSeenYetIsLookedForAgain(t *testing.T) {
	for name, c := range map[string]struct {
		from uint64 // 0: the feed never named the task
		shut bool   // the owner goes before it is looked at again
	}{
		"known task":                   {from: 1},
		"task that the feed is new to": {from: 0},
		"its owner goes meanwhile":     {from: 1, shut: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, ref, e, letGo := held(t)
			e.New.From, e.Birth = c.from, 1<<60 // the feed was begun when all but its last was there
			first := max(c.from, 1)
			if c.from == 0 {
				first = e.New.To
			}
			lock := filepath.Join(ref.Log, "journal.lock")
			record := fixture.Must[[]byte](t)(os.ReadFile(lock))
			scribble(t, lock, make([]byte, len(record)))
			looks := 0
			p := &entryReader{store: s, most: 1, pause: func() {
				if looks++; looks < 3 {
					return
				}
				if c.shut {
					letGo()
				} else {
					scribble(t, lock, record)
				}
			}}
			defer p.close()
			if got := p.seqs(t, e); len(got) != int(e.New.To-first+1) || got[0] != first || looks != 3 {
				t.Errorf("commits %v, want %d to %d, after %d looks", got, first, e.New.To, looks)
			}
		})
	}
}

// scribble writes over the beginning of a file.
func scribble(t *testing.T, name string, data []byte) {
	t.Helper()
	f := fixture.Must[*os.File](t)(os.OpenFile(name, os.O_WRONLY, 0))
	defer f.Close()
	if _, err := f.WriteAt(data, 0); err != nil {
		t.Error(err)
	}
}

// A journal that never shows what a line tells of holds the others up for a bounded number of
// looks.
func TestWhatIsNeverSeenIsPassedOver(t *testing.T) {
	s, _, e, letGo := held(t)
	head := e.New.To
	e.To, e.New.To = head+5, head+5
	looks := 0
	p := &entryReader{store: s, most: 1, pause: func() { looks++ }}
	defer p.close()
	if got := p.seqs(t, e); len(got) != int(head) || looks != maxRetries-1 {
		t.Errorf("commits %v of %d, after %d looks", got, head, looks)
	}
	letGo()
	looks = 0
	if got := p.seqs(t, e); len(got) != int(head) || looks > 1 {
		t.Errorf("nobody has it: commits %v of %d, after %d looks", got, head, looks)
	}
}

// An older copy of a journal was put back under a player that has it open: it gives what is
// there now, and goes on.
func TestAnOlderJournalThatWasPutBack(t *testing.T) {
	s, ref, e, letGo := held(t)
	letGo()
	p := &entryReader{store: s, most: 1}
	defer p.close()
	head := e.New.To
	e.New.To = head - 1
	if got := p.seqs(t, e); len(got) != int(head-1) {
		t.Fatalf("commits %v", got)
	}
	log := filepath.Join(ref.Log, "journal.jsonl")
	data := fixture.Must[[]byte](t)(os.ReadFile(log))
	if err := os.WriteFile(log+".new", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(log+".new", log); err != nil {
		t.Fatal(err)
	}
	e.New.From, e.To, e.New.To = head, head+3, head+3
	if got := p.seqs(t, e); len(got) != 1 || got[0] != head {
		t.Errorf("commits %v, want %d", got, head)
	}
}

// What has no events any more is passed over. What cannot be read just now ends the stream:
// who follows comes back with its cursor, and misses nothing.
func TestWhatCannotBeReadJustNowIsNotPassedOver(t *testing.T) {
	s, _, _, _ := held(t)
	p := &entryReader{store: s}
	over, stop := context.WithCancel(t.Context())
	stop()
	for _, c := range []struct {
		ctx  context.Context //nolint:containedctx // of the case
		err  error
		want error
	}{
		{t.Context(), journal.ErrNotFound, nil},
		{t.Context(), fs.ErrPermission, nil},
		{t.Context(), &journal.DamageError{}, nil},
		{t.Context(), fmt.Errorf("open: %w", syscall.EMFILE), syscall.EMFILE},
		{t.Context(), fmt.Errorf("open: %w", syscall.ENFILE), syscall.ENFILE},
		{over, journal.ErrNotFound, context.Canceled},
	} {
		if got := p.skipUnreadable(c.ctx, c.err); !errors.Is(got, c.want) || got != nil && c.want == nil {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}

// The first commit since a time is found by looking at a few.
func TestFirstSince(t *testing.T) {
	now := int64(100)
	s := fixture.Must[*store.Store](t)(store.Open(store.Options{Root: t.TempDir(), Program: "test", Now: func() int64 { now++; return now }}))
	owned := fixture.Must[*store.Task](t)(s.Create(t.Context(), task.Created{Origin: "cli", Number: 1, CreatedAt: 1, Settings: task.Settings{Workspace: "/w"}}))
	for range 20 {
		if err := owned.Commit(t.Context(), task.RunStarted{Run: "r"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := owned.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	log := fixture.Must[journal.Reader](t)(s.Follow(t.Context(), owned.Ref))
	defer log.Close()
	head := fixture.Must[uint64](t)(log.Head(t.Context()))
	for at := int64(90); at < now+5; at++ {
		want := head + 1
		for c, err := range log.Read(t.Context(), 1) {
			if err != nil {
				t.Fatal(err)
			}
			if c.At >= at {
				want = c.Seq
				break
			}
		}
		if got, err := firstSince(t.Context(), log, at); err != nil || got != want {
			t.Errorf("since %d: %d, %v, want %d", at, got, err, want)
		}
	}
}
