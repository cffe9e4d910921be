package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Pauses between attempts while saving fails. A Barrier fails without waiting for them.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// WriterOptions are for NewWriter.
type WriterOptions struct {
	Name  string // of the journal, for errors
	Epoch uint64
	Head  uint64 // the newest commit before the epoch
	Base  Base   // the newest base of the log

	FlushAfter time.Duration // limits how long Append buffers a commit. Default 200 ms.
	MaxUnsaved int           // bounds the bytes in memory that are not saved. Default 64 MB.

	// Save saves the first of the lines, or all of them, durably and in their order. It returns the newest commit that is
	// saved now, also with an error. An error that wraps ErrFenced ends the writer. One goroutine calls it at a time.
	Save func(lines []Line) (head uint64, err error)
	// Saved is called after a Save that has saved something. It must not call Barrier or Stop.
	Saved func(head uint64)
	// Patient: Barrier leaves the saving to another goroutine, and ends with its context. Otherwise it saves in its
	// caller's goroutine, which spares two switches of goroutines, and does not look at its context until the disk has
	// answered.
	Patient bool
}

// Writer queues the commits of an owner until they are saved: the part of Owner that all backends share.
type Writer struct {
	opt WriterOptions

	turn chan struct{} // room for one: who has put a value into it saves

	mu      sync.Mutex // guards the fields up to room
	chain   *Chain
	queue   []Line    // not known to be saved, oldest first
	bytes   int       // in queue
	since   time.Time // no later than the oldest in queue came
	next    uint64    // sequence of the next commit
	saved   uint64
	waiters []waiter
	trouble error // why saving fails at present
	fatal   error // fenced or closed
	retryAt time.Time
	backoff time.Duration
	room    chan struct{} // closed when memory becomes free

	wake  chan struct{}
	clock *time.Timer // wakes the flusher when the oldest in queue is due
	quit  chan struct{}
	done  chan struct{} // closed when the flusher has ended
}

// waiter is a call of Barrier that waits until a commit is saved.
type waiter struct {
	seq  uint64
	done chan error // room for one
}

// NewWriter makes a writer. It saves nothing before Start.
func NewWriter(opt WriterOptions) *Writer {
	opt.FlushAfter = cmp.Or(opt.FlushAfter, 200*time.Millisecond)
	opt.MaxUnsaved = cmp.Or(opt.MaxUnsaved, 64<<20)
	w := &Writer{
		opt: opt, saved: opt.Head, next: opt.Head + 1, turn: make(chan struct{}, 1), room: make(chan struct{}),
		wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	return w
}

// Start saves the first commit of the epoch. The chain signs it, unless it is held, and all later commits; nil: none is
// signed. Without an error, Stop must follow.
func (w *Writer) Start(chain *Chain, opened Draft) error {
	w.chain, w.clock = chain, time.AfterFunc(time.Hour, w.poke)
	w.mu.Lock()
	_, err := w.put(opened)
	w.mu.Unlock()
	chain.Hold(false)
	if err == nil {
		err = w.flush()
	}
	if err != nil {
		w.clock.Stop()
		return err
	}
	go w.run()
	return nil
}

// Stop tries once more to save unsaved commits, and refuses further calls. It returns why the writer could not save
// all of them, or was fenced.
func (w *Writer) Stop() error {
	close(w.quit)
	<-w.done
	w.clock.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.fatal
	if err == nil && len(w.queue) > 0 {
		err = w.trouble
	}
	w.fail(ErrClosed)
	return err
}

// Fence ends the writer because another owner has a later epoch.
func (w *Writer) Fence() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fatal == nil {
		w.fail(fmt.Errorf("journal %s: %w", w.opt.Name, ErrFenced))
	}
}

// fail refuses further calls, and ends those that wait. The caller holds mu.
func (w *Writer) fail(err error) {
	w.fatal = err
	w.answer(w.next, err)
	w.freed()
}

// Usable returns why the writer cannot save any more: it was fenced or stopped, or the context has ended.
func (w *Writer) Usable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fatal
}

// Epoch implements Owner.
func (w *Writer) Epoch() uint64 { return w.opt.Epoch }

// Newest returns the newest commit that is saved.
func (w *Writer) Newest() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.saved
}

// Append implements Owner.
func (w *Writer) Append(ctx context.Context, d Draft) (uint64, error) {
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		w.mu.Lock()
		if w.fatal != nil {
			defer w.mu.Unlock()
			return 0, w.fatal
		}
		if w.bytes < w.opt.MaxUnsaved {
			defer w.mu.Unlock()
			return w.put(d)
		}
		if w.trouble != nil {
			defer w.mu.Unlock()
			return 0, fmt.Errorf("append to journal %s: %d bytes wait in memory already: %w", w.opt.Name, w.bytes, w.trouble)
		}
		room := w.room // saving works, but is slower than the caller
		w.mu.Unlock()
		w.poke()
		select {
		case <-room:
		case <-ctx.Done():
		}
	}
}

// put queues a commit. The caller holds mu.
func (w *Writer) put(d Draft) (uint64, error) {
	line, err := AppendSigned(nil, Commit{
		Seq:    w.next - w.opt.Base.Seq,
		Epoch:  w.opt.Epoch - w.opt.Base.Epoch,
		At:     d.At,
		By:     d.By,
		Blobs:  d.Blobs,
		Events: d.Events,
	}, w.chain)
	if err != nil {
		return 0, err
	}
	if len(w.queue) == 0 {
		// A clock instead of waking the flusher to set one: a Barrier mostly comes
		// before it is due, and each waking costs a turn of the scheduler.
		w.since = time.Now()
		w.clock.Reset(w.opt.FlushAfter)
	}
	w.queue = append(w.queue, Line{w.next, line})
	w.bytes += len(line)
	w.next++
	return w.next - 1, nil
}

// poke makes the flusher look at the queue.
func (w *Writer) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Barrier implements Owner. Callers that wait at the same time share one attempt: the flusher serves all callers that
// come during another one.
func (w *Writer) Barrier(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w.mu.Lock()
	if w.fatal != nil || len(w.queue) == 0 {
		defer w.mu.Unlock()
		return w.fatal
	}
	if !w.opt.Patient {
		select {
		case w.turn <- struct{}{}:
			w.mu.Unlock()
			err := w.flush()
			<-w.turn
			return err
		default:
		}
	}
	done := make(chan error, 1)
	w.waiters = append(w.waiters, waiter{w.next - 1, done})
	w.mu.Unlock()
	w.poke()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Unsaved implements Owner.
func (w *Writer) Unsaved() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fatal != nil && len(w.queue) > 0 {
		return w.fatal
	}
	return w.trouble
}

// run is the flusher: it saves commits without a waiter, serves callers that came during another caller's attempt, and
// tries again after a failure.
func (w *Writer) run() {
	defer close(w.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for stopped := false; !stopped; {
		if wait := w.due(); wait > 0 {
			timer.Reset(wait)
			select {
			case <-w.wake:
			case <-timer.C:
			case <-w.quit:
			}
		}
		select {
		case <-w.quit:
			stopped = true
		default:
			if w.due() > 0 {
				continue
			}
		}
		w.turn <- struct{}{}
		if stopped || w.due() <= 0 { // else the one before us saved it
			_ = w.flush() // it keeps the error in trouble and gives it to the waiters
		}
		<-w.turn
	}
}

// due returns how long the flusher may sleep; 0 or less means that it must flush now.
func (w *Writer) due() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.fatal != nil || len(w.queue) == 0:
		return time.Hour
	case len(w.waiters) > 0:
		return 0
	case w.trouble != nil:
		return time.Until(w.retryAt)
	case w.bytes >= w.opt.MaxUnsaved:
		return 0
	}
	return time.Until(w.since.Add(w.opt.FlushAfter))
}

// flush saves everything that is queued, and wakes the waiters. The caller has the turn.
func (w *Writer) flush() error {
	w.mu.Lock()
	last := w.next - 1
	for w.fatal == nil && w.saved < last {
		before, lines, began := w.saved, w.queue, time.Now()
		w.mu.Unlock()
		head, err := w.opt.Save(lines)
		w.settle(head, last, err, began)
		if head > before && w.opt.Saved != nil {
			w.opt.Saved(head)
		}
		if err != nil {
			return err
		}
		w.mu.Lock()
	}
	defer w.mu.Unlock()
	return w.fatal
}

// settle records the outcome of an attempt to save the commits up to last: those up to head are saved.
func (w *Writer) settle(head, last uint64, err error, began time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) > 0 && w.queue[0].Seq <= head {
		w.bytes -= len(w.queue[0].Text)
		w.queue[0] = Line{}
		w.queue = w.queue[1:]
	}
	w.saved = max(w.saved, head)
	w.answer(head, nil)
	switch {
	case err == nil:
		w.trouble, w.backoff = nil, 0
		w.since = began // what is left came later
		w.clock.Reset(time.Until(began.Add(w.opt.FlushAfter)))
	case errors.Is(err, ErrFenced):
		w.fail(err)
	default:
		w.trouble = err
		w.backoff = min(max(2*w.backoff, firstPause), lastPause)
		w.retryAt = time.Now().Add(w.backoff)
		w.answer(last, err)
		w.poke() // to wait until then
	}
	if len(w.waiters) > 0 {
		w.poke()
	}
	w.freed()
}

// answer ends the waits for commits up to seq, with err. The caller holds mu.
func (w *Writer) answer(seq uint64, err error) {
	rest := w.waiters[:0]
	for _, one := range w.waiters {
		if one.seq <= seq {
			one.done <- err
		} else {
			rest = append(rest, one)
		}
	}
	clear(w.waiters[len(rest):])
	w.waiters = rest
}

// freed wakes the calls of Append that wait for room. The caller holds mu.
func (w *Writer) freed() {
	close(w.room)
	w.room = make(chan struct{})
}
