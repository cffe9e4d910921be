package intake

import (
	"errors"
	"slices"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/store/projection"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/task/foreign"
	"github.com/roost-dev/roost/task/rewind"
)

// rewoundElsewhere reports whether another program rewound the task, and makes one rewind of it, which can be undone
// like Roost's own: the hidden messages stay as a branch. It decides by the content of the files, and only where no
// other act can have made them:
//
//   - Both files were cut, as Roo cuts them, and nothing else changed.
//   - Messages are gone that the other program itself wrote or knew. A window that writes an older state from its
//     memory has those, so the program removed them on purpose, and rows after the cut may be new: the user edited a
//     message and sent it again.
//   - In that case one file may be cut alone: the UI history, because no API message goes with its rows, or because Roo
//     died between its two writes, and the rewind that it began is finished; or replies in the API history, which a
//     user removed by hand.
//
// Every other change is refused as usual: Roost's branch stays the head, and the file's bytes are kept.
func rewoundElsewhere(s *task.State, folder *roofmt.Folder, w projection.Watermark) ([]Change, bool) {
	ui, ok := cutSide(s.UI(), task.UI, nil, folder.UI, w)
	if !ok || !w.Knows(folder.UI.Name) {
		return nil, false
	}
	waiting, err := s.ResultsSoFar()
	if err != nil {
		return nil, false
	}
	api, ok := cutSide(s.API(), task.API, waiting, folder.API, w)
	if !ok || !w.Knows(folder.API.Name) {
		return nil, false
	}
	e, err := rewindOf(s, ui, api, Program(folder))
	if err != nil {
		return nil, false
	}
	out := []Change{{File: ui.doc.Name, Rewound: &e, Lacking: len(ui.gone) + len(api.gone)}}
	for _, side := range []side{ui, api} {
		if len(side.added) > 0 {
			change := Change{File: side.doc.Name, Event: side.event(), Added: len(side.added)}
			change.note(side.h, side.left, side.added)
			out = append(out, change)
		}
	}
	return out, true
}

// rewindOf is the rewind that explains both files.
func rewindOf(s *task.State, ui, api side, by string) (task.Rewound, error) {
	kept := len(s.UI()) - len(ui.gone)
	added := len(ui.added)+len(api.added) > 0
	onPurpose := theirs(ui.gone)
	switch {
	case len(ui.gone) == 0 && !added && theirs(api.gone) && last(api.gone, s.API()):
		return rewind.ModelAs(s, api.gone, by)
	case len(ui.gone) == 0, kept == 0, !last(ui.gone, s.UI()), !onPurpose && (added || len(api.gone) == 0):
		return task.Rewound{}, rewind.ErrNoRewind
	}
	e, err := rewind.As(s, kept, api.gone, by)
	if errors.Is(err, rewind.ErrNoRewind) && !added && len(api.gone) == 0 {
		e, err = rewind.At(s, kept, false)
		e.By = by
	}
	return e, err
}

// theirs reports whether the program that wrote messages itself removed them. Messages that Roo removes on its own when
// it resumes do not count.
func theirs(gone []*task.Message) bool {
	return slices.ContainsFunc(gone, func(m *task.Message) bool {
		return m.Foreign && m.Kind() != "user" && !foreign.Expendable(m, nil)
	})
}

// last reports whether exactly the newest messages of a history are gone.
func last(gone, of []*task.Message) bool {
	return len(gone) <= len(of) && slices.Equal(gone, of[len(of)-len(gone):])
}

// side is one history's file, read as the rest of Roost's messages followed by new ones.
type side struct {
	doc   *roofmt.Document
	match foreign.Match
	gone  []*task.Message
	added []int // elements, the last ones
	left  [][]byte
	h     task.History
}

// cutSide is false for a file that is not of that form. It does not compare tags.
func cutSide(ours []*task.Message, h task.History, derived []byte, doc *roofmt.Document, w projection.Watermark) (side, bool) {
	s := side{doc: doc, h: h}
	if w.Wrote(doc) {
		return s, true
	}
	if !whole(doc) || doc.Recovered() || doc.Len() == 0 {
		return s, false
	}
	left, err := elementsIn(doc, derived)
	if err != nil {
		return s, false
	}
	s.left, s.match = left, foreign.Compare(ours, h, left)
	s.gone, s.added = s.match.Lacking, s.match.Added
	if n := len(s.added); n > 0 && s.added[0] != len(left)-n {
		return s, false
	}
	byID := map[uint64]*task.Message{}
	for _, o := range ours {
		byID[o.ID] = o
	}
	for _, i := range s.match.Changed {
		if !esjson.Equal(untagged(left[i]), untagged(byID[s.match.Rows[i].Message].Raw())) {
			return s, false
		}
	}
	return s, true
}

// event takes in the new elements.
func (s side) event() *task.ForeignImported {
	e := &task.ForeignImported{History: s.h, Blob: s.doc.Source, Size: s.doc.SourcePrint.Size, Rows: s.match.Rows}
	for _, i := range s.added {
		e.Rows[i].Off, e.Rows[i].Len = s.doc.Spans[i].Off, s.doc.Spans[i].Len
	}
	return e
}

// elementsIn reads all elements of a file, except a last one that equals derived, the turn with which a task that waits
// for a subtask is projected: no journal holds it.
func elementsIn(doc *roofmt.Document, derived []byte) ([][]byte, error) {
	out := make([][]byte, 0, doc.Len())
	for raw, err := range doc.All() {
		if err != nil {
			return nil, err
		}
		out = append(out, raw)
	}
	if n := len(out); derived != nil && n > 0 && esjson.Equal(out[n-1], derived) {
		out = out[:n-1]
	}
	return out, nil
}

func untagged(raw []byte) []byte {
	return esjson.Remove(esjson.Remove(raw, "condenseParent"), "truncationParent")
}
