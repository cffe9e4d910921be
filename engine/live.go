package engine

import "context"

// earful is how many live events a listener may lag behind before it misses some.
const earful = 1024

// listener is somebody who wants to hear what runs say before it is durable.
type listener struct {
	task string // "" = all
	ch   chan Event
}

// Live yields what runs of this process say of a task before it is durable, and notices,
// until ctx ends: deltas as Event has them, without ID. A slow listener misses some; they
// come again as whole messages. All tasks when task is "". The channel is closed at the
// end, or when the engine is.
func (e *Engine) Live(ctx context.Context, task string) <-chan Event {
	l := &listener{task: task, ch: make(chan Event, earful)}
	e.desk.mu.Lock()
	if e.desk.shut {
		e.desk.mu.Unlock()
		close(l.ch)
		return l.ch
	}
	if e.desk.ears == nil {
		e.desk.ears = map[*listener]struct{}{}
	}
	e.desk.ears[l] = struct{}{}
	e.desk.mu.Unlock()
	context.AfterFunc(ctx, func() { e.deafen(l) })
	return l.ch
}

func (e *Engine) deafen(l *listener) {
	e.desk.mu.Lock()
	defer e.desk.mu.Unlock()
	if _, listens := e.desk.ears[l]; listens {
		delete(e.desk.ears, l)
		close(l.ch)
	}
}

// air tells those who listen. It never blocks.
func (e *Engine) air(one Event) {
	e.desk.mu.Lock()
	defer e.desk.mu.Unlock()
	for l := range e.desk.ears {
		if l.task != "" && l.task != one.Task {
			continue
		}
		select {
		case l.ch <- one:
		default:
		}
	}
}
