package wire

import (
	"context"
	"errors"

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
		if started || !errors.As(err, &failed) || !failed.Retryable() || n > b.Limit() {
			yield(nil, err)
			return
		}
		if b.tooLong(failed) {
			yield(nil, err) // a used-up quota: the caller decides whether to wait for hours
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
