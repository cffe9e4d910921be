package store

import (
	"context"
	"fmt"

	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/task"
)

// pairs says what is wrong between the tool calls of a task and their results. A call
// that nothing follows is no fault: its task was interrupted, or waits. Which result
// belongs to which call is told by ids alone, over the whole history: Roo puts a
// person's words, or a summary, between the two.
func pairs(ctx context.Context, s *task.State) (string, error) {
	type call struct{ closed, followed bool }
	calls := map[string]*call{}
	var open []*call // of the newest reply, so far without anything behind it
	alone, twice := 0, 0
	for m, err := range raws(ctx, s, s.API()) {
		if err != nil {
			return "", err
		}
		if m == nil {
			continue // it is lost, and the history says so
		}
		for _, c := range open {
			c.followed = true
		}
		open = open[:0]
		msg := roofmt.APIMessage(m)
		switch msg.Role() {
		case "assistant":
			for _, use := range msg.ToolUses() {
				if use.ID == "" {
					continue // of a time when calls were text
				}
				c := &call{}
				calls[use.ID] = c
				open = append(open, c)
			}
		case "user":
			for _, id := range msg.ToolResults() {
				switch c := calls[id]; {
				case c == nil:
					alone++
				case c.closed:
					twice++
				default:
					c.closed = true
				}
			}
		}
	}
	without := 0
	for _, c := range calls {
		if c.followed && !c.closed {
			without++
		}
	}
	text := ""
	for _, n := range []struct {
		n    int
		what string
	}{{without, "tool call%s without a result"}, {alone, "tool result%s without a call"}, {twice, "tool result%s too many for a call"}} {
		if n.n == 0 {
			continue
		}
		if text != "" {
			text += ", "
		}
		many := "s"
		if n.n == 1 {
			many = ""
		}
		text += fmt.Sprintf("%d "+n.what, n.n, many)
	}
	return text, nil
}
