package term

import (
	"context"
	"sync"
	"time"
)

// A question may be taken off the terminal while the person is typing: somebody else
// has answered it. What was typed for it must not answer the next one, which may be
// another thing altogether, and may stand there at once.

// afterglow is how soon after a question comes a line that was begun for the one before.
const afterglow = time.Second

// stale says that what is typed may be meant for a question that is gone.
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

// Dismiss tells that a question was taken off the terminal before it was answered there.
// What is typed by then is dropped, and so is a line that comes right after the next
// question.
func (p *Prompter) Dismiss() {
	p.stale.set(true)
	p.Forget()
}

// settle drops what was typed between a question that was taken off and the next one.
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
