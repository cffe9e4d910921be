package checkpoints

import (
	"maps"

	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/task"
)

// rewindTarget is the state that a rewind gives the files: that from before the first hidden reply; and where a reply stays
// and only some of its calls' outcomes are hidden, what those calls changed is as it was before them. What the other calls
// of that reply changed stays, like their outcomes.
type rewindTarget struct {
	checkpoint.Moment
	named map[string]int // what hidden calls were to change, under the paths that their tools used
}

// first is the oldest checkpoint that files go back to.
func (m rewindTarget) first() int {
	return min(m.First(), checkpoint.Moment{Number: m.Number, Of: m.named}.First())
}

// of has the files under the paths that checkpoints record.
func (m rewindTarget) of(f *taskFiles) checkpoint.Moment {
	out := checkpoint.Moment{Number: m.Number, Of: maps.Clone(m.Of)}
	for given, n := range m.named {
		path, err := f.recordedPath(given)
		if err != nil {
			continue // it is outside of what checkpoints record
		}
		if last, is := out.Of[path]; !is || n < last {
			out.Of[path] = n
		}
	}
	return out
}

// targetOf is the target of a rewind, which its events describe.
func targetOf(s *task.State, events []task.Event) rewindTarget {
	m := rewindTarget{Moment: checkpoint.Moment{Number: s.CheckpointAt(firstHiddenReply(s, events)), Of: map[string]int{}},
		named: map[string]int{}}
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
			before, changed := stateBeforeCall(s, call)
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

// stateBeforeCall is the newest checkpoint from before a call had any effect, and what the call changed as far as a survey
// found it. A call that had nothing to record has no checkpoint of its own: then those of the calls before it in its reply
// count.
func stateBeforeCall(s *task.State, call *task.Call) (number int, changed []string) {
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
			return c.Number - 1, changed // the others that name a call were taken before it
		default:
			number = c.Number
		}
	}
	return number, nil
}

// firstHiddenReply is the message before whose effects a rewind puts the files: the first hidden reply, as only replies
// change files. Before a hidden message of the user the files may have been different again, because the user edited
// them.
func firstHiddenReply(s *task.State, events []task.Event) uint64 {
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
