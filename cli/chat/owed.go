package chat

import (
	"context"

	"github.com/roost-dev/roost/client"
)

// owed are words of which nobody knows whether they came: the answer to them was lost. The
// person has them in the editor again, and most likely sends them once more. They go as they
// went before, under the key that they had, so that they are taken once: a task that took them
// works by now, and what is sent to a task that works is asked in another way.
type owed struct {
	task, words, key string
	send             func(context.Context) error
}

// once sends words that may be those that are owed. Other words, or another task, settle the
// debt: who says something else does not mean to repeat.
func (s *Session) once(ctx context.Context, task, words string, send func(context.Context) error) error {
	o := s.owed
	if o == nil || o.task != task || o.words != words {
		o = &owed{task: task, words: words, key: client.NewKey(), send: send}
	}
	err := o.send(client.Keyed(ctx, o.key))
	if s.owed = nil; client.Lost(err) {
		s.owed = o
	}
	return err
}
