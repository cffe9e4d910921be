package server

import (
	"context"
	"sync"
	"time"

	"github.com/roost-dev/roost/store"
)

// A list derives anew what changed since the last one: a list right after an event shows it
// in any case. Making one now and then while somebody follows keeps the rest cheap: when
// a person looks, only what happened a moment ago is left to be read.

// refresher makes lists behind events.
type refresher struct {
	due  chan struct{}
	stop func()
}

func (s *Server) refresher() *refresher {
	ctx, cancel := context.WithCancel(context.Background())
	r := &refresher{due: make(chan struct{}, 1)}
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-r.due:
			}
			_, _ = s.opt.Store.List(ctx, store.Filter{Limit: 1}) // what cannot be listed is told to who asks for the list
			select {
			case <-ctx.Done():
				return
			case <-time.After(freshEvery):
			}
		}
	})
	r.stop = func() {
		cancel()
		wait.Wait()
	}
	return r
}

// note says that something happened.
func (r *refresher) note() {
	select {
	case r.due <- struct{}{}:
	default: // it is due already
	}
}
