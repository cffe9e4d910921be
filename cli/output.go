package cli

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/roost-dev/roost/redact"
)

// output is stdout. Its reader may close the pipe early, as in `roost list | head -1`; that
// is no failure.
type output struct {
	w      io.Writer
	screen *redact.Screen // in front of w where it is a terminal; for JSON
	json   *bool          // whether what is written is JSON; nil = no
	gone   bool
	err    error // the first one of a write
}

func (o *output) Write(p []byte) (int, error) {
	w := o.w
	if o.screen != nil && *o.json {
		w = o.screen
	}
	n, err := w.Write(p)
	o.gone = o.gone || readerGone(err)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// readerGone reports whether a write failed because the reader closed its end.
func readerGone(err error) bool {
	const noData, brokenPipe = syscall.Errno(232), syscall.Errno(109) // on Windows
	var code syscall.Errno
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		return true
	}
	return os.PathSeparator == '\\' && errors.As(err, &code) && (code == noData || code == brokenPipe)
}

// surviveBrokenPipes makes writing to a pipe without a reader an error of the
// write. By default the signal ends the process, and with it a run whose output has no
// reader. It is caught and not ignored: commands that a run starts would
// inherit a signal that is ignored, and `yes | head` would not end.
func surviveBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
