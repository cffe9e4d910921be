package server

import (
	"context"
	"sync"

	"github.com/roost-dev/roost/engine"
	feedlog "github.com/roost-dev/roost/store/feed"
)

// heardMost is how many tasks of other processes are listened to at a time: each is a
// connection. Of more the deltas are missed, and come as whole messages.
const heardMost = 32

// ears listen to the tasks that other processes work on, for who follows all tasks. They
// ask for each task alone: a process that was asked for all of its own would be asked back.
type ears struct {
	s    *Server
	say  func(engine.Event)
	wait sync.WaitGroup

	mu  sync.Mutex
	all map[feedlog.Task]bool
}

func (s *Server) newEars(v *voices) *ears {
	return &ears{s: s, all: map[feedlog.Task]bool{}, say: func(e engine.Event) {
		select {
		case v.there <- e:
		default: // it comes again as a whole message
		}
	}}
}

// listen begins to listen to those of some tasks that another process holds, until it lets
// them go or ctx ends.
func (e *ears) listen(ctx context.Context, open map[feedlog.Task]uint64) {
	for task := range open {
		e.mu.Lock()
		skip := e.all[task] || len(e.all) >= heardMost
		e.mu.Unlock()
		if skip || ctx.Err() != nil {
			continue
		}
		ref, ok := e.s.opt.Store.LogRef(task.Source, task.ID)
		if !ok {
			continue
		}
		held, alive := e.s.opt.Store.Holder(ref)
		if !alive || held.Address == "" || held.Address == e.s.opt.Store.Address() {
			continue
		}
		e.mu.Lock()
		e.all[task] = true
		e.mu.Unlock()
		e.wait.Go(func() {
			e.s.hearAt(ctx, held.Address, ref, e.say)
			e.mu.Lock()
			delete(e.all, task)
			e.mu.Unlock()
		})
	}
}
