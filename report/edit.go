package report

import (
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/store/actions"
)

// UndoneOf is the document of what engine.Undo returns.
func UndoneOf(action api.Action, task api.TaskActions, files *api.RestoreResult, o actions.Options) api.Undone {
	out := api.Undone{TaskActions: task, DryRun: o.DryRun, Restore: files}
	if out.Undone = &action; o.Redo {
		out.Undone, out.Redone = nil, &action
	}
	return out
}

// CondensedOf is the document of what engine.Condense returns, or with dry engine.CondensePlan.
func CondensedOf(id string, c engine.Condensed, dry bool) api.Condensed {
	out := api.Condensed{
		Task: id, DryRun: dry, Condense: c.ID, Messages: c.Messages, Sent: c.Sent, Kept: c.Kept,
		Before: c.Before, After: c.After, Summary: c.Text,
	}
	if c.CostKnown {
		usd := money.USD(c.CostMicro)
		out.Cost = &usd
	}
	return out
}
