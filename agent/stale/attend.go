package stale

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace/watch"
)

const (
	// settleSaves is how long a change is left to settle: an editor may save in several steps.
	settleSaves = 100 * time.Millisecond
	// maxNames is how many files one notice names.
	maxNames = 8
)

// Attend promptly notifies the person of files that something else changes while the run waits: for an
// answer, a command, a quota. what names the wait, as in "while what"; notices begin once it took longer than
// after. stop ends it and waits until it has ended.
//
// A notice is no record. The change is recorded in the commit of the turn that reports it to the model, so it is
// reported once, and a file that was restored before that turn counts as unchanged. That turn does its own check;
// nothing depends on Attend.
func (t *Tracker) Attend(ctx context.Context, what string, after time.Duration) (stop func()) {
	if t.opt.Workspace == nil || !t.opt.Observed {
		return func() {}
	}
	t.mu.Lock()
	t.known.Follow(t.run.State().Files)
	known := len(t.known.All())
	t.mu.Unlock()
	if known == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done, begun, at := make(chan struct{}), time.Now(), t.run.Now()
	go func() {
		defer close(done)
		t.notifyChanges(ctx, what, after, func() int64 { return at + time.Since(begun).Milliseconds() })
	}()
	return func() {
		cancel()
		<-done
	}
}

func (t *Tracker) notifyChanges(ctx context.Context, what string, after time.Duration, now func() int64) {
	if !pause(ctx, after) {
		return
	}
	t.mu.Lock()
	if t.watch == nil {
		t.watch = watch.New(t.opt.Workspace.Root())
	}
	w := t.watch
	t.mu.Unlock()
	for {
		// The first check also has the files watched.
		if names := t.newlyChanged(ctx, now()); len(names) > 0 {
			more := ""
			if n := len(names) - maxNames; n > 0 {
				more = fmt.Sprintf(" and %d more", n)
			}
			t.run.Notice(strings.Join(names[:min(len(names), maxNames)], ", ") + more + " while " + what +
				"; the model gets to know it in its next turn")
		}
		if w.Wait(ctx) != nil || !pause(ctx, settleSaves) {
			return
		}
	}
}

// pause waits for d. It returns false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// newlyChanged checks the files that may have changed and describes the changes that no notice reported yet.
func (t *Tracker) newlyChanged(ctx context.Context, at int64) (names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.takeHints() // an observation that lost its watcher is not current
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	for _, k := range t.known.All() {
		if ctx.Err() != nil {
			break
		}
		if !k.Last.Judgeable() || t.observations[k.Path].current(k.Last.Seq) {
			continue
		}
		now, path, changed := t.judge(ctx, k, at)
		hash, known := t.announced[k.Path]
		switch f := (File{k, path, now}); {
		case !changed:
			delete(t.announced, k.Path)
		case !known || hash != now.State.Hash:
			if t.announced == nil {
				t.announced = map[string]string{}
			}
			t.announced[k.Path] = now.State.Hash
			names = append(names, tool.SafeName(k.Path)+": "+f.describe())
		}
	}
	return names
}

// wasAnnounced reports whether a notice reported a change while the run waited, and forgets that.
func (t *Tracker) wasAnnounced(f File) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	hash, known := t.announced[f.known.Path]
	delete(t.announced, f.known.Path)
	return known && hash == f.now.State.Hash
}
