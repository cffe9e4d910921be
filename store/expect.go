package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Who changes a task that he has seen wants it to be as he saw it. Between his look and the
// change another process may have had the task: so it is compared once the lock is held,
// and before anything is written: who is refused leaves the task as he found it.

// ErrMoved: the task is not as it was seen any more.
var ErrMoved = errors.New("the task changed since it was seen")

type expectKey struct{}

// expectation is how far a task's journal goes, as somebody saw it.
type expectation struct {
	log string

	mu   sync.Mutex
	seq  uint64
	over bool
}

// Expecting is a context in which a task is only taken over, deleted or labelled while its
// journal ends with a commit, 0 = it has no journal; else the error is ErrMoved. What is done
// in the context itself moves that on. It holds until done is called.
func Expecting(ctx context.Context, ref Ref, seq uint64) (_ context.Context, done func()) {
	e := &expectation{log: ref.Log, seq: seq}
	return context.WithValue(ctx, expectKey{}, e), func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.over = true
	}
}

// expected is the expectation of a context about a task; nil when there is none.
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

// meets reports what is wrong with a task whose journal ended with a commit.
func (e *expectation) meets(last uint64) error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over || e.seq == last {
		return nil
	}
	return fmt.Errorf("it goes to commit %d, and went to %d: %w", last, e.seq, ErrMoved)
}

// check is meets for who takes a journal; nil when nothing is expected.
func (e *expectation) check() func(head uint64) error {
	if e == nil {
		return nil
	}
	return e.meets
}

// moved says that what goes on in the context led a journal to a commit.
func (e *expectation) moved(last uint64) {
	if e != nil {
		e.mu.Lock()
		e.seq = last
		e.mu.Unlock()
	}
}
