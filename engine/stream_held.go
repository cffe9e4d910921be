package engine

// heldDelta is a delta that waits for the commit which it was said behind.
type heldDelta struct {
	Event
	after uint64
}

// say offers what a model or tool says behind a commit. It is told behind the commit's
// events, so that nobody reads an answer before what it answers; a disk that is slower
// than the model makes it wait. Like all deltas it comes again as a whole message, so
// that it may be missed where too many wait.
func (s *stream) say(e Event, after uint64) {
	if s.air != nil && e.Depth == 0 { // who hears it there has an order of its own, by Behind
		s.air(e)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(s.held) == 0 && (after <= s.seq || s.ended):
		s.tell(e)
	case len(s.held) < liveBacklog:
		s.held = append(s.held, heldDelta{e, after})
	}
}

// letOut tells the held deltas up to the first one whose commit is not there. The caller
// holds mu.
func (s *stream) letOut(due func(heldDelta) bool) {
	for len(s.held) > 0 && due(s.held[0]) {
		s.tell(s.held[0].Event)
		s.held = s.held[1:]
	}
	if len(s.held) == 0 {
		s.held = nil
	}
}
