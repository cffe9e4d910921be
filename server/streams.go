package server

import "sync"

// streams counts the open streams.
type streams struct {
	mu          sync.Mutex
	total, each int
	now         int
	by          map[string]int
}

// enter takes one of the streams that are allowed, in total and for one client; ok is false when there is none left.
func (s *streams) enter(client string) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now >= s.total || s.by[client] >= s.each {
		return nil, false
	}
	s.now++
	s.by[client]++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.now--
		if s.by[client]--; s.by[client] == 0 {
			delete(s.by, client)
		}
	}), true
}

// open counts the open streams.
func (s *streams) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}
