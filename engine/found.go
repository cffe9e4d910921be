package engine

import (
	"fmt"

	"github.com/roost-dev/roost/store"
)

// describe says what taking the task over found, in words for the person.
func describe(o *store.Owned, adopted bool) []string {
	var notes []string
	switch {
	case o.Forked != "" && o.Again:
		notes = append(notes, fmt.Sprintf("%s has files that Roost does not write; it goes on as task %s, as before", o.Forked, o.Task.Ref.ID))
	case o.Forked != "":
		notes = append(notes, fmt.Sprintf("%s has files that Roost does not write; it goes on as a new task %s", o.Forked, o.Task.Ref.ID))
	case adopted && o.Task.Ref.Foreign():
		notes = append(notes, "this task lies in another tool's storage: it goes on in place, and its originals are kept")
	}
	if s := o.Task.State(); s.Received != nil && (s.Run == nil || s.Run.Started <= s.Received.At) { // its first run here
		notes = append(notes, s.Received.Notes(s.Settings)...)
	}
	if o.Gone {
		notes = append(notes, "the editor deleted this task's folder; Roost's copy is whole, and the folder is not made again")
	}
	return append(notes, intakes(o.Intakes)...)
}

// intakes says what other programs changed and what became of it.
func intakes(list []store.Intake) []string {
	var notes []string
	for _, change := range list {
		switch {
		case change.Refused != "":
			notes = append(notes, fmt.Sprintf("another program changed %s: not taken over, because %s; its bytes are kept", change.File, change.Refused))
		case change.Rewound != nil:
			notes = append(notes, fmt.Sprintf("another program rewound this task: %d messages went, and are kept as a branch; roost undo brings them back", change.Lacking))
		case change.Restored:
			notes = append(notes, fmt.Sprintf("%s still held what the damaged journal had lost; messages that are back: %d", change.File, change.Added+change.Changed))
		default:
			notes = append(notes, fmt.Sprintf("another program changed %s: %d new and %d changed messages were taken in", change.File, change.Added, change.Changed))
		}
	}
	return notes
}
