package store

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-dev/roost/task"
)

// callRows are the kinds of rows that tell of a call.
var callRows = map[string]bool{"ask:tool": true, "say:tool": true, "ask:command": true, "ask:use_mcp_server": true}

// atCheckpoint reads a reference such as c3; ok is false when it is none. A checkpoint
// stands for the moment at which it was taken: what came behind it goes. Where it was taken
// before a change, the row that tells of the change goes as well, with its outcome, so that
// histories and files are of one moment.
func atCheckpoint(s *task.State, text string, bad *RefError) (to target, ok bool, err error) {
	digits, named := strings.CutPrefix(text, "c")
	n, err := strconv.Atoi(digits)
	if !named || err != nil || n < 0 {
		return target{}, false, nil
	}
	ui := s.UI()
	c := s.Checkpoint(n)
	switch {
	case len(s.Checkpoints) == 0:
		bad.Why = "the task has no checkpoints"
	case c == nil:
		bad.Why = fmt.Sprintf("the task has the checkpoints c1 to c%d", s.Checkpoints[len(s.Checkpoints)-1].Number)
	case s.RewoundCheckpoint(*c):
		bad.Why = fmt.Sprintf("%s was taken back with its messages; the files alone go back with roost checkpoint restore", text)
	default:
		row, _ := slices.BinarySearchFunc(ui, c.Seq, func(m *task.Message, seq uint64) int {
			if m.Seq <= seq {
				return -1
			}
			return 1
		})
		if c.Reason == task.ReasonBefore && row > 0 && callRows[ui[row-1].Kind()] {
			row--
		}
		if row < len(ui) {
			return target{row: row, between: true}, true, nil
		}
		bad.Why = fmt.Sprintf("nothing came behind %s", text)
	}
	bad.Candidates = someRows(s, len(ui))
	return target{}, true, bad
}
