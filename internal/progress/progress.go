// Package progress passes on how far a long piece of work is: a list, a search, a check or a sum over all tasks. Its
// context carries the function that shows it, so no layer in between needs to know.
package progress

import (
	"context"
	"sync"
)

// State is how far a piece of work is.
type State struct {
	What     string // "checking"
	Done, Of int    // tasks; Of is 0 while their number is unknown
	Files    int
	Bytes    int64
}

type key struct{}

// With makes work under a context call show after each task. Workers report from goroutines of their own, and With
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
