package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// stopper makes the first Ctrl-C, SIGTERM or hang-up stop a run and save it, and
// the second one end the process at once.
type stopper struct {
	ctx  context.Context //nolint:containedctx // ends with the first signal
	code atomic.Int32
	undo func()
}

// bounce is how soon after the first a second signal of the same kind counts as
// the same one: a terminal sends Ctrl-C to roost and to a wrapper (`go run`, npm,
// make), which passes it on. Nobody presses twice that fast.
const bounce = 300 * time.Millisecond

// stopper listens from now on. It does so before a run starts: between its start
// and its first event a signal would else end the process unsaved, and leave its
// commands behind.
func (a *App) stopper(ctx context.Context) *stopper {
	ctx, cancel := context.WithCancel(ctx)
	s := &stopper{ctx: ctx}
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // under nohup it stays ignored
		signal.Notify(ch, syscall.SIGHUP)
	}
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		var first time.Time
		for {
			select {
			case <-quit:
				return
			case sig := <-ch:
				code := signalExit(sig)
				if s.exit() == code && time.Since(first) < bounce {
					continue
				}
				if first = time.Now(); !s.code.CompareAndSwap(0, int32(code)) {
					fmt.Fprintln(a.Err, "ended at once; what was acknowledged is saved")
					os.Exit(code)
				}
				cancel()
				a.stopping()
			}
		}
	}()
	s.undo = func() {
		signal.Stop(ch)
		close(quit)
		<-gone
		cancel()
	}
	return s
}

// exit is the exit code of the signal that came, 0 when none did.
func (s *stopper) exit() int { return int(s.code.Load()) }

// stopping tells that the first signal was understood. It comes from a signal's
// goroutine, so it is one write of its own.
func (a *App) stopping() {
	const text = "stopping and saving; once more ends it at once"
	if a.flags.json {
		a.warn(text)
		return
	}
	fmt.Fprintln(a.Err, "\n"+text)
}

// signalExit is the exit code for a signal, as shells count it.
func signalExit(sig os.Signal) int {
	switch sig {
	case syscall.SIGTERM:
		return ExitTerminated
	case syscall.SIGHUP:
		return ExitHangup
	}
	return ExitInterrupt
}
