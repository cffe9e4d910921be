package app

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/roost-dev/roost/cli/failure"
)

// Stopper makes the first Ctrl-C, SIGTERM or hang-up stop a run and save it, and
// the second one end the process at once. Where a person can be asked what should
// stop, the first Ctrl-C asks (askFirst), and stops nothing before the answer.
type Stopper struct {
	Ctx  context.Context //nolint:containedctx // ends when all should stop
	Undo func()
	tell func()
	Stop context.CancelFunc

	mu     sync.Mutex
	code   int
	first  func() bool // reports whether there is something to ask about; nil: never ask
	asked  context.Context
	ask    context.CancelFunc
	open   bool // a question is open
	halved bool // a person chose that only a part stops
	deaf   bool // Ctrl-C is for another program
}

// Bounce is how soon after the first a second signal of the same kind counts as
// the same one: a terminal sends Ctrl-C to roost and to a wrapper (`go run`, npm,
// make), which passes it on. No user presses twice that fast.
const Bounce = 300 * time.Millisecond

// signalAction is what a signal does.
type signalAction int

const (
	stopAll signalAction = iota
	askWhat
	endNow
	doNothing
)

// Stopper listens from now on. Call it before a run starts: otherwise a signal between the
// start and the first event would end the process unsaved, and leave its commands
// behind.
func (a *App) Stopper(ctx context.Context) *Stopper { return a.StopperWith(ctx, a.Stopping) }

// StopperWith is stopper with another message for the first signal.
func (a *App) StopperWith(ctx context.Context, tell func()) *Stopper {
	s := NewStopper(ctx, tell)
	ch := signals()
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		s.listen(ch, quit, func(code int) {
			patiently(func() { fmt.Fprintln(a.Err, "ended at once; what was acknowledged is saved") })
			os.Exit(code)
		})
	}()
	s.Undo = func() {
		signal.Stop(ch)
		close(quit)
		<-gone
		s.Stop()
	}
	return s
}

// signals listens to what asks a process to end.
func signals() chan os.Signal {
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // under nohup it stays ignored
		signal.Notify(ch, syscall.SIGHUP)
	}
	return ch
}

// UntilSignal returns a context that the first signal ends, so that its work can clean up. With a nil ignore the second
// signal ends the process; else ignore decides which signals do not count. done returns the exit code of the signal, 0
// without one.
func UntilSignal(ctx context.Context, ignore func(os.Signal) bool) (_ context.Context, done func() int) {
	ctx, cancel := context.WithCancel(ctx)
	ch, code := signals(), 0
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for {
			select {
			case <-quit:
				return
			case sig := <-ch:
				if ignore == nil {
					signal.Stop(ch)
				} else if ignore(sig) {
					continue
				}
				code = cmp.Or(code, SignalExit(sig))
				cancel()
			}
		}
	}()
	return ctx, func() int {
		signal.Stop(ch)
		close(quit)
		<-gone
		cancel()
		return code
	}
}

// listen takes signals until quit is closed. A signal counts when it came: nothing that is
// done about one takes long.
func (s *Stopper) listen(ch <-chan os.Signal, quit <-chan struct{}, end func(code int)) {
	var last time.Time
	before := 0
	for {
		select {
		case <-quit:
			return
		case sig := <-ch:
			code := SignalExit(sig)
			if code == before && time.Since(last) < Bounce {
				continue
			}
			before, last = code, time.Now()
			if s.take(code) == endNow {
				end(code)
			}
		}
	}
}

// patience is how long a signal waits until its message is on the terminal.
const patience = time.Second

// patiently calls say and waits for it, for patience at most. A terminal or pipe that takes
// no output does not delay the stop; the blocked write ends with the process.
func patiently(say func()) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, _ = await(ctx, func() (bool, error) {
		say()
		return true, nil
	})
}

// NewStopper is a stopper that listens to no signal yet. tell runs at the first one.
func NewStopper(ctx context.Context, tell func()) *Stopper {
	s := &Stopper{tell: tell}
	s.Ctx, s.Stop = context.WithCancel(ctx)
	s.asked, s.ask = context.WithCancel(s.Ctx)
	return s
}

// take handles a signal, except for ending the process.
func (s *Stopper) take(code int) signalAction {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.deaf && code == failure.ExitInterrupt:
		return doNothing
	case s.code != 0, s.open && code == failure.ExitInterrupt:
		return endNow
	case !s.open && code == failure.ExitInterrupt && s.first != nil && s.first():
		s.open = true
		s.ask()
		return askWhat
	}
	// Who ends a program or closes its terminal answers no questions.
	s.all(code)
	return stopAll
}

func (s *Stopper) all(code int) {
	s.code, s.open = code, false
	patiently(s.tell) // first: the run's messages about its end follow it
	s.Stop()
}

// AskFirst makes the first Ctrl-C ask what to stop, while about reports true; the code
// that asks passes the answer to answered. With a nil about, Ctrl-C stops at once again.
func (s *Stopper) AskFirst(about func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first = about
}

// Asking ends when a person is to be asked, and when all should stop.
func (s *Stopper) Asking() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// Answered takes what the user wants to stop. After "nothing" and "one" the next
// Ctrl-C is a first one again.
func (s *Stopper) Answered(c StopChoice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		return // a signal was faster
	}
	if c == StopBoth {
		s.all(failure.ExitInterrupt)
		return
	}
	s.open = false
	s.halved = s.halved || c == StopOne
	s.ask()
	s.asked, s.ask = context.WithCancel(s.Ctx)
}

// ReleaseInterrupt leaves Ctrl-C to a program that has the terminal, until back is called. The
// terminal sends it to every process in the foreground, and an editor uses it otherwise.
func (s *Stopper) ReleaseInterrupt() (back func()) {
	set := func(deaf bool) {
		s.mu.Lock()
		s.deaf = deaf
		s.mu.Unlock()
	}
	set(true)
	return func() { set(false) }
}

// Exit is the exit code of the signal that came, 0 when none did.
func (s *Stopper) Exit() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.code == 0 && s.halved {
		return failure.ExitInterrupt
	}
	return s.code
}

// Stopping prints that the first signal was understood. It runs on the signal's
// goroutine, so it makes a single write.
func (a *App) Stopping() {
	const text = "stopping and saving; once more ends it at once"
	if a.Flags.JSON {
		a.Warn(text)
		return
	}
	fmt.Fprintln(a.Err, "\n"+text)
}

// SignalExit is the exit code for a signal, by the convention of shells.
func SignalExit(sig os.Signal) int {
	switch sig {
	case syscall.SIGTERM:
		return failure.ExitTerminated
	case syscall.SIGHUP:
		return failure.ExitHangup
	}
	return failure.ExitInterrupt
}

// StopChoice is what the user wants to stop while a subtask works.
type StopChoice int

// What the user can choose.
const (
	StopNothing StopChoice = iota
	StopOne                // the task alone: its subtasks go on
	StopBoth               // the task and its subtasks
)
