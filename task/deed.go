package task

import "slices"

// Deed is something that a person did to a task and can take back: a rename, other
// tags, a pin. It is derived from the log like everything else. What takes it back
// is an event of the same type that names it (Changed.Undoes), so the log tells
// both, and nothing is removed from it.
//
// A kind that comes later adds the members it needs, a case in the fold that calls
// Do, Undo and Redo, and one in Back and Again.
type Deed struct {
	Kind   string // rename, tag, pin, rewind, edit, remove, branch, condense, truncate; the store adds delete
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
}

// Back is the event that takes the deed back.
func (d Deed) Back() Event {
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

// Again is the event that does the deed again.
func (d Deed) Again() Event {
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
