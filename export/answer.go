package export

import (
	"slices"

	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/view"
)

// answersTo looks up, for consecutive rows of a task, the results of tools that the rows lack, by index. It reads the
// matching stretch of the model's history. Rows of our own runs do not need it: the journal has their results. An
// unreadable message answers nothing.
func answersTo(v *store.View) func(batch []Element) map[int]view.Item {
	api := v.State.API()
	times := make([]int64, len(api))
	for i, m := range api {
		times[i] = m.TS()
	}
	return func(batch []Element) map[int]view.Item {
		if !slices.ContainsFunc(batch, func(e Element) bool { return e.Message != nil && e.Message.Foreign }) {
			return nil
		}
		rows := make([][]byte, len(batch))
		for i, e := range batch {
			rows[i] = e.Raw
		}
		from, to := view.Stretch(rows, times)
		if from >= to {
			return nil
		}
		part := api[from:to]
		if slices.ContainsFunc(part, func(m *task.Message) bool { return m.Missing }) {
			return nil // the indexes would no longer match
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
