package wire

import (
	"context"
	"errors"

	"github.com/roost-dev/roost/llm"
)

// ErrStop says that the consumer of a stream wants no more of it.
var ErrStop = errors.New("the consumer wants no more")

// Attempts asks until a reply begins. attempt asks once, yields what comes, and
// tells whether anything was yielded: after that a failure ends the stream, because
// only the caller knows what to do with half a reply. So it is when the provider asks
// for a wait above the longest one. Each other failure before it is
// shown as an llm.Retrying, then waited out. An attempt whose consumer wants no more
// returns ErrStop.
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
			yield(nil, err) // a used-up quota: whoever asks decides about hours
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
