package checkpoints

import (
	"context"
	"fmt"

	"github.com/roost-dev/roost/task"
)

// A command may be killed together with the program. The survey from before the command outlives the kill, and
// what the command changed is found by comparing with it.

// Outlived notes that a call's command ran on after the run that had begun it.
func (k *Keeper) Outlived(call string) {
	if k.outlived == nil {
		k.outlived = map[string]bool{}
	}
	k.outlived[call] = true
}

// Interrupted finds what a command changed whose outcome is unknown, and separately what changed later: a
// person may have worked since. Without a survey it finds how known files differ from their records, by an
// unknown author. text describes the changes to the model; it follows the outcome's own text.
func (k *Keeper) Interrupted(ctx context.Context, c *task.Call) (g Guard, changes Attribution, text string) {
	if !k.enabled() {
		return g, changes, ""
	}
	s, err := k.store.Interrupted(ctx, c.ID)
	if s == nil || err != nil {
		if err != nil && !k.disabled(err) && ctx.Err() == nil {
			k.run.Notice(fmt.Sprintf("what %s changed before it was interrupted could not be surveyed: %v", c.Name, err))
		}
		changes.Since = k.recordedDiffers(ctx)
		if n := len(changes.Since); n > 0 {
			k.run.Notice(fmt.Sprintf("the survey of the workspace from before %s is lost: what it changed is not known. "+
				"%s not as last recorded, and a restore asks about them: %s", c.Name, countFiles(n), names(changes.Since)))
			text = k.run.Mask(fmt.Sprintf(" Changed before or since it was interrupted, by whom is not known: %s.", names(changes.Since)))
		}
		return g, changes, text
	}
	g.survey = s
	changes = k.attribute(ctx, g, k.outlived[c.ID])
	if n := len(changes.Own); n > 0 {
		k.run.Notice(fmt.Sprintf("%s changed by %s before it was interrupted: %s", countFiles(n), c.Name, names(changes.Own)))
		text += k.run.Mask(fmt.Sprintf(" %s changed while it ran: %s.", countFiles(n), names(changes.Own)))
	}
	if n := len(changes.Doubt); n > 0 {
		k.run.Notice(fmt.Sprintf("%s changed while %s ran before it was interrupted, by it or by something else; "+
			"a restore asks about them: %s", countFiles(n), c.Name, names(changes.Doubt)))
		text += k.run.Mask(fmt.Sprintf(" %s changed while it ran, by it or by another program: %s.", countFiles(n), names(changes.Doubt)))
	}
	if n := len(changes.Since); n > 0 {
		k.run.Notice(fmt.Sprintf("%s changed since %s was interrupted, by whom is not known, and a restore asks about them: %s",
			countFiles(n), c.Name, names(changes.Since)))
	}
	return g, changes, text
}
