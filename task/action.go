package task

import (
	"cmp"
	"slices"

	"github.com/roost-dev/roost/api"
)

// Action is something that a user did to a task and can undo: a rename, other tags, a pin. It is derived from the log
// like everything else. The event that undoes an action has the same type and names the action (Changed.Undoes), so
// the log holds both, and nothing is removed from it.
//
// A new kind needs its members here, a case in the fold that calls Do, Undo and Redo, and one in Back and Again.
type Action struct {
	Kind   string // rename, tag, pin, share, rewind, edit, remove, branch, condense, truncate, restore; the store adds delete
	Seq    uint64 // the commit that did it
	Then   uint64 // the commit that last undid or redid it; Seq at first
	Head   uint64 // for an action that is kept outside the log: the log's newest commit at Then
	At     int64  // of the commit Seq; Unix milliseconds
	Before Changed
	After  Changed

	Cover int `json:",omitempty"` // how many messages are covered by the summary or marker that it made

	Move bool   `json:",omitempty"` // it moved the head of the histories; see Rewound
	By   string `json:",omitempty"` // the tool that did it, when it was not Roost
	Gone Gone   // how many messages it hid

	// Files are the files that the action restored when it was last done or redone. Swapped, they undo it. A move of
	// the head with files is one action, of the move's kind.
	Files  []RestoreFile `json:",omitempty"`
	To     int           `json:",omitempty"` // the checkpoint that was restored; 0 = before anything was changed
	Safety int           `json:",omitempty"` // the checkpoint of the files that it replaced
}

// Back returns the event that undoes the action. For a restore of files it is only the intent: the caller first adds
// its name and the safety checkpoint.
func (d Action) Back() Event { return d.reversal(d.Seq, 0) }

// Again returns the event that redoes the action; see Back.
func (d Action) Again() Event { return d.reversal(0, d.Seq) }

func (d Action) reversal(undoes, redoes uint64) Event {
	to, files, labels := d.Safety, Swapped(d.Files), d.Before
	if redoes != 0 {
		to, files, labels = d.To, slices.Clone(d.Files), d.After
	}
	move := Undone{Undoes: undoes, Redoes: redoes}
	switch {
	case d.Kind == api.ActionRestore || len(d.Files) > 0: // files, with the histories or without
		e := RestoreBegun{To: to, Files: files, Undoes: undoes, Redoes: redoes}
		if d.Move {
			e.Rewind, _ = Encode(move) // two numbers: it cannot fail
		}
		return e
	case d.Move:
		return move
	case d.Kind == api.ActionCondense:
		return HistoryCondensed{Undoes: undoes, Redoes: redoes}
	case d.Kind == api.ActionTruncate:
		return HistoryTruncated{Undoes: undoes, Redoes: redoes}
	}
	labels.Undoes, labels.Redoes = undoes, redoes
	return labels
}

// actionsKept limits how many actions can be undone: a state keeps all of them in memory and in its snapshot.
const actionsKept = 100

// Actions are the actions that can be undone and those that can be redone, each in the order in which they were done
// or undone. A new action clears the redoable ones.
type Actions struct {
	Done   []Action `json:",omitempty"`
	Undone []Action `json:",omitempty"`
	Last   uint64   `json:",omitempty"` // Seq of the newest new action
	Head   uint64   `json:",omitempty"` // Head of the newest new action
}

// Do records a new action. The changes of one commit are one action.
func (l *Actions) Do(d Action) {
	l.Undone, l.Last, l.Head = nil, d.Seq, d.Head
	d.Then = d.Seq
	if n := len(l.Done); n > 0 && l.Done[n-1].Seq == d.Seq {
		last := &l.Done[n-1]
		switch restores := d.Kind == api.ActionRestore; {
		case restores && last.Kind != api.ActionRestore:
			last.Files, last.To, last.Safety = d.Files, d.To, d.Safety
			return
		case !restores && last.Kind == api.ActionRestore:
			d.Files, d.To, d.Safety = last.Files, last.To, last.Safety
			*last = d
			return
		case !d.Move && !last.Move:
			last.After = d.After.over(last.After)
			last.Before = last.Before.over(d.Before)
			return
		}
	}
	if len(l.Done) == actionsKept {
		l.Done = slices.Delete(slices.Clone(l.Done), 0, 1)
	}
	l.Done = append(l.Done, d)
}

// refile records which files a restore changed when it was undone or redone.
func (l *Actions) refile(seq uint64, files []RestoreFile) {
	for _, list := range []*[]Action{&l.Done, &l.Undone} {
		if i := slices.IndexFunc(*list, func(d Action) bool { return d.Seq == seq }); i >= 0 {
			*list = slices.Clone(*list)
			(*list)[i].Files = files
		}
	}
}

// Undo records that commit then undid the action of commit seq.
func (l *Actions) Undo(seq, then, head uint64) { shift(&l.Done, &l.Undone, seq, then, head) }

// Redo records that commit then redid the action of commit seq.
func (l *Actions) Redo(seq, then, head uint64) { shift(&l.Undone, &l.Done, seq, then, head) }

// turn is Undo or Redo, by which of the two numbers is set in the event.
func (l *Actions) turn(undoes, redoes, then uint64) {
	if undoes != 0 {
		l.Undo(undoes, then, 0)
	} else {
		l.Redo(redoes, then, 0)
	}
}

// shift moves an action from one list to the other. It does nothing when the action is in neither: its commit may be
// lost.
func shift(from, to *[]Action, seq, then, head uint64) {
	i := slices.IndexFunc(*from, func(d Action) bool { return d.Seq == seq })
	if i < 0 {
		return
	}
	d := (*from)[i]
	d.Then, d.Head = then, head
	*from = slices.Delete(slices.Clone(*from), i, i+1)
	*to = append(*to, d)
}

// Swapped returns the files of the restore that undoes a restore of files.
func Swapped(files []RestoreFile) []RestoreFile {
	return api.Each(files, func(f RestoreFile) RestoreFile {
		return RestoreFile{Path: f.Path, From: f.To, To: f.From, How: f.How}
	})
}

// over returns e with its absent members filled from below.
func (e Changed) over(below Changed) Changed {
	e.Title, e.Tags, e.Pinned = cmp.Or(e.Title, below.Title), cmp.Or(e.Tags, below.Tags), cmp.Or(e.Pinned, below.Pinned)
	e.Access = cmp.Or(e.Access, below.Access)
	return e
}

// Kind returns the name that users see for a change of labels; "" when it changes none.
func (e Changed) Kind() string {
	switch {
	case e.Title != nil:
		return "rename"
	case e.Tags != nil:
		return "tag"
	case e.Pinned != nil:
		return "pin"
	case e.Access != nil:
		return api.ActionShare
	}
	return ""
}

// Against returns the change that undoes e, for a task that has these labels and this access.
func (e Changed) Against(title string, tags []string, pinned bool, access api.Access) Changed {
	var before Changed
	if e.Title != nil {
		before.Title = &title
	}
	if e.Tags != nil {
		tags = append([]string{}, tags...)
		before.Tags = &tags
	}
	if e.Pinned != nil {
		before.Pinned = &pinned
	}
	if e.Access != nil {
		before.Access = &access
	}
	return before
}
