package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/checkpoint"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/report"
	"github.com/roost-dev/roost/store"
)

// withFiles are the flags of a rewind that takes files with it.
type withFiles struct {
	files, yes bool
	conflict   string
}

func (f *withFiles) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&f.files, "files", false, "put the files back as well that the task changed, as they were before that message")
	conflictFlag(cmd, &f.conflict)
	fl.BoolVar(&f.yes, "yes", false, "with --files: do not ask, also on a terminal")
}

func (f *withFiles) check(a *App, cmd *cobra.Command, id string) error {
	fl := cmd.Flags()
	for _, name := range []string{"on-conflict", "yes"} {
		if fl.Changed(name) && !f.files {
			return usage("roost rewind --"+name, "it says how files are put back, and goes with --files", "roost rewind "+id+" --files --"+name)
		}
	}
	if f.files && fl.Changed("delete") {
		return usage("roost rewind --delete --files", "files go back to a moment, and one message that is taken out is none", "roost rewind "+id+" --to MESSAGE --files")
	}
	return a.checkConflictRule(cmd, f.conflict)
}

// rewindFiles takes histories and files back in one step.
func (a *App) rewindFiles(ctx context.Context, id string, o store.RewindOptions, f withFiles) error {
	if done, err := a.remotely(func(c *client.Client) error { return a.farRewind(ctx, c, id, o, &f) }); done {
		return err
	}
	return a.withEngine(ctx, func(_ *store.Store, e *engine.Engine) error {
		what, at := "rewind task "+id, engine.RestoreOptions{OnConflict: checkpoint.Rule(f.conflict), DryRun: o.DryRun}
		if !o.DryRun && !f.yes && a.interactive() {
			dry, plan := o, at
			dry.DryRun, plan.DryRun = true, true
			_, r, _, err := e.RewindFiles(ctx, id, dry, plan)
			if err != nil {
				return a.rewindFailure(what, id, err)
			}
			if len(r.Files) > 0 {
				if err := a.agree(ctx, what, r, "roost rewind "+shellWord(id)+" --files"); err != nil {
					return err
				}
				at.Planned = agreed(r)
			}
		}
		r, files, finish, err := e.RewindFiles(ctx, id, o, at)
		if errors.Is(err, errChanged) {
			return changedMeanwhile(what, id, "roost rewind "+shellWord(id)+" --files --dry-run")
		}
		if err != nil {
			return a.rewindFailure(what, id, err)
		}
		told := a.tellRewindFiles(r, files)
		return errors.Join(told, finished(ctx, "histories and files went back, and that is saved", finish), restoreFailure(files, "keep"))
	})
}

func (a *App) rewindFailure(what, id string, err error) error {
	if same := checkpointFailure(what, id, err); same != err { //nolint:errorlint // whether it was turned into a failure
		return same
	}
	return a.refFailure(what, id, err)
}

func (a *App) tellRewindFiles(r store.Rewind, files engine.RestoreResult) error {
	if a.flags.json {
		return encode(a.Out, report.Rewound{Rewind: r, Restore: &files}, false)
	}
	for _, line := range a.restoreLines(files, a.outStyle()) {
		if err := a.println(line); err != nil {
			return err
		}
	}
	for _, path := range files.Left {
		a.warn(fmt.Sprintf("changed by somebody else while files were put back, and left as it is: %s", path))
	}
	return a.tellRewind(r)
}
