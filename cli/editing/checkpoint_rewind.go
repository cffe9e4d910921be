package editing

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
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

func (f *withFiles) check(a *commands, cmd *cobra.Command, id string) error {
	fl := cmd.Flags()
	for _, name := range []string{"on-conflict", "yes"} {
		if fl.Changed(name) && !f.files {
			return failure.Usage("roost rewind --"+name, "the flag is for putting files back, and needs --files",
				"roost rewind "+id+" --files --"+name)
		}
	}
	if f.files && fl.Changed("delete") {
		return failure.Usage("roost rewind --delete --files", "files can only return to an earlier moment, and removing one message names no moment",
			"roost rewind "+id+" --to MESSAGE --files")
	}
	return a.checkConflictRule(cmd, f.conflict)
}

func (a *commands) tellRewindFiles(r api.RewindResult, files api.RestoreResult) error {
	for _, line := range a.restoreLines(files, a.OutStyle()) {
		if err := a.Println(line); err != nil {
			return err
		}
	}
	for _, path := range files.Left {
		a.Warn(fmt.Sprintf("changed by others while files were put back, and left as it is: %s", path))
	}
	return a.printRewind(r)
}
