package shell

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
)

// NewMark makes a mark for Command.Mark: a unique word. A caller that
// records it before the command starts can find what the command started even if
// the engine dies before it learns of the process: FindMarked needs no number.
func NewMark() string { return rand.Text() }

// usableMark reports whether a mark can be put in the list that the environment
// variable holds.
func usableMark(mark string) bool {
	return mark != "" && len(mark) <= 128 && !strings.ContainsAny(mark, ",=\x00\n")
}

// EndMarked ends every process that FindMarked finds, and those they start
// in the meantime: SIGTERM, a short grace, SIGKILL. It returns what it found at first,
// nil when there was nothing. The error is the context's, or names processes that
// would not end.
func EndMarked(ctx context.Context, mark string) ([]Member, error) {
	found := FindMarked(mark)
	if len(found) == 0 {
		return nil, nil
	}
	look := func(p Process) []Member { return FindMarked(p.Mark) }
	return found, endWithin(ctx, Process{Mark: mark}, look, "command with mark "+mark)
}

// endWithin is end for a caller who may give up. It still waits for the end of
// the attempt, which is bounded: an owner waits for its goroutines.
func endWithin(ctx context.Context, p Process, look func(Process) []Member, what string) error {
	done := make(chan []Member, 1)
	go func() { done <- end(p, look) }()
	select {
	case left := <-done:
		if len(left) > 0 {
			return fmt.Errorf("end %s: %d processes would not end, the first is %d (%s); end it by hand", what, len(left),
				left[0].PID, left[0].Name)
		}
		return nil
	case <-ctx.Done():
		<-done
		return context.Cause(ctx)
	}
}
