package app

import (
	"strings"

	"github.com/roost-dev/roost/api"
)

// Family is a task with its subtasks, as they are listed: each behind its parent.
type Family struct {
	Tasks  []api.Summary
	Depths []int
}

// Lead is the part of the tree's drawing before a task.
func (f Family) Lead(i int) string {
	if i == 0 {
		return ""
	}
	last := func(at, depth int) bool { // no task of that depth follows under the same parent
		for j := at + 1; j < len(f.Depths) && f.Depths[j] >= depth; j++ {
			if f.Depths[j] == depth {
				return false
			}
		}
		return true
	}
	var b strings.Builder
	for d := f.Depths[0] + 1; d < f.Depths[i]; d++ {
		if last(i, d) {
			b.WriteString("   ")
		} else {
			b.WriteString("│  ")
		}
	}
	if last(i, f.Depths[i]) {
		return b.String() + "└─ "
	}
	return b.String() + "├─ "
}
