package wire

import (
	"context"
	"errors"
	"io"
	"time"
)

// ErrIdle is the cause of a call that was given up because nothing came for too
// long.
var ErrIdle = errors.New("the provider sent nothing for too long")

// Idle ends a call when nothing arrives for a while. Waiting for the first byte
// counts too. It needs no goroutine of its own: a timer cancels the context, and
// with it the blocked read.
type Idle struct {
	limit time.Duration
	timer *time.Timer
}

// WithIdle returns a context that is cancelled with the cause ErrIdle when limit
// passes without a read through Reader. A limit of 0 or less never ends it. stop
// must be called.
func WithIdle(ctx context.Context, limit time.Duration) (_ context.Context, _ *Idle, stop context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &Idle{limit: limit}
	if limit > 0 {
		w.timer = time.AfterFunc(limit, func() { cancel(ErrIdle) })
	}
	return ctx, w, func() {
		if w.timer != nil {
			w.timer.Stop()
		}
		cancel(context.Canceled)
	}
}

// Pause stops the clock while the caller is busy with what came: a slow consumer
// is not a stalled provider.
func (w *Idle) Pause() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// Resume restarts the clock from zero.
func (w *Idle) Resume() {
	if w.timer != nil {
		w.timer.Reset(w.limit)
	}
}

// Reader runs the clock only while a read waits.
func (w *Idle) Reader(r io.Reader) io.Reader { return idleReader{w, r} }

type idleReader struct {
	w *Idle
	r io.Reader
}

func (r idleReader) Read(p []byte) (int, error) {
	r.w.Resume()
	n, err := r.r.Read(p)
	r.w.Pause()
	return n, err
}
