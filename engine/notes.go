package engine

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/store/intake"
	"github.com/roost-dev/roost/task"
)

// describeOwned are notes for the user about what owning the task found.
func describeOwned(o *store.Owned, adopted bool) []string {
	var notes []string
	switch {
	case o.Forked != "" && o.Again:
		notes = append(notes, fmt.Sprintf("%s has files that Roost does not write; it continues as task %s, as before",
			o.Forked, o.Task.Ref.ID))
	case o.Forked != "":
		notes = append(notes, fmt.Sprintf("%s has files that Roost does not write; it continues as a new task %s", o.Forked, o.Task.Ref.ID))
	case adopted && o.Task.Ref.Foreign():
		notes = append(notes, "this task is in another tool's storage: it continues there, and its original files are kept")
	}
	if s := o.Task.State(); s.Received != nil && (s.Run == nil || s.Run.Started <= s.Received.At) { // its first run here
		notes = append(notes, s.Received.Notes(s.Settings)...)
	}
	if o.Gone {
		notes = append(notes, "the editor deleted this task's folder; Roost's copy is complete, and the folder is not created again")
	}
	return append(notes, describeIntakes(o.Intakes)...)
}

// describeIntakes are notes about what other programs changed and what Roost did with it.
func describeIntakes(list []intake.Change) []string {
	var notes []string
	for _, change := range list {
		switch {
		case change.Refused != "":
			notes = append(notes, fmt.Sprintf("another program changed %s: the change is not applied, because %s; its bytes "+
				"are kept", change.File, change.Refused))
		case change.Rewound != nil:
			notes = append(notes, fmt.Sprintf("another program rewound this task: %d messages were hidden, and are kept as a "+
				"branch; roost undo brings them back", change.Lacking))
		case change.Restored:
			notes = append(notes, fmt.Sprintf("%s still held what the damaged journal had lost; messages that are back: %d",
				change.File, change.Added+change.Changed))
		default:
			notes = append(notes, fmt.Sprintf("another program changed %s: %d new and %d changed messages were taken in",
				change.File, change.Added, change.Changed))
		}
	}
	return notes
}

// differences reports what has changed for a task since its last run: another model, or files that have changed, must not
// surprise the user.
func differences(s *task.State, now task.Settings, head string) []string {
	was := s.Settings
	var notes []string
	report := func(what, from, to string) {
		if from != "" && from != to {
			notes = append(notes, fmt.Sprintf("%s: %s -> %s", what, from, to))
		}
	}
	report("workspace", was.Workspace, now.Workspace)
	report("provider", was.Provider, now.Provider)
	report("model", was.Model, now.Model)
	report("base URL", was.BaseURL, now.BaseURL)
	report("mode", was.Mode, now.Mode)
	if s.Run != nil && was.Workspace == now.Workspace && s.Run.Head != head {
		notes = append(notes, fmt.Sprintf("the workspace's HEAD has changed since the last run: %s -> %s",
			orNone(s.Run.Head), orNone(head)))
	}
	return notes
}

func orNone(head string) string {
	if head == "" {
		return "none"
	}
	return head
}

// gitHead is the commit that a workspace's repository is on; "" without a repository. The files of the repository hold
// it: asking git would run the user's hooks and settings.
func gitHead(root string) string {
	dir := filepath.Join(root, ".git")
	head, err := inputfile.Read(filepath.Join(dir, "HEAD"))
	if err != nil {
		return ""
	}
	text := strings.TrimSpace(string(head))
	ref, symbolic := strings.CutPrefix(text, "ref: ")
	if !symbolic {
		return text
	}
	if commit, err := inputfile.Read(filepath.Join(dir, filepath.FromSlash(ref))); err == nil {
		return strings.TrimSpace(string(commit))
	}
	return fmt.Sprintf("%s (no commit found)", ref)
}
