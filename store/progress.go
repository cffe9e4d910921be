package store

import "context"

// Progress is how far a long piece of work is.
type Progress struct {
	What     string // what is being done: "checking"
	Done, Of int    // tasks; Of is 0 while their number is unknown
	Files    int
	Bytes    int64
}

type progressKey struct{}

// WithProgress makes lists, searches, checks and sums over all tasks report their progress under a context. They call
// report after each task, from any goroutine. It must be quick, and decides how often to show something.
func WithProgress(ctx context.Context, report func(Progress)) context.Context {
	return context.WithValue(ctx, progressKey{}, report)
}

// Tell calls the function of WithProgress, if there is one.
func Tell(ctx context.Context, p Progress) {
	if report, ok := ctx.Value(progressKey{}).(func(Progress)); ok {
		report(p)
	}
}
