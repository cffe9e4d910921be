package wire

import (
	"context"

	"github.com/roost-dev/roost/llm"
)

// Attempt is one call and what puts its reply together.
type Attempt struct {
	Call Call // with Ended, for an API whose streams simply end
	// Add takes an event's data. done reports that the reply is complete.
	Add func(data []byte) (chunks []llm.Chunk, done bool, err error)
	// Done is the reply, once it is complete.
	Done func() llm.Done
}

// Ask asks until a reply begins (see Attempts) and yields what comes of it, at last
// the llm.Done. begin makes each attempt, with nothing of the one before.
func Ask(ctx context.Context, b Backoff, yield func(llm.Chunk, error) bool, begin func() Attempt) {
	Attempts(ctx, b, yield, func() (started bool, err error) {
		a := begin()
		delivered := false // the consumer has the reply: an error after it has no reader
		err = a.Call.Stream(ctx, func(ev Event) (bool, error) {
			chunks, done, err := a.Add(ev.Data)
			for _, c := range chunks {
				started = true
				if !yield(c, nil) {
					return false, ErrStop
				}
			}
			if err == nil && done {
				started, delivered = true, true
				if !yield(a.Done(), nil) {
					return true, ErrStop
				}
			}
			return done, err
		})
		if err == nil && !delivered && !yield(a.Done(), nil) {
			return true, ErrStop
		}
		return started, err
	})
}
