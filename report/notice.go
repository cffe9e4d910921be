package report

import (
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/view"
)

// Notice is something that a task recorded about files, at its position in the conversation.
type Notice struct {
	Behind     int            `json:"behind"` // the number of the message before it
	At         *string        `json:"at"`
	Kind       string         `json:"kind"` // files_changed, checkpoint
	Text       string         `json:"text"`
	Files      []FileOfNotice `json:"files,omitempty"`      // of files_changed
	Checkpoint int            `json:"checkpoint,omitempty"` // its number
	Reason     string         `json:"reason,omitempty"`     // of the checkpoint
}

// FileOfNotice is a file that changed since the model saw it.
type FileOfNotice struct {
	Path string `json:"path"`
	By   string `json:"by,omitempty"`   // command, subtask (while one ran), restore, other
	Task string `json:"task,omitempty"` // the other task that changed it
	Gone bool   `json:"gone,omitempty"`
}

// NoticesOf returns the notices behind some messages of the user's history.
func NoticesOf(s *task.State, numbers []int) []Notice {
	var out []Notice
	byRow := view.ByRow(view.Notices(s))
	for _, number := range numbers {
		for _, n := range byRow[number] {
			one := Notice{Behind: number, At: date(n.At), Kind: "files_changed", Text: n.Text()}
			if c := n.Checkpoint; c != nil {
				one.Kind, one.Checkpoint, one.Reason = "checkpoint", c.Number, c.Reason
			}
			for _, f := range n.Files {
				one.Files = append(one.Files, FileOfNotice{Path: f.Path, By: f.By, Task: f.Task, Gone: f.Gone()})
			}
			out = append(out, one)
		}
	}
	return out
}
