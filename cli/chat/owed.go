package chat

import (
	"context"

	"github.com/roost-dev/roost/client"
)

// owed are words that may or may not have arrived: the response to them was lost. The user has them in the editor
// again, and most likely sends them once more. The chat then sends them in the same way, under the same key, so that
// they are taken once: a task that took them works by now, and words for a task that works go by another request.
type owed struct {
	task, words, key string
	send             func(context.Context) error
}

// once sends words that may be those that are owed. Other words, or another task, clear the debt: a user who types
// something else does not mean to repeat.
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
