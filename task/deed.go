package task

import (
	"encoding/json"
	"slices"
)

// Deed is something that a person did to a task and can take back: a rename, other
// tags, a pin. It is derived from the log like everything else. What takes it back
// is an event of the same type that names it (Changed.Undoes), so the log tells
// both, and nothing is removed from it.
//
// A kind that comes later adds the members it needs, a case in the fold that calls
// Do, Undo and Redo, and one in Back and Again.
type Deed struct {
	Kind   string // rename, tag, pin, rewind, edit, remove, branch, condense, truncate, restore; the store adds delete
	Seq    uint64 // of the commit that did it
	Then   uint64 // of the commit that last took it back or did it again; Seq at first
	Head   uint64 // for a deed that is kept beside the log: the log's newest commit at Then
	At     int64  // of the commit Seq; Unix milliseconds
	Before Changed
	After  Changed

	Cover int `json:",omitempty"` // how many messages a summary or marker stands for that it made

	Move bool   `json:",omitempty"` // it moved the head of the histories; see Rewound
	By   string `json:",omitempty"` // the tool that did it, when it was not Roost
	Gone Gone   // what it took from the histories

	// Files are what it put back, as it was done last: Swapped, they are what takes it
	// back. A move of the head with files is one deed, of the move's kind.
	Files  []RestoreFile `json:",omitempty"`
	To     int           `json:",omitempty"` // the checkpoint that was restored; 0 = before anything was changed
	Safety int           `json:",omitempty"` // the checkpoint of what it replaced
}

// RestoreDeed is the kind of a deed that put files back and moved no head.
const RestoreDeed = "restore"

// Back is the event that takes the deed back. Where files were put back it is only the
// intent: who writes it names it, and the safety checkpoint, first.
func (d Deed) Back() Event {
	if d.restores() {
		return RestoreBegun{To: d.Safety, Files: Swapped(d.Files), Rewind: d.moveLine(Undone{Undoes: d.Seq}), Undoes: d.Seq}
	}
	if d.Move {
		return Undone{Undoes: d.Seq}
	}
	switch d.Kind {
	case Condense:
		return HistoryCondensed{Undoes: d.Seq}
	case Truncate:
		return HistoryTruncated{Undoes: d.Seq}
	}
	e := d.Before
	e.Undoes = d.Seq
	return e
}

// restores reports whether the deed put files back, with the histories or without.
func (d Deed) restores() bool { return d.Kind == RestoreDeed || len(d.Files) > 0 }

// moveLine is an event's line where the deed moved the head, nil where it did not.
func (d Deed) moveLine(e Undone) json.RawMessage {
	if !d.Move {
		return nil
	}
	line, err := Encode(e)
	if err != nil {
		return nil // two numbers: it cannot fail
	}
	return line
}

// Again is the event that does the deed again; see Back.
func (d Deed) Again() Event {
	if d.restores() {
		return RestoreBegun{To: d.To, Files: slices.Clone(d.Files), Rewind: d.moveLine(Undone{Redoes: d.Seq}), Redoes: d.Seq}
	}
	if d.Move {
		return Undone{Redoes: d.Seq}
	}
	switch d.Kind {
	case Condense:
		return HistoryCondensed{Redoes: d.Seq}
	case Truncate:
		return HistoryTruncated{Redoes: d.Seq}
	}
	e := d.After
	e.Redoes = d.Seq
	return e
}

// deedsKept is how many deeds can be taken back: a state keeps all of them in
// memory and in its snapshot.
const deedsKept = 100

// Deeds are what can be taken back and what can be done again, each in the order
// in which it came to be so. A new deed ends what could be done again.
type Deeds struct {
	Done   []Deed `json:",omitempty"`
	Undone []Deed `json:",omitempty"`
	Last   uint64 `json:",omitempty"` // Seq of the newest new deed
	Head   uint64 `json:",omitempty"` // and its Head
}

// Do notes a new deed. Those of one commit are one deed.
func (l *Deeds) Do(d Deed) {
	l.Undone, l.Last, l.Head = nil, d.Seq, d.Head
	d.Then = d.Seq
	if n := len(l.Done); n > 0 && l.Done[n-1].Seq == d.Seq && (d.Kind == RestoreDeed) != (l.Done[n-1].Kind == RestoreDeed) {
		l.Done[n-1] = d.with(l.Done[n-1])
		return
	}
	if n := len(l.Done); n > 0 && l.Done[n-1].Seq == d.Seq && !d.Move && !l.Done[n-1].Move {
		l.Done[n-1].After = d.After.over(l.Done[n-1].After)
		l.Done[n-1].Before = l.Done[n-1].Before.over(d.Before)
		return
	}
	if len(l.Done) == deedsKept {
		l.Done = slices.Delete(slices.Clone(l.Done), 0, 1)
	}
	l.Done = append(l.Done, d)
}

// with makes one deed of a restore and of what was done in the same commit.
func (d Deed) with(o Deed) Deed {
	if d.Kind != RestoreDeed {
		d, o = o, d
	}
	o.Files, o.To, o.Safety = d.Files, d.To, d.Safety
	return o
}

// refile notes which files a restore changed when it was taken back or done again.
func (l *Deeds) refile(seq uint64, files []RestoreFile) {
	for _, list := range []*[]Deed{&l.Done, &l.Undone} {
		if i := slices.IndexFunc(*list, func(d Deed) bool { return d.Seq == seq }); i >= 0 {
			*list = slices.Clone(*list)
			(*list)[i].Files = files
		}
	}
}

// Undo notes that the deed of commit seq was taken back by commit then.
func (l *Deeds) Undo(seq, then, head uint64) { shift(&l.Done, &l.Undone, seq, then, head) }

// Redo notes that the deed of commit seq was done again by commit then.
func (l *Deeds) Redo(seq, then, head uint64) { shift(&l.Undone, &l.Done, seq, then, head) }

// shift does nothing when the deed is not there: its commit may be lost.
func shift(from, to *[]Deed, seq, then, head uint64) {
	i := slices.IndexFunc(*from, func(d Deed) bool { return d.Seq == seq })
	if i < 0 {
		return
	}
	d := (*from)[i]
	d.Then, d.Head = then, head
	*from = slices.Delete(slices.Clone(*from), i, i+1)
	*to = append(*to, d)
}

// over is e with what it does not say taken from below.
func (e Changed) over(below Changed) Changed {
	if e.Title == nil {
		e.Title = below.Title
	}
	if e.Tags == nil {
		e.Tags = below.Tags
	}
	if e.Pinned == nil {
		e.Pinned = below.Pinned
	}
	return e
}

// Kind names a change of labels by what people call it; "" when it changes none.
func (e Changed) Kind() string {
	switch {
	case e.Title != nil:
		return "rename"
	case e.Tags != nil:
		return "tag"
	case e.Pinned != nil:
		return "pin"
	}
	return ""
}

// Against gives what takes a change of labels back, for a task that has these.
func (e Changed) Against(title string, tags []string, pinned bool) Changed {
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
	return before
}

// note keeps what a change of labels did, before it is folded.
func (s *State) note(e Changed, seq uint64, at int64) {
	switch {
	case e.Undoes != 0:
		s.Deeds.Undo(e.Undoes, seq, 0)
	case e.Redoes != 0:
		s.Deeds.Redo(e.Redoes, seq, 0)
	case e.Kind() != "":
		after := e
		after.Settings = nil
		s.Deeds.Do(Deed{Kind: e.Kind(), Seq: seq, At: at, Before: e.Against(s.Title, s.Tags, s.Pinned), After: after})
	}
}
