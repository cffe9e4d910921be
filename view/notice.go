package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-dev/roost/task"
)

// Notice is something that a task recorded about files and that no message holds: files that changed since the model saw
// them, or a checkpoint. The journal implies it, and the order of commits its position in the conversation.
type Notice struct {
	Row        int               // the messages of the user's history before it
	At         int64             // Unix milliseconds
	Files      []task.FileRecord // the changed files, of a notice about them
	Checkpoint *task.Checkpoint  // of a notice about one
}

// Notices returns those of a task's visible conversation, in order. It leaves out those of rewound turns, and
// checkpoints of what a restore replaced: the checkpoint of the restore follows.
func Notices(s *task.State) []Notice {
	var out []Notice
	var seqs []uint64
	add := func(seq uint64, n Notice) { out, seqs = append(out, n), append(seqs, seq) }
	for i := range s.Checkpoints {
		c := &s.Checkpoints[i]
		person := c.Reason == task.ReasonManual || c.Reason == task.ReasonRestored
		if c.Reason != task.ReasonSafety && (person || !s.RewoundCheckpoint(*c)) {
			add(c.Seq, Notice{At: c.At, Checkpoint: c})
		}
	}
	for _, f := range s.Files {
		if f.Source != "user_edited" || f.Seq == 0 {
			continue
		}
		if n := len(out); n > 0 && out[n-1].Checkpoint == nil && seqs[n-1] == f.Seq {
			out[n-1].Files = append(out[n-1].Files, f)
		} else {
			add(f.Seq, Notice{At: f.RecordedAt, Files: []task.FileRecord{f}})
		}
	}
	rows := s.UI()
	ahead := make([]uint64, len(rows)+1) // the oldest commit of each row and those behind it
	ahead[len(rows)] = ^uint64(0)
	for i, m := range slices.Backward(rows) {
		ahead[i] = min(m.Seq, ahead[i+1])
	}
	order := make([]int, len(out))
	for i := range out {
		order[i] = i
		out[i].Row, _ = slices.BinarySearch(ahead, seqs[i]+1)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(seqs[a], seqs[b]) })
	sorted := make([]Notice, len(out))
	for i, at := range order {
		sorted[i] = out[at]
	}
	return sorted
}

// ByRow groups notices by the number of the message before them, at least the first one.
func ByRow(list []Notice) map[int][]Notice {
	out := map[int][]Notice{}
	for _, n := range list {
		row := max(n.Row, 1)
		out[row] = append(out[row], n)
	}
	return out
}

// Item is the notice as an item of the conversation.
func (n Notice) Item() Item { return Item{TS: n.At, Kind: "notice", Class: Note, Title: n.Text()} }

// Text is the notice in one line.
func (n Notice) Text() string {
	if c := n.Checkpoint; c != nil {
		text := fmt.Sprintf("checkpoint c%d", c.Number)
		for _, more := range []string{CheckpointReason(c.Reason), CheckpointTitle(c.Title)} {
			if more != "" {
				text += " " + more
			}
		}
		if c.Unkept > 0 {
			text += fmt.Sprintf(" (%d not kept)", c.Unkept)
		}
		return text
	}
	var names []string
	for _, f := range n.Files[:min(len(n.Files), 8)] {
		name := f.Path
		if f.Gone() {
			name += " deleted"
		}
		names = append(names, name+changer(f))
	}
	text := "changed since the model saw it: " + strings.Join(names, ", ")
	if more := len(n.Files) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// changer is what changed a file, if it is recorded.
func changer(f task.FileRecord) string {
	switch {
	case f.Task != "":
		return " by another task (" + f.Task + ")"
	case f.By == "command", f.By == "subtask":
		return " while a " + f.By + " ran"
	case f.By == "restore":
		return " by a restore"
	}
	return ""
}

// checkpointReasons are the reasons of checkpoints in words; the title of a checkpoint follows them.
var checkpointReasons = map[string]string{
	task.ReasonBefore: "before", task.ReasonCommand: "after a command", task.ReasonTurn: "after", task.ReasonSafety: "before a restore of",
	task.ReasonRestored: "after", task.ReasonManual: "saved by you", task.ReasonOthers: "changed by others:", task.ReasonDoubt: "in doubt:",
}

// CheckpointReason is the reason of a checkpoint in words.
func CheckpointReason(reason string) string {
	if text := checkpointReasons[reason]; text != "" {
		return text
	}
	return reason
}

// CheckpointTitle is the title of a checkpoint without the words of its reason.
func CheckpointTitle(title string) string {
	return strings.TrimPrefix(strings.TrimPrefix(title, "before a restore of "), "after ")
}
