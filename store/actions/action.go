// Package actions lists what users did to tasks, and undoes and redoes it.
//
// An action is in one of two logs: in the task's own journal, or in the overlay when the folder is not ours or moves
// away. Each entry of the overlay names the commit at which the task's journal was (overlay.Entry.Head), so the actions
// of both logs have one order that does not depend on clocks. A third log of all actions was the alternative: a kill
// between two writes would make it wrong.
//
// Undoing appends to the log that holds the action, so it loses nothing. The action is chosen again once that log is
// locked: when another process did something in between, Undo fails with a *ConflictError and that action stays.
package actions

import (
	"errors"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// deletion is the kind of an action that deleted a task.
const deletion = "delete"

// ErrFiles: the action restored files, and the caller cannot restore files.
var ErrFiles = errors.New("it restored files, and undoing it must restore files, too")

// restoresFiles reports whether an action restored files.
func restoresFiles(d task.Action) bool { return d.Kind == api.ActionRestore || len(d.Files) > 0 }

// loggedAction is an action and the log that holds it.
type loggedAction struct {
	task.Action
	inOverlay bool
}

func (a loggedAction) id() string {
	switch {
	case a.inOverlay && a.Seq == 0:
		return "trash"
	case a.inOverlay:
		return fmt.Sprintf("overlay-%d", a.Seq)
	}
	return fmt.Sprintf("journal-%d", a.Seq)
}

// moment orders the actions of both logs: an entry of the overlay follows the commit that it names.
type moment [3]uint64

func (a loggedAction) moment() moment {
	if a.inOverlay {
		return moment{a.Head, 1, a.Then}
	}
	return moment{a.Then}
}

func (m moment) before(o moment) bool { return slices.Compare(m[:], o[:]) < 0 }

// actionList are actions in their order.
type actionList []loggedAction

func (l actionList) newest() (loggedAction, bool) {
	if len(l) == 0 {
		return loggedAction{}, false
	}
	return l[len(l)-1], true
}

// describe gives the actions for a caller, the newest first. moved is the newest commit that continued the histories.
func (l actionList) describe(moved uint64) []api.Action {
	out := make([]api.Action, 0, len(l))
	for _, a := range slices.Backward(l) {
		d := a.describe()
		d.WentOn = a.Move && moved > a.Then
		out = append(out, d)
	}
	return out
}

func (a loggedAction) describe() api.Action {
	d := api.Action{ID: a.id(), Kind: a.Kind, At: store.Timestamp(a.At)}
	if a.Kind == deletion {
		d.From.Deleted, d.To.Deleted = new(false), new(true)
		return d
	}
	if restoresFiles(a.Action) {
		d.Files, d.Checkpoint, d.Safety = len(a.Action.Files), new(a.Action.To), a.Action.Safety
	}
	if a.Move {
		d.Gone, d.Branch, d.By = &api.MessageCounts{UI: a.Gone.UI, API: a.Gone.API}, store.BranchName(a.Seq), a.By
		return d
	}
	if a.Cover > 0 {
		d.Covered = a.Cover
		return d
	}
	d.From = api.ActionLabels{Title: a.Before.Title, Tags: a.Before.Tags, Pinned: a.Before.Pinned}
	d.To = api.ActionLabels{Title: a.After.Title, Tags: a.After.Tags, Pinned: a.After.Pinned}
	return d
}

// merge puts the actions of both logs in order. What was undone in one log cannot be redone once something new was done
// in the other.
func merge(journal, overlay task.Actions) (done, redo actionList) {
	last := map[bool]moment{false: {journal.Last}, true: {overlay.Head, 1, overlay.Last}}
	if overlay.Last == 0 {
		last[true] = moment{}
	}
	for _, of := range []struct {
		task.Actions
		inOverlay bool
	}{{journal, false}, {overlay, true}} {
		for _, d := range of.Done {
			done = append(done, loggedAction{d, of.inOverlay})
		}
		for _, d := range of.Undone {
			if a := (loggedAction{d, of.inOverlay}); last[!of.inOverlay].before(a.moment()) {
				redo = append(redo, a)
			}
		}
	}
	for _, l := range []actionList{done, redo} {
		slices.SortStableFunc(l, func(a, b loggedAction) int {
			x, y := a.moment(), b.moment()
			return slices.Compare(x[:], y[:])
		})
	}
	return done, redo
}
