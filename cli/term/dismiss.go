package term

import (
	"context"
	"sync"
	"time"
)

// A question may disappear from the terminal while the user is typing: another client has answered it. What was typed
// for it must not answer the next one, which may be about something else, and may appear at once.

// afterglow is how soon after a question comes a line that was begun for the one before.
const afterglow = time.Second

// stale means that the typed text may be meant for a question that has closed.
type stale struct {
	mu sync.Mutex
	on bool
}

func (s *stale) set(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = on
}

func (s *stale) is() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.on
}

// meant reports whether a line that came so long after a question was shown is for that
// question. The next one is.
func (s *stale) meant(after time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.on
	s.on = false
	return !was || after >= afterglow
}

// Dismiss marks a question that left the terminal before it was answered there. It drops what was typed by then, and
// a line that comes right after the next question.
func (p *Prompter) Dismiss() {
	p.stale.set(true)
	p.Forget()
}

// settle drops input that the user typed between a dismissed question and the next one.
func (p *Prompter) settle(ctx context.Context) {
	if p.typed == nil || !p.stale.is() {
		return
	}
	for {
		p.Forget()
		select {
		case <-p.typed.news:
		case <-time.After(20 * time.Millisecond): // the reader has given all that it had
			return
		case <-ctx.Done():
			return
		}
	}
}
