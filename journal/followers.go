package journal

import (
	"maps"
	"slices"
	"sync"
)

// Followers are those who follow logs in this process, by the names of the logs. Its zero value is usable.
type Followers[K comparable] struct {
	mu  sync.Mutex // held for moments only: owners come here with each commit
	all map[K]map[chan struct{}]struct{}
}

// Subscribe returns a channel that gets a value when the followers of the log are woken. cancel must be called.
func (f *Followers[K]) Subscribe(log K) (wake <-chan struct{}, cancel func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := make(chan struct{}, 1)
	if f.all == nil {
		f.all = map[K]map[chan struct{}]struct{}{}
	}
	if f.all[log] == nil {
		f.all[log] = map[chan struct{}]struct{}{}
	}
	f.all[log][c] = struct{}{}
	return c, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if delete(f.all[log], c); len(f.all[log]) == 0 {
			delete(f.all, log)
		}
	}
}

// Wake wakes the followers of some logs.
func (f *Followers[K]) Wake(logs ...K) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, log := range logs {
		for c := range f.all[log] {
			select {
			case c <- struct{}{}:
			default: // it is to wake already
			}
		}
	}
}

// Logs returns the logs that are followed.
func (f *Followers[K]) Logs() []K {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.all))
}
