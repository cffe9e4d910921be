package cli

import (
	"encoding/json"
	"fmt"

	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/view"
)

// standIn makes a history of a task from its other one, when its own is gone: the
// file is not there or holds no complete element. A file that says that there is
// nothing, and one that cannot be read now, are believed. why is for people; "" = the
// history is shown as it is.
func standIn(v *store.View, f showFlags) (made []json.RawMessage, why string, err error) {
	if v.Folder == nil || f.effective {
		return nil, "", nil
	}
	gone, own, other := v.Folder.UI, v.State.UI(), v.State.API()
	from, make := "the model's history", view.UIFromAPI
	if f.api {
		gone, own, other = v.Folder.API, v.State.API(), v.State.UI()
		from, make = "what the person saw", view.APIFromUI
	}
	if len(own) > 0 || len(other) == 0 || gone.Len() > 0 || gone.State == roofmt.Present || gone.State == roofmt.Unreadable {
		return nil, "", nil
	}
	raws, err := v.State.Raws(readable(other))
	if err != nil {
		return nil, "", fmt.Errorf("make a history of task %s from %s: %w", v.Ref.ID, from, err)
	}
	bytes := [][]byte{}
	for _, raw := range raws {
		bytes = append(bytes, raw)
	}
	for _, raw := range make(bytes) {
		made = append(made, raw)
	}
	return made, fmt.Sprintf("made from %s, as far as that tells: %s is %s", from, gone.Name, gone.State), nil
}

func readable(list []*task.Message) (out []*task.Message) {
	for _, m := range list {
		if !m.Missing {
			out = append(out, m)
		}
	}
	return out
}

// showStandIn prints what stands in for a history, marked as such.
func (a *App) showStandIn(v *store.View, made []json.RawMessage, why string, f showFlags, item func([]byte, int) view.Item) error {
	if a.flags.json {
		a.warn(why)
	} else if _, err := fmt.Fprintln(a.Out, a.outStyle().Paint(view.Bad, why)); err != nil {
		return fmt.Errorf("print the task: %w", err)
	}
	from, to := window(len(made), f)
	return a.printHistory(v, elements(made[from:to], from), from, f, item)
}
