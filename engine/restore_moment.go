package engine

import (
	"maps"

	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/task"
)

// moment is where a rewind puts the files: to before the first reply that goes, and of a
// reply that stays, some of whose calls' outcomes go, what those calls changed to before
// them. What other calls of that reply changed stays, as their outcomes do.
type moment struct {
	checkpoint.Moment
	named map[string]int // what calls that go were to change, as their tools named it
}

// first is the oldest checkpoint that files are put back to.
func (m moment) first() int {
	return min(m.First(), checkpoint.Moment{Number: m.Number, Of: m.named}.First())
}

// of has the files by the names that checkpoints have for them.
func (m moment) of(f *floor) checkpoint.Moment {
	out := checkpoint.Moment{Number: m.Number, Of: maps.Clone(m.Of)}
	for given, n := range m.named {
		path, err := f.recorded(given)
		if err != nil {
			continue // it lies where no checkpoint looks
		}
		if last, is := out.Of[path]; !is || n < last {
			out.Of[path] = n
		}
	}
	return out
}

// momentOf is that of what a rewind takes.
func momentOf(s *task.State, events []task.Event) moment {
	m := moment{Moment: checkpoint.Moment{Number: s.CheckpointAt(firstGone(s, events)), Of: map[string]int{}}, named: map[string]int{}}
	earliest := func(of map[string]int, path string, n int) {
		if last, is := of[path]; !is || n < last {
			of[path] = n
		}
	}
	for _, e := range events {
		r, is := e.(task.Rewound)
		if !is {
			continue
		}
		for _, id := range r.Calls {
			call := s.Call(id)
			if call == nil || !call.Started {
				continue
			}
			before, changed := beforeCall(s, call)
			for path := range call.Before {
				earliest(m.named, path, before)
			}
			for _, path := range changed {
				earliest(m.Of, path, before)
			}
		}
	}
	return m
}

// beforeCall is the newest checkpoint of before a call did anything, and what it changed
// as far as a look at the files found that. A call that had nothing to record has no
// checkpoint of its own: then those of calls before it in its reply count.
func beforeCall(s *task.State, call *task.Call) (number int, changed []string) {
	number = s.CheckpointAt(call.Message)
	earlier := map[string]bool{}
	for _, c := range s.Calls() {
		if c.ID == call.ID {
			break
		}
		if c.Message == call.Message {
			earlier[c.ID] = true
		}
	}
	for _, c := range s.Checkpoints {
		switch {
		case c.Message < call.Message || c.Reason == task.ReasonOthers:
		case earlier[c.Call]:
			number = max(number, c.Number)
		case c.Call != call.ID:
		case c.Reason == task.ReasonCommand, c.Reason == task.ReasonDoubt:
			for _, f := range c.Files {
				changed = append(changed, f.Path)
			}
			return c.Number - 1, changed // the others that name a call are of before it
		default:
			number = c.Number
		}
	}
	return number, nil
}

// firstGone is the message before whose effects a rewind puts the files: the first reply
// that goes, as only replies change files. Before a question of the person that goes too
// the files may have been something else again, by the person's own hand.
func firstGone(s *task.State, events []task.Event) uint64 {
	first := ^uint64(0)
	for _, e := range events {
		r, is := e.(task.Rewound)
		if !is || len(r.Hide) == 0 {
			continue
		}
		first = min(first, r.Hide[0][0])
		for _, m := range s.API() {
			if m.Kind() == "assistant" && hides(r, m.ID) {
				return m.ID
			}
		}
	}
	return first
}

func hides(r task.Rewound, id uint64) bool {
	for _, run := range r.Hide {
		if run[0] <= id && id <= run[1] {
			return true
		}
	}
	return false
}
