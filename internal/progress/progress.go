// Package progress reports the progress of long work: a list, a search, a check or a sum over all tasks. The context
// carries the function that shows it, so no layer in between needs to know of it.
package progress

import (
	"context"
	"sync"
)

// State is the progress of a piece of work.
type State struct {
	What     string // "checking"
	Done, Of int    // tasks; Of is 0 while their number is unknown
	Files    int
	Bytes    int64
}

type key struct{}

// With returns a context in which work calls show after each task. Workers report from several goroutines, but With
// makes one call at a time: show must be quick, and decides how often it prints.
func With(ctx context.Context, show func(State)) context.Context {
	var one sync.Mutex
	return context.WithValue(ctx, key{}, func(s State) {
		one.Lock()
		defer one.Unlock()
		show(s)
	})
}

// Report passes a state to the function of With, if there is one.
func Report(ctx context.Context, s State) {
	if show, ok := ctx.Value(key{}).(func(State)); ok {
		show(s)
	}
}
