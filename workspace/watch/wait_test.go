package watch

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// Wait ends when something can be taken: of files that are covered, and of those whose
// folder is not even there.
func TestWait(t *testing.T) {
	for _, name := range []string{"a", "not/there/yet"} {
		t.Run(name, func(t *testing.T) {
			f := newField(t)
			f.put("a", "1")
			covered := f.w.Watch(f.path(name))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- f.w.Wait(ctx) }()
			var writer sync.WaitGroup
			writer.Go(func() { // until it has been seen: the first look may come later than the first change
				for n := 0; ctx.Err() == nil; n++ {
					f.put(name, string(make([]byte, n)))
					time.Sleep(20 * time.Millisecond)
				}
			})
			err := <-done
			cancel()
			writer.Wait()
			f.must(err)
			got, all := f.w.Take()
			if all || len(got) != 1 || got[0] != f.path(name) {
				t.Errorf("covered %v: told of %q, all %v", covered, got, all)
			}
		})
	}
}

// It ends with its context.
func TestWaitIsGivenUp(t *testing.T) {
	f := newField(t)
	f.put("a", "1")
	f.w.Watch(f.path("a"))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := f.w.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
