package wire

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"github.com/roost-dev/roost/llm"
)

// ErrStop means that the consumer of a stream wants no more of it.
var ErrStop = errors.New("the consumer stopped reading")

// Attempts asks until a reply begins. attempt asks once, yields what arrives, and
// reports whether it yielded anything. A failure after that ends the stream, because
// only the caller knows what to do with half a reply. A failure also ends it when the
// provider asks for a longer wait than Backoff.Cap. Any other failure is yielded as
// llm.Retrying and followed by a wait. attempt returns ErrStop when its consumer
// wants no more.
func Attempts(ctx context.Context, b Backoff, yield func(llm.Chunk, error) bool, attempt func() (started bool, err error)) {
	for n := 1; ; n++ {
		started, err := attempt()
		if err == nil || errors.Is(err, ErrStop) {
			return
		}
		var failed *llm.Error
		if started || !errors.As(err, &failed) || !failed.Retryable() || n > b.Limit() ||
			failed.RetryAfterMS > b.limit().Milliseconds() {
			yield(nil, err) // after a used-up quota the caller decides whether to wait for hours
			return
		}
		wait := b.Delay(n, failed)
		if !yield(llm.Retrying{Attempt: n, Err: failed, WaitMS: wait.Milliseconds()}, nil) {
			return
		}
		if err := b.Wait(ctx, wait); err != nil {
			yield(nil, err)
			return
		}
	}
}

// Backoff is how often to try again and how long to wait before it. The zero value
// is the default.
type Backoff struct {
	Retries int           // attempts after the first; 0 = 4, negative = none
	Base    time.Duration // bound of the first wait; 0 = 1 s
	Cap     time.Duration // longest wait, also one that the provider asks for; 0 = 60 s

	// For tests; nil = the real ones.
	Sleep func(ctx context.Context, d time.Duration) error
	Rand  func() float64 // in [0,1)
}

// Limit is the number of attempts after the first.
func (b Backoff) Limit() int {
	return max(cmp.Or(b.Retries, 4), 0)
}

func (b Backoff) limit() time.Duration {
	if b.Cap <= 0 {
		return time.Minute
	}
	return b.Cap
}

// Delay is how long to wait after attempt n (from 1) failed with err. It is the wait that the
// provider asks for, up to Cap. Without one, the wait is random between 0 and base*2^(n-1)
// (full jitter): clients that were refused together would otherwise come back together.
func (b Backoff) Delay(n int, err *llm.Error) time.Duration {
	limit := b.limit()
	if err != nil && err.RetryAfterMS > 0 {
		return time.Duration(min(err.RetryAfterMS, limit.Milliseconds())) * time.Millisecond
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

// ErrIdle is the cause of a call that was given up because nothing came for too
// long.
var ErrIdle = errors.New("the provider sent nothing for too long")

// withIdle returns a context that ends with the cause ErrIdle when nothing arrives for so long: before the first read,
// or during a read through the reader. A limit of 0 or less never ends it. stop must be called.
func withIdle(ctx context.Context, limit time.Duration) (_ context.Context, r *idleReader, stop context.CancelFunc) {
	if limit <= 0 {
		limit = math.MaxInt64
	}
	ctx, cancel := context.WithCancelCause(ctx)
	r = &idleReader{limit: limit, timer: time.AfterFunc(limit, func() { cancel(ErrIdle) })}
	return ctx, r, func() {
		r.timer.Stop()
		cancel(context.Canceled)
	}
}

// idleReader reads a reply and runs the clock of the call only while a read waits: a slow consumer is not a stalled
// provider.
type idleReader struct {
	io.Reader
	timer *time.Timer // ends the call
	limit time.Duration
}

func (r *idleReader) Read(p []byte) (int, error) {
	r.timer.Reset(r.limit)
	n, err := r.Reader.Read(p)
	r.timer.Stop()
	return n, err
}
