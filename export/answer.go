package export

import (
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/view"
)

// Answers returns, for consecutive rows of a task, the results of tools that the rows lack, by index in rows. It reads
// the matching stretch of the model's history. Rows of our own runs do not need it: the journal has their results. An
// unreadable message answers nothing.
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
				return nil // the indexes would no longer match
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
