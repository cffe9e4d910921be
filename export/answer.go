package export

import (
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/view"
)

// Answers gives for rows of a task, which stand next to each other, what tools gave
// back and the rows do not say, by place in rows. It reads the stretch of the model's
// history beside them. Rows of our own runs need it not: the journal knows their
// results. What cannot be read answers nothing.
func Answers(v *store.View) func(rows [][]byte) map[int]view.Item {
	api := v.State.API()
	times := make([]int64, len(api))
	for i, m := range api {
		times[i] = m.TS()
	}
	return func(rows [][]byte) map[int]view.Item {
		from, to := view.Stretch(rows, times)
		if from >= to {
			return nil
		}
		var part []*task.Message
		for _, m := range api[from:to] {
			if m.Missing {
				return nil // places would not be theirs any more
			}
			part = append(part, m)
		}
		raws, err := v.State.Raws(part)
		if err != nil {
			return nil
		}
		messages := make([][]byte, len(raws))
		for i, raw := range raws {
			messages[i] = raw
		}
		return view.Answers(rows, messages, from)
	}
}
