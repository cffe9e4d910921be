package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// A caller that changes a task it has read wants the task to be as it read it. Another process may have changed the
// task since. So the heads are compared once the lock is held and before anything is written: a refused change leaves
// the task as it was.

// ErrMoved: the task changed since the caller read it.
var ErrMoved = errors.New("the task changed since it was read")

type expectKey struct{}

// expectation is the head that a caller expects a task's journal to have.
type expectation struct {
	log string

	mu   sync.Mutex
	seq  uint64
	over bool
}

// Expecting is a context in which a task is only taken over, deleted or labelled while its journal ends with commit
// seq, 0 meaning that it has no journal; otherwise the error is ErrMoved. Changes made in the context itself move the
// expected commit forward. It holds until done is called.
func Expecting(ctx context.Context, ref Ref, seq uint64) (_ context.Context, done func()) {
	e := &expectation{log: ref.Log, seq: seq}
	return context.WithValue(ctx, expectKey{}, e), func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.over = true
	}
}

// expected is the expectation that a context has of a task; nil when there is none.
func expected(ctx context.Context, ref Ref) *expectation {
	e, _ := ctx.Value(expectKey{}).(*expectation)
	if e == nil || e.log != ref.Log {
		return nil
	}
	return e
}

// MeetsExpectation is an ErrMoved when the context expects the task's journal to end with another commit than it
// does. It is for a change that takes no lock on the journal.
func MeetsExpectation(ctx context.Context, ref Ref) error {
	if wants := expected(ctx, ref); wants != nil {
		return wants.meets(HeadOf(ctx, ref.Log))
	}
	return nil
}

// MeetsExpectationAt is MeetsExpectation for a caller that has read the task up to a commit.
func MeetsExpectationAt(ctx context.Context, ref Ref, head uint64) error {
	return expected(ctx, ref).meets(head)
}

// meets is an ErrMoved when the journal's head is not the expected one.
func (e *expectation) meets(last uint64) error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over || e.seq == last {
		return nil
	}
	return fmt.Errorf("its newest commit is %d, not %d: %w", last, e.seq, ErrMoved)
}

// check is meets for filelog.Options; nil when nothing is expected.
func (e *expectation) check() func(head uint64) error {
	if e == nil {
		return nil
	}
	return e.meets
}

// moved records that a change in the context moved the journal's head.
func (e *expectation) moved(last uint64) {
	if e != nil {
		e.mu.Lock()
		e.seq = last
		e.mu.Unlock()
	}
}
