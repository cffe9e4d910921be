package report

import (
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/view"
)

// NoticesOf returns the notices behind some messages of the user's history.
func NoticesOf(s *task.State, numbers []int) []api.Notice {
	var out []api.Notice
	byRow := view.ByRow(view.Notices(s))
	for _, number := range numbers {
		for _, n := range byRow[number] {
			one := api.Notice{Behind: number, At: api.Date(n.At), Kind: "files_changed", Text: n.Text()}
			if c := n.Checkpoint; c != nil {
				one.Kind, one.Checkpoint, one.Reason = "checkpoint", c.Number, c.Reason
			}
			for _, f := range n.Files {
				one.Files = append(one.Files, api.FileOfNotice{Path: f.Path, By: f.By, Task: f.Task, Gone: f.Gone()})
			}
			out = append(out, one)
		}
	}
	return out
}
