package chat

import (
	display "github.com/roost-dev/roost/cli/term"
)

// screen is where a task's events are shown: each has a display of its own, because
// message numbers and call ids are a task's own.
func (t *talk) screen(task string) *display.Display {
	d := t.screens[task]
	if d == nil {
		o := t.s.o.Display
		if t.s.o.Width != nil {
			o.Width = t.s.o.Width()
		}
		d = display.New(t.s.out, o)
		for range t.depth[task] {
			d = d.Below()
		}
		t.screens[task] = d
	}
	if t.last != nil && t.last != d {
		t.last.Flush()
	}
	t.last = d
	return d
}

func (t *talk) flush() {
	if t.last != nil {
		t.last.Flush()
		t.last = nil
	}
}
