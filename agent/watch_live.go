package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/roost-dev/roost/workspace/watch"
)

// How long something must take before the person is told of changes meanwhile, and how
// long a change is waited out: an editor may save in several steps.
const (
	afterQuestion = 300 * time.Millisecond
	afterCommand  = 5 * time.Second
	settleSaves   = 100 * time.Millisecond
)

// attend tells the person promptly of files that somebody changes while the run waits for
// something else than the model. It is a notice and no record: a change is recorded in the
// commit of the turn that tells the model, so that it is told once whatever happens in
// between, and a file that is back by then was never changed. The run looks for itself
// then; nothing depends on this. stop waits until it has ended.
func (a *Agent) attend(ctx context.Context, what string, after time.Duration) (stop func()) {
	s := &a.sight
	if a.Host.Workspace == nil || a.User.Observer == nil {
		return func() {}
	}
	s.mu.Lock()
	s.known.Follow(a.state().Files)
	known := len(s.known.Files())
	s.mu.Unlock()
	if known == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done, begun, at := make(chan struct{}), time.Now(), a.Host.Now()
	go func() {
		defer close(done)
		a.followFiles(ctx, what, after, func() int64 { return at + time.Since(begun).Milliseconds() })
	}()
	return func() {
		cancel()
		<-done
	}
}

func (a *Agent) followFiles(ctx context.Context, what string, after time.Duration, now func() int64) {
	if !pass(ctx, after) {
		return
	}
	s := &a.sight
	s.mu.Lock()
	if s.watch == nil {
		s.watch = watch.New(a.Host.Workspace.Root())
	}
	w := s.watch
	s.mu.Unlock()
	for {
		// The first look also has the files watched.
		if names := a.freshlyChanged(ctx, now()); len(names) > 0 {
			more := ""
			if n := len(names) - 8; n > 0 {
				more = fmt.Sprintf(" and %d more", n)
			}
			a.notice(strings.Join(names[:min(len(names), 8)], ", ") + more + " while " + what + "; the model is told in its next turn")
		}
		if w.Wait(ctx) != nil || !pass(ctx, settleSaves) {
			return
		}
	}
}

// pass lets time go by; false when ctx ended before.
func pass(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// freshlyChanged looks at the files to which something may have happened, and says what
// did, where that was not said before.
func (a *Agent) freshlyChanged(ctx context.Context, at int64) (names []string) {
	s := &a.sight
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take() // what is lost is not calm
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	for _, k := range s.known.Files() {
		if ctx.Err() != nil {
			break
		}
		if !k.Last.Judgeable() || s.glances[k.Path].calm(k.Last.Seq) {
			continue
		}
		now, path, changed := s.look(ctx, a.Host.Workspace, k, at)
		hash, said := s.announced[k.Path]
		switch f := (staleFile{k, path, now}); {
		case !changed:
			delete(s.announced, k.Path)
		case !said || hash != now.State.Hash:
			if s.announced == nil {
				s.announced = map[string]string{}
			}
			s.announced[k.Path] = now.State.Hash
			names = append(names, workspaceName(k.Path)+": "+f.words())
		}
	}
	return names
}

// announced reports whether the person was told of a change while the run waited.
func (a *Agent) announced(f staleFile) bool {
	s := &a.sight
	s.mu.Lock()
	defer s.mu.Unlock()
	hash, said := s.announced[f.known.Path]
	delete(s.announced, f.known.Path)
	return said && hash == f.now.State.Hash
}
