package cli

import (
	"encoding/json"
	"fmt"

	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/view"
)

// standIn makes the history that is asked for when it is gone; what would be sent is
// made of what is there.
func standIn(v *store.View, f showFlags) (made []json.RawMessage, why string, err error) {
	switch {
	case f.effective:
		return nil, "", nil
	case f.api:
		return report.StandIn(v, task.API)
	}
	return report.StandIn(v, task.UI)
}

// showStandIn prints what stands in for a history, marked as such.
func (a *App) showStandIn(v *store.View, made []json.RawMessage, why string, f showFlags) error {
	if a.flags.json {
		a.warn(why)
	} else if _, err := fmt.Fprintln(a.Out, a.outStyle().Paint(view.Bad, why)); err != nil {
		return fmt.Errorf("print the task: %w", err)
	}
	from, to := window(len(made), f)
	return a.printHistory(v, elements(made[from:to], from), from, f)
}
