package wire

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/roost-dev/roost/llm"
)

// Backoff is how often to try again and how long to wait before it. The zero value
// is the default.
type Backoff struct {
	Retries int           // attempts after the first; 0 = 4, negative = none
	Base    time.Duration // bound of the first wait; 0 = 1 s
	Cap     time.Duration // longest wait, whoever asks for it; 0 = 60 s

	// For tests; nil = the real ones.
	Sleep func(ctx context.Context, d time.Duration) error
	Rand  func() float64 // in [0,1)
}

// Limit is the number of attempts after the first.
func (b Backoff) Limit() int {
	switch {
	case b.Retries < 0:
		return 0
	case b.Retries == 0:
		return 4
	}
	return b.Retries
}

func (b Backoff) limit() time.Duration {
	if b.Cap <= 0 {
		return time.Minute
	}
	return b.Cap
}

// tooLong reports whether the provider asks for more than the longest wait.
func (b Backoff) tooLong(err *llm.Error) bool { return err.RetryAfterMS > b.limit().Milliseconds() }

// Delay is how long to wait after attempt n (from 1) failed with err. It is the wait that the
// provider asks for, up to Cap. Without one, the wait is random between 0 and base*2^(n-1)
// (full jitter): clients that were refused together would otherwise come back together.
func (b Backoff) Delay(n int, err *llm.Error) time.Duration {
	limit := b.limit()
	if err != nil && err.RetryAfterMS > 0 {
		if err.RetryAfterMS > limit.Milliseconds() {
			return limit
		}
		return time.Duration(err.RetryAfterMS) * time.Millisecond
	}
	bound := b.Base
	if bound <= 0 {
		bound = time.Second
	}
	for i := 1; i < n && bound < limit; i++ {
		bound *= 2
	}
	draw := b.Rand
	if draw == nil {
		draw = rand.Float64
	}
	return time.Duration(draw() * float64(min(bound, limit)))
}

// Wait waits, or returns the context's cause as soon as it ends.
func (b Backoff) Wait(ctx context.Context, d time.Duration) error {
	if b.Sleep != nil {
		return b.Sleep(ctx, d)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
