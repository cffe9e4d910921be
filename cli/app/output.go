package app

import (
	"encoding/json"
	"fmt"

	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/roost-dev/roost/redact"
)

// Output is stdout. Its reader may close the pipe early, as in `roost list | head -1`; that
// is no failure.
type Output struct {
	W      io.Writer
	Screen *redact.Screen // in front of w where it is a terminal; for JSON
	JSON   *bool          // whether what is written is JSON; nil = no
	Gone   bool
	Err    error // the first one of a write
}

func (o *Output) Write(p []byte) (int, error) {
	w := o.W
	if o.Screen != nil && *o.JSON {
		w = o.Screen
	}
	n, err := w.Write(p)
	o.Gone = o.Gone || ReaderGone(err)
	if o.Err == nil {
		o.Err = err
	}
	return n, err
}

// ReaderGone reports whether a write failed because the reader closed its end.
func ReaderGone(err error) bool {
	const noData, brokenPipe = syscall.Errno(232), syscall.Errno(109) // on Windows
	var code syscall.Errno
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		return true
	}
	return os.PathSeparator == '\\' && errors.As(err, &code) && (code == noData || code == brokenPipe)
}

// SurviveBrokenPipes makes writing to a pipe without a reader an error of the
// write. By default the signal ends the process, and with it a run whose output has no
// reader. It is caught and not ignored: commands that a run starts would
// inherit a signal that is ignored, and `yes | head` would not end.
func SurviveBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// Encode writes v as JSON without HTML escapes.
func Encode(w interface{ Write([]byte) (int, error) }, v any, indent bool) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if indent {
		enc.SetIndent("", "  ")
	}
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}
