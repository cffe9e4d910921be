package store

import "context"

// Progress is how far a piece of work is that may take long.
type Progress struct {
	What     string // what is being done: "checking"
	Done, Of int    // tasks; Of is 0 while nobody knows how many there are
	Files    int
	Bytes    int64
}

type progressKey struct{}

// WithProgress lets work under a context tell how far it is: lists, searches,
// checks and sums over all tasks. tell is called after each task, from any
// goroutine, and must be quick; whoever shows it decides how often.
func WithProgress(ctx context.Context, tell func(Progress)) context.Context {
	return context.WithValue(ctx, progressKey{}, tell)
}

// Tell tells whoever asked for it how far work under a context is.
func Tell(ctx context.Context, p Progress) {
	if tell, ok := ctx.Value(progressKey{}).(func(Progress)); ok {
		tell(p)
	}
}
