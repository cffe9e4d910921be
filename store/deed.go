package store

import (
	"fmt"
	"slices"

	"github.com/roost-dev/roost/task"
)

// What a person did to a task stands in one of two logs: in the task's own journal,
// or, when the folder is not ours or moves away, in the overlay. Each mark of the
// overlay names the commit at which the task's journal was then (mark.Head), so
// that the two are one story, whatever clocks say. A log of all deeds beside them
// was the alternative: a kill between two writes would make it lie.

// Deed is something that was done to a task and can be taken back, or done again.
type Deed struct {
	ID   string  `json:"id"`   // names it, so that another one is not taken back instead
	Kind string  `json:"kind"` // rename, tag, pin, delete; rewind, edit, remove, branch; condense, truncate
	At   *string `json:"at"`   // RFC 3339; null when nothing says
	From Filed   `json:"from"` // what undo brings back
	To   Filed   `json:"to"`

	// Of a deed that moved the histories: how many messages it took out of them (or, less
	// than none, brought back), the branch that it left, and the tool that did it, when
	// it was not Roost.
	Gone   *MessageCounts `json:"gone,omitempty"`
	Branch string         `json:"branch,omitempty"`
	By     string         `json:"by,omitempty"`
	WentOn bool           `json:"went_on,omitempty"` // the task went on since: it can only be forked

	Covered int `json:"covered,omitempty"` // how many messages a summary or a marker stands for

	// Of a deed that put files back, with the histories or without.
	Files      int  `json:"files,omitempty"`
	Checkpoint *int `json:"checkpoint,omitempty"` // to which; 0 = before anything was changed
	Safety     int  `json:"safety,omitempty"`     // the checkpoint of what was replaced
}

// Filed is what a deed changes; absent members it does not. An empty title is the one
// that the task has by itself.
type Filed struct {
	Title   *string   `json:"title,omitempty"`
	Tags    *[]string `json:"tags,omitempty"`
	Pinned  *bool     `json:"pinned,omitempty"`
	Deleted *bool     `json:"deleted,omitempty"`
}

// Deeds are what was done to one task, the newest first: what undo takes back, and
// what redo does again.
type Deeds struct {
	Task    Summary `json:"task"`
	Name    string  `json:"name"` // by which undo and redo find it
	Trashed bool    `json:"trashed"`
	Undo    []Deed  `json:"undo"`
	Redo    []Deed  `json:"redo"`

	// Subtasks are the ids of those that came back with it, or were deleted again with it,
	// by the undo or redo that this answers.
	Subtasks []string `json:"subtasks,omitempty"`

	ref  Ref
	bin  string // its name in the trash
	done deedList
	redo deedList
	move uint64 // the newest commit that went on with the histories
}

// keptDeed is a deed and where it is kept.
type keptDeed struct {
	task.Deed
	shelf bool // in the overlay
}

const deletion = "delete"

func (e keptDeed) id() string {
	switch {
	case e.shelf && e.Seq == 0:
		return "trash"
	case e.shelf:
		return fmt.Sprintf("overlay-%d", e.Seq)
	}
	return fmt.Sprintf("journal-%d", e.Seq)
}

// moment orders the deeds of both logs: a mark comes behind the commit that it names.
type moment [3]uint64

func (e keptDeed) moment() moment {
	if e.shelf {
		return moment{e.Head, 1, e.Then}
	}
	return moment{e.Then}
}

func (m moment) before(o moment) bool { return slices.Compare(m[:], o[:]) < 0 }

// deedList are deeds in their order.
type deedList []keptDeed

func (l deedList) top() (keptDeed, bool) {
	if len(l) == 0 {
		return keptDeed{}, false
	}
	return l[len(l)-1], true
}

func (l deedList) shown(moved uint64) []Deed {
	out := make([]Deed, 0, len(l))
	for _, e := range slices.Backward(l) {
		d := e.shown()
		d.WentOn = e.Move && moved > e.Then
		out = append(out, d)
	}
	return out
}

func (e keptDeed) shown() Deed {
	d := Deed{ID: e.id(), Kind: e.Kind, At: stamp(e.At)}
	if e.Kind == deletion {
		d.From.Deleted, d.To.Deleted = ptr(false), ptr(true)
		return d
	}
	if putsBack(e.Deed) {
		d.Files, d.Checkpoint, d.Safety = len(e.Deed.Files), ptr(e.Deed.To), e.Deed.Safety
	}
	if e.Move {
		d.Gone, d.Branch, d.By = &MessageCounts{UI: e.Gone.UI, API: e.Gone.API}, BranchName(e.Seq), e.By
		return d
	}
	if e.Cover > 0 {
		d.Covered = e.Cover
		return d
	}
	d.From = Filed{Title: e.Before.Title, Tags: e.Before.Tags, Pinned: e.Before.Pinned}
	d.To = Filed{Title: e.After.Title, Tags: e.After.Tags, Pinned: e.After.Pinned}
	return d
}

// ordered puts the deeds of both logs in order. What was taken back in one of them is
// out of reach once something new was done in the other.
func ordered(own, shelf task.Deeds) (done, redo deedList) {
	last := map[bool]moment{false: {own.Last}, true: {shelf.Head, 1, shelf.Last}}
	if shelf.Last == 0 {
		last[true] = moment{}
	}
	for _, of := range []struct {
		task.Deeds
		shelf bool
	}{{own, false}, {shelf, true}} {
		for _, d := range of.Done {
			done = append(done, keptDeed{d, of.shelf})
		}
		for _, d := range of.Undone {
			if e := (keptDeed{d, of.shelf}); last[!of.shelf].before(e.moment()) {
				redo = append(redo, e)
			}
		}
	}
	for _, l := range []deedList{done, redo} {
		slices.SortStableFunc(l, func(a, b keptDeed) int {
			x, y := a.moment(), b.moment()
			return slices.Compare(x[:], y[:])
		})
	}
	return done, redo
}
