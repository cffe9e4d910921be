package projection

import (
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/store/infer"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/usage"
)

// HistoryRow holds the fields of Roo's history row that do not follow from a task's messages. The caller adds size and
// time.
func HistoryRow(s *task.State) usage.Row {
	row := usage.Row{
		ID: s.ID, RootTask: s.RootTask, ParentTask: s.Parent, Number: int64(s.Number),
		Workspace: s.Settings.Workspace, Mode: s.Settings.Mode, Profile: s.Settings.Profile,
	}
	if s.Parent == "" && len(s.Children) == 0 {
		return row // Roo gives a status only to tasks that have a parent or children
	}
	row.Status = "active"
	if run := s.Run; s.Parent != "" && (run != nil && run.Outcome == "completed" || run == nil && infer.Completed(s)) {
		row.Status = "completed"
	}
	for _, c := range s.Children {
		row.Family.Children = append(row.Family.Children, c.ID)
		row.Family.Delegated = c.ID
		if c.Ended && c.Outcome == "completed" {
			row.Family.Completed, row.Family.Result = c.ID, c.Result
		}
	}
	if c := s.Awaited(); c != nil {
		row.Status, row.Family.Delegated, row.Family.Awaiting = "delegated", c.ID, c.ID
	}
	return row
}

// OverItem puts a new history row over the item of another tool: unknown members keep their places, and a child that the
// task no longer waits for is removed.
func OverItem(item, row []byte) []byte {
	out := item
	for _, key := range usage.FamilyKeys {
		if _, has := esjson.Get(row, key); !has {
			if _, has := esjson.Get(out, key); has {
				out = esjson.Remove(out, key)
			}
		}
	}
	for key, val := range esjson.Members(row) {
		out = esjson.Set(out, key, val)
	}
	return out
}
