package journal

// Waiters are the calls of an owner's Barrier that wait until a commit is durable. The owner's lock guards them.
type Waiters []waiter

type waiter struct {
	seq  uint64
	done chan error // room for one
}

// Add adds a call that waits for commit seq, and returns the channel on which the outcome comes.
func (w *Waiters) Add(seq uint64) <-chan error {
	done := make(chan error, 1)
	*w = append(*w, waiter{seq, done})
	return done
}

// Answer ends the waits for commits up to seq, with err.
func (w *Waiters) Answer(seq uint64, err error) {
	rest := (*w)[:0]
	for _, one := range *w {
		if one.seq <= seq {
			one.done <- err
		} else {
			rest = append(rest, one)
		}
	}
	clear((*w)[len(rest):])
	*w = rest
}
